"""Where the set-up keeps what it makes, all under the project folder."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

PROJECT_FOLDER = Path(__file__).resolve().parents[3]


@dataclass(frozen=True)
class Places:
    """The folders and files of one checkout.

    Attributes:
        project: the project folder.
    """

    project: Path = PROJECT_FOLDER

    @property
    def lock_file(self) -> Path:
        """The exact versions of every package."""
        return self.project / "requirements.lock"

    @property
    def venv(self) -> Path:
        """The project's own Python environment."""
        return self.project / ".venv"

    @property
    def python(self) -> Path:
        """The environment's Python."""
        return self.program("python")

    def program(self, name: str) -> Path:
        """A program of the environment."""
        return self.venv / "bin" / name

    @property
    def state(self) -> Path:
        """Everything else that is made on this machine; ignored by git."""
        return self.project / ".recrawl"

    @property
    def jars(self) -> Path:
        """Delta's jars."""
        return self.state / "jars"

    @property
    def java(self) -> Path:
        """The project's Java home: the machine's Java, or one from a package, behind a shim."""
        return self.state / "java"

    @property
    def class_archive(self) -> Path:
        """The classes that JVMs map at their start."""
        return self.state / "classes.jsa"

    @property
    def class_archive_stamp(self) -> Path:
        """For which Java, jars and packages the archive was written."""
        return self.state / "classes.key"


def running_python_folder() -> Path:
    """The folder of the running Python's programs, where spark-submit lies beside it."""
    return Path(sys.executable).parent
