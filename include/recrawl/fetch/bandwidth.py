"""The bandwidth cap of a fetch task: requests start as long as the bytes they will bring are paid for."""

from __future__ import annotations

#: Bytes that an answer is taken to bring before any came.
_FIRST_GUESS_BYTES = 50_000.0
_WEIGHT = 0.1
#: Unused allowance kept, in seconds of the cap, for bursts.
_BURST_SECONDS = 1.0


class Bandwidth:
    """A bucket of bytes that fills at the cap; an answer takes what it brought.

    What is in flight is reckoned at the mean of the answers so far, so that many requests at once
    do not overdraw the bucket by their number. Times are monotonic seconds.

    Args:
        bytes_per_second: the cap; 0: none.
    """

    def __init__(self, bytes_per_second: int, now: float) -> None:
        self._rate = bytes_per_second
        self._filled_at = now
        self._allowance_bytes = bytes_per_second * _BURST_SECONDS
        self._mean_bytes = _FIRST_GUESS_BYTES

    def wait_seconds(self, now: float, in_flight: int) -> float:
        """How long until a further request may start; 0: it may start now."""
        if not self._rate:
            return 0.0
        self._fill(now)
        # The first is always let go, or a body larger than the bucket would never be fetched.
        missing_bytes = in_flight * self._mean_bytes - self._allowance_bytes
        return max(0.0, missing_bytes / self._rate)

    def received(self, body_bytes: int) -> None:
        """An answer came."""
        self._allowance_bytes -= body_bytes
        self._mean_bytes += _WEIGHT * (body_bytes - self._mean_bytes)

    def _fill(self, now: float) -> None:
        grown_bytes = self._allowance_bytes + (now - self._filled_at) * self._rate
        self._allowance_bytes = min(grown_bytes, self._rate * _BURST_SECONDS)
        self._filled_at = now
