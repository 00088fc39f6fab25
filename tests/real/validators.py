"""Other people's judges of WARC files, and our own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from recrawl.config.load import PROJECT_FOLDER
from recrawl.warc.check import check_warc

JWARC_VERSION = "0.36.0"
JAR_VARIABLE = "RECRAWL_JWARC_JAR"


def by_our_check(path: Path) -> list[str]:
    """Complaints of the check by the letter."""
    return check_warc(path)


def by_warcio(path: Path) -> list[str]:
    """Complaints of `warcio check`.

    Its way into Brotli breaks with the library that is installed here; without it, such bodies are
    read as they are stored, and digests are those of stored bytes anyway.
    """
    program = "import sys; sys.modules['brotli'] = None; from warcio.cli import main; main()"
    return _complaints([sys.executable, "-c", program, "check", str(path)])


def by_jwarc(path: Path, jar: Path) -> list[str]:
    """Complaints of `jwarc validate`."""
    return _complaints(["java", "-jar", str(jar), "validate", str(path)])


def by_cdxj_indexer(path: Path) -> list[str]:
    """Where cdxj-indexer and the index that was published beside the file differ."""
    command = [_program("cdxj-indexer"), "--sort", str(path)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        return [done.stderr.strip()]
    theirs = _entries(done.stdout.splitlines())
    index = path.with_name(path.name.removesuffix(".warc.gz") + ".cdxj")
    ours = _entries(index.read_text(encoding="utf-8").splitlines())
    return [
        f"byte {offset}: {ours.get(offset)} against {theirs.get(offset)}"
        for offset in sorted(ours.keys() | theirs.keys(), key=int)
        if ours.get(offset) != theirs.get(offset)
    ]


def jwarc_jar() -> Path | None:
    """The jar that `RECRAWL_JWARC_JAR` names; else one that Maven, where it is installed, fetches once."""
    named = os.environ.get(JAR_VARIABLE)
    if named:
        return Path(named)
    folder = PROJECT_FOLDER / ".recrawl" / "test-jars"
    jar = folder / f"jwarc-{JWARC_VERSION}.jar"
    maven = shutil.which("mvn")
    if not jar.exists() and maven is not None:
        artifact = f"-Dartifact=org.netpreserve:jwarc:{JWARC_VERSION}"
        command = [maven, "-q", "-B", "dependency:copy", artifact, f"-DoutputDirectory={folder}"]
        subprocess.run(command, capture_output=True, timeout=180, check=False)
    return jar if jar.exists() and shutil.which("java") else None


def _entries(lines: list[str]) -> dict[str, tuple[str, str, str, str, str]]:
    found = {}
    for line in lines:
        key, moment, text = line.split(" ", 2)
        fields = json.loads(text)
        found[fields["offset"]] = (key, moment, fields["url"], fields["digest"], fields["length"])
    return found


def _complaints(command: list[str]) -> list[str]:
    done = subprocess.run(command, capture_output=True, text=True)
    said = (done.stdout + done.stderr).strip()
    return [said or f"status {done.returncode}"] if done.returncode else []


def _program(name: str) -> str:
    return str(Path(sys.executable).parent / name)
