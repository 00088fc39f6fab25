"""CPU time of a process and all that it starts, at any moment; Linux only.

The sum of what the living tell of themselves and of the children that they waited for, and of
what ours left behind. Orphans come to this process (`PR_SET_CHILD_SUBREAPER`), so that a JVM
whose Python is gone is counted to its end.
"""

from __future__ import annotations

import ctypes
import os
import resource
import time
from pathlib import Path

_PR_SET_CHILD_SUBREAPER = 36
_TICK_SECONDS = 1 / os.sysconf("SC_CLK_TCK")


class ProcessTree:
    """The descendants of this process that are not excluded.

    Args:
        excluded: processes whose time is not counted, with all that they start; they must live
            until the last look.
    """

    def __init__(self, excluded: set[int]) -> None:
        if not Path("/proc/self/stat").exists():
            raise SystemExit("CPU time of a process tree can be measured on Linux only.")
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self._excluded = excluded
        self._zero_seconds = 0.0
        self._zero_seconds = self.cpu_seconds()

    def cpu_seconds(self) -> float:
        """CPU seconds, user and system, since this object was made."""
        parents: dict[int, list[int]] = {}
        seconds: dict[int, float] = {}
        for folder in Path("/proc").iterdir():
            if not folder.name.isdigit():
                continue
            try:
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            pid = int(folder.name)
            parents.setdefault(int(fields[1]), []).append(pid)
            seconds[pid] = sum(int(fields[number]) for number in (11, 12, 13, 14)) * _TICK_SECONDS
        total, waiting = 0.0, [pid for pid in parents.get(os.getpid(), []) if pid not in self._excluded]
        while waiting:
            pid = waiting.pop()
            total += seconds[pid]
            waiting += parents.get(pid, [])
        reaped = resource.getrusage(resource.RUSAGE_CHILDREN)
        return total + reaped.ru_utime + reaped.ru_stime - self._zero_seconds

    def wait_for_orphans(self, patience_seconds: float = 30.0) -> None:
        """Wait until no descendant is left but the excluded ones."""
        deadline = time.monotonic() + patience_seconds
        while time.monotonic() < deadline:
            children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
            left = [int(pid) for pid in children if int(pid) not in self._excluded]
            if not left:
                return
            for pid in left:
                try:
                    os.waitpid(pid, os.WNOHANG)
                except ChildProcessError:
                    continue
            time.sleep(0.1)
