"""CPU time of a process and all that it starts, at any moment; Linux only.

The sum of what the living tell of themselves and of the children that they waited for, of what
ours left behind, and of those whose parent waits for nobody (Spark's Python workers): these are
looked at while they live. Orphans come to this process (`PR_SET_CHILD_SUBREAPER`), so that a JVM
whose Python is gone is counted to its end.
"""

from __future__ import annotations

import ctypes
import os
import re
import resource
import signal
import threading
import time
from pathlib import Path

_PR_SET_CHILD_SUBREAPER = 36
_TICK_SECONDS = 1 / os.sysconf("SC_CLK_TCK")
_LOOK_SECONDS = 0.25

#: A process: its number may come again, its start does not.
_Process = tuple[int, int]


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
        self._lock = threading.Lock()
        #: Of processes that nobody waits for: what they had used when they were last seen.
        self._unwaited: dict[_Process, float] = {}
        self._zero_seconds = 0.0
        self._zero_seconds = self.cpu_seconds()
        threading.Thread(target=self._look_on, name="process-tree", daemon=True).start()

    def cpu_seconds(self) -> float:
        """CPU seconds, user and system, since this object was made."""
        with self._lock:
            living = self._look()
            vanished = sum(self._unwaited[process] for process in self._unwaited.keys() - living.keys())
            reaped = resource.getrusage(resource.RUSAGE_CHILDREN)
            return sum(living.values()) + vanished + reaped.ru_utime + reaped.ru_stime - self._zero_seconds

    def _look_on(self) -> None:
        while True:
            time.sleep(_LOOK_SECONDS)
            with self._lock:
                self._look()

    def _look(self) -> dict[_Process, float]:
        """The living descendants and what each has used, waited children included."""
        children: dict[int, list[_Process]] = {}
        seconds: dict[_Process, float] = {}
        for folder in Path("/proc").iterdir():
            if not folder.name.isdigit():
                continue
            try:
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            process = (int(folder.name), int(fields[19]))
            children.setdefault(int(fields[1]), []).append(process)
            seconds[process] = sum(int(fields[number]) for number in (11, 12, 13, 14)) * _TICK_SECONDS
        living: dict[_Process, float] = {}
        waiting = [(process, False) for process in children.get(os.getpid(), []) if process[0] not in self._excluded]
        while waiting:
            process, is_unwaited = waiting.pop()
            living[process] = seconds[process]
            if is_unwaited:
                self._unwaited[process] = seconds[process]
            own = children.get(process[0], [])
            waiting += [(child, _waits_for_nobody(process[0])) for child in own]
        return living

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


def _waits_for_nobody(pid: int) -> bool:
    """Whether a process ignores SIGCHLD: the time of its children is in no account when they end."""
    try:
        ignored = re.search(r"^SigIgn:\s*([0-9a-f]+)", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    except OSError:
        return False
    return ignored is not None and bool(int(ignored[1], 16) >> (signal.SIGCHLD - 1) & 1)
