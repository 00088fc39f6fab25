"""Running the DAG in a process of its own and telling, every few seconds, how it goes.

The process logs one JSON object a line. All of it goes to a file; the lines of each task also go
where Airflow's UI looks for the task's log; a person sees what the jobs say.
"""

from __future__ import annotations

import json
import os
import queue
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from recrawl.config.model import Configuration
from recrawl.live import live_figures
from recrawl.orchestration.alerts import reason_in
from recrawl.stages import STEP_NAMES, STEPS
from recrawl.storage import Store

PROGRESS_SECONDS = 5.0
_PATIENCE_SECONDS = 15.0

#: About how long each step takes on two cores with the sample web, start of Spark included.
ABOUT_SECONDS = {"seed": 25, "frontier": 20, "fetch": 20, "parse": 30, "dedupe": 20, "rank": 30}

_SAID = re.compile(rf"(?:\d\d:\d\d:\d\d )?((?:{'|'.join(STEP_NAMES)}): .*)")
_STARTING = re.compile(r"\[DAG TEST\] starting task_id=(\S+)")
_RUNNING = re.compile(r"\[DAG TEST\] running task <TaskInstance: \S+ (\S+) ")
_ENDING = re.compile(r"\[DAG TEST\] end task task_id=(\S+)")
_FAILED = "Task failed with exception"
#: dag.test() says so every second while a task waits for its next try.
_WAITING = "No tasks to run. unrunnable tasks"
_ROUND = re.compile(r"\d{8}T\d{6}\.\d{6}Z")
_PURPOSES = {step.name: step.purpose for step in STEPS}


@dataclass
class TaskLogs:
    """Puts each task's lines where Airflow's UI looks for them.

    Attributes:
        folder: Airflow's log folder.
        dag_id: the DAG.
    """

    folder: Path
    dag_id: str
    _task: str = ""
    _attempts: dict[str, int] = field(default_factory=dict)
    _file: IO[str] | None = None

    def take(self, event: str, line: str) -> None:
        """Take one line of the run's log."""
        started, running, ended = _STARTING.search(event), _RUNNING.search(event), _ENDING.search(event)
        if started:
            self._task = started[1]
        elif running and self._task:
            self.close()
            self._attempts[self._task] = self._attempts.get(self._task, 0) + 1
            name = f"attempt={self._attempts[self._task]}.log"
            file = self.folder / f"dag_id={self.dag_id}" / f"run_id={running[1]}" / f"task_id={self._task}" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            self._file = file.open("w", encoding="utf-8")
        elif ended:
            self.close()
        elif self._file is not None:
            self._file.write(line)

    def close(self) -> None:
        """End the log of the task that ran."""
        if self._file is not None:
            self._file.close()
            self._file = None


class Watcher:
    """Turns the run's log into lines for a person.

    Args:
        configuration: tells where the fetch tasks leave their figures.
        task_logs: gets every line as well.
    """

    def __init__(self, configuration: Configuration, task_logs: TaskLogs) -> None:
        self._store = Store(configuration.storage)
        self._task_logs = task_logs
        self._step = ""
        self._step_started_seconds = 0.0
        self._round_id = ""
        self._last_said_seconds = time.monotonic()
        self._waits_for_next_try = False
        self._printed: list[str] = []
        #: Why the last task failed; empty while none has.
        self.fault = ""

    def take(self, line: str) -> bool:
        """Take one line of the run's log and say what a person should see of it; whether to keep the line."""
        event = _event_of(line)
        if event.startswith(_WAITING):
            return False
        self._task_logs.take(event, line)
        started, said = _STARTING.search(event), _SAID.match(event)
        found = _ROUND.search(event) if said else None
        if found:
            self._round_id = found[0]
        if started:
            self._start(started[1])
        elif said:
            self._say(f"  {said[1]}")
        elif event == _FAILED:
            self.fault = reason_in(self._printed) or "the log tells why."
            self._waits_for_next_try = True
            self._say(f"  {self._step} failed: {self.fault}")
        else:
            self._printed.append(event)
        return True

    def _start(self, step: str) -> None:
        again = step == self._step
        self._step, self._step_started_seconds = step, time.monotonic()
        self._waits_for_next_try = False
        self._printed.clear()
        self._say(
            f"{step}: once more"
            if again
            else f"{step}: {_PURPOSES.get(step, '')} (about {ABOUT_SECONDS.get(step, 30)} s)"
        )

    def tick(self) -> None:
        """Say that the step still runs when nothing was said for a while."""
        if time.monotonic() - self._last_said_seconds < PROGRESS_SECONDS:
            return
        elapsed_seconds = time.monotonic() - self._step_started_seconds
        figures = live_figures(self._store, self._round_id) if self._step == "fetch" and self._round_id else None
        if figures is not None:
            self._say(f"  {figures.line()}")
        elif self._waits_for_next_try:
            self._say(f"  … {self._step} waits for its next try")
        elif self._step:
            self._say(f"  … {self._step}: {elapsed_seconds:.0f} s")
        else:
            self._say("  … Airflow starts")

    def close(self) -> None:
        """End the log of a task that was cut off."""
        self._task_logs.close()

    def _say(self, text: str) -> None:
        print(text, flush=True)
        self._last_said_seconds = time.monotonic()


def run_and_watch(form: Mapping[str, Any], environment: Mapping[str, str], log_file: Path, watcher: Watcher) -> bool:
    """Run the DAG once with this form; whether every step succeeded."""
    command = [sys.executable, "-m", "recrawl.orchestration.single_run", json.dumps(dict(form))]
    log_file.parent.mkdir(parents=True, exist_ok=True)
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**environment, "AIRFLOW__LOGGING__JSON_LOGS": "True"},
        encoding="utf-8",
        errors="replace",
        # A group of its own, so that it can be ended with all that it started.
        start_new_session=True,
    )
    try:
        with log_file.open("w", encoding="utf-8") as log:
            for line in _lines(process):
                if line:
                    if watcher.take(line):
                        log.write(line)
                else:
                    watcher.tick()
        return process.wait() == 0
    finally:
        watcher.close()
        if process.poll() is None:
            _end(process)


def _end(process: subprocess.Popen[str]) -> None:
    """End the run with its Spark application: by an interrupt, else by force."""
    os.killpg(process.pid, signal.SIGINT)
    try:
        process.wait(_PATIENCE_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _lines(process: subprocess.Popen[str]) -> Iterator[str]:
    """The lines of the process; an empty text about every second without one."""
    lines: queue.Queue[str | None] = queue.Queue()

    def read() -> None:
        for line in process.stdout or ():
            lines.put(line)
        lines.put(None)

    threading.Thread(target=read, name="recrawl-log", daemon=True).start()
    while True:
        try:
            line = lines.get(timeout=1.0)
        except queue.Empty:
            yield ""
            continue
        if line is None:
            return
        yield line


def _event_of(line: str) -> str:
    try:
        return str(json.loads(line)["event"])
    except (ValueError, KeyError, TypeError):
        return line.rstrip(os.linesep)
