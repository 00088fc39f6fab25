"""What the set-up finds to do, what it says, and how it tells what went wrong."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

import pytest

from recrawl.bootstrap import class_archive, jars, java, packages, processes, setup
from recrawl.bootstrap.jars import JARS, Jar
from recrawl.bootstrap.places import Places
from recrawl.errors import EnvironmentFaultError


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Places:
    """A fresh checkout on a machine with a Java."""
    (tmp_path / "requirements.lock").write_text("one==1\n", encoding="utf-8")
    (tmp_path / "pyproject.toml").write_text("[project]\n", encoding="utf-8")
    monkeypatch.setattr(java, "find_java", lambda places: java.Java(tmp_path, 17))
    return Places(tmp_path)


def finish(places: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make everything look as after a whole set-up."""
    content = b"a jar"
    known = Jar("group", "artifact", "1", hashlib.sha256(content).hexdigest())
    monkeypatch.setattr(jars, "JARS", (known,))
    monkeypatch.setattr(jars.missing_jars, "__defaults__", ((known,),))
    places.jars.mkdir(parents=True)
    (places.jars / known.file_name).write_bytes(content)
    for program in ("python", "recrawl"):
        places.program(program).parent.mkdir(parents=True, exist_ok=True)
        places.program(program).touch()
    packages._mark(places, "lock", packages._digest(places.lock_file))
    packages._mark(places, "project", packages._project_digest(places))
    places.class_archive.touch()
    places.class_archive_stamp.write_text(class_archive._key(places), encoding="utf-8")


def titles(places: Places) -> list[str]:
    """What is to do."""
    return [phase.title.split(",")[0] for phase in setup.phases_to_do(places)]


def test_a_fresh_checkout_needs_everything_but_the_java_that_is_there(places: Places) -> None:
    assert titles(places) == [
        "Python environment in .venv", "the command recrawl", "Delta Lake's two jars", "an archive of Spark's classes",
    ]  # fmt: skip


def test_a_machine_without_java_gets_one(places: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "find_java", lambda places: None)
    assert "Java (none from version 17 on was found)" in titles(places)


def test_after_the_set_up_nothing_is_to_do(
    places: Places, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    finish(places, monkeypatch)
    assert titles(places) == []
    setup.set_up(places)
    assert capsys.readouterr().out == "Set-up: all there.\n"


def test_a_new_lock_file_needs_the_packages_again(places: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    finish(places, monkeypatch)
    places.lock_file.write_text("one==2\n", encoding="utf-8")
    assert titles(places) == ["Python environment in .venv", "the command recrawl", "an archive of Spark's classes"]


def test_a_new_pyproject_needs_only_the_project_again(places: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    finish(places, monkeypatch)
    (places.project / "pyproject.toml").write_text("[project]\nname = 'x'\n", encoding="utf-8")
    assert titles(places) == ["the command recrawl"]


def test_an_environment_that_was_copied_elsewhere_is_made_anew(places: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    finish(places, monkeypatch)
    packages._mark(places, "project", packages._project_digest(places).replace(str(places.project), "/elsewhere"))
    assert titles(places) == ["the command recrawl"]


def test_the_archive_of_classes_follows_the_jars_and_is_tried_once(
    places: Places, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    finish(places, monkeypatch)
    (places.jars / "another.jar").write_bytes(b"more classes")
    assert titles(places) == ["an archive of Spark's classes"]
    # Here no Spark session can run: that is told, and not tried again with the same jars.
    class_archive.build_archive(places)
    assert "left out: " in capsys.readouterr().out
    assert titles(places) == []
    (places.jars / "another.jar").write_bytes(b"and more")
    assert titles(places) == ["an archive of Spark's classes"]


def test_half_a_jar_is_a_missing_jar(places: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    finish(places, monkeypatch)
    next(places.jars.iterdir()).write_bytes(b"a j")
    assert titles(places) == ["Delta Lake's two jars", "an archive of Spark's classes"]


def test_too_little_space_is_told_before_anything_is_fetched(places: Places) -> None:
    with pytest.raises(EnvironmentFaultError, match=r"needs about \d+ MB.*Free some space"):
        setup.check_disk(places.project, 10**12)


def test_the_lock_pins_what_the_jars_are_made_for() -> None:
    lock = (Places().project / "requirements.lock").read_text(encoding="utf-8")
    assert "\npyspark==4.2.0 " in lock and "\npyspark-client==4.2.0 " in lock
    assert f"\ndelta-spark=={JARS[0].version} " in lock
    assert "--hash=sha256:" in lock
    assert "://" not in "".join(line for line in lock.splitlines() if line.startswith("-"))


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("error: No space left on device (os error 28)", "The disk is full."),
        ("Failed to establish a new connection: [Errno -3] Temporary failure in name resolution", "can't be reached"),
        ("error sending request for url: dns error", "can't be reached"),
        ("SSLError: certificate verify failed: unable to get local issuer certificate", "is not trusted here"),
        ("The virtual environment was not created because ensurepip is not available.", "no venv module"),
        ("Permission denied (os error 13)", "can't be written"),
    ],
)
def test_known_troubles_are_told_in_one_sentence_with_a_mend(output: str, message: str) -> None:
    fault = processes.trouble("installing packages", f"Resolved 200 packages\n{output}\n")
    assert fault.message.startswith("Installing packages failed. ")
    assert message in fault.message
    assert fault.mend and "\n" not in str(fault)


def test_an_unknown_trouble_shows_the_last_words() -> None:
    text = str(processes.trouble("installing packages", "".join(f"line {number}\n" for number in range(40))))
    assert "line 39" in text and "line 20" not in text


def test_a_program_that_takes_long_is_seen_to_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(processes, "PROGRESS_SECONDS", 0.1)
    output = processes.run([sys.executable, "-c", "import time; time.sleep(0.5); print('done')"], "sleeping")
    assert output == "done\n"
    assert "… sleeping: 0 s" in capsys.readouterr().out


def test_a_program_that_fails_is_a_fault_with_its_words() -> None:
    with pytest.raises(EnvironmentFaultError, match=r"Trying failed; its last words were:\n +broken"):
        processes.run([sys.executable, "-c", "import sys; sys.exit('broken')"], "trying")


def test_a_program_that_is_not_there_is_a_fault() -> None:
    with pytest.raises(EnvironmentFaultError, match="can't be started"):
        processes.run(["/nowhere/program"], "trying")


def test_pips_settings_are_handed_to_uv(places: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.delenv("UV_DEFAULT_INDEX", raising=False)
    assert packages.installer_environment(Places())["UV_DEFAULT_INDEX"] == "http://127.0.0.1:9/simple"
    monkeypatch.setenv("UV_DEFAULT_INDEX", "http://127.0.0.1:8/simple")
    assert packages.installer_environment(Places())["UV_DEFAULT_INDEX"] == "http://127.0.0.1:8/simple"
