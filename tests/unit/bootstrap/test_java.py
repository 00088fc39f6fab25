"""Finding a Java, and the shim in front of the package's."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from recrawl.bootstrap import java
from recrawl.bootstrap.places import Places
from recrawl.errors import EnvironmentFaultError


def make_java(home: Path, version: str) -> Path:
    """A Java home whose java tells a version and its arguments."""
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    tell = f"echo 'openjdk version \"{version}\"' >&2"
    script = f'#!/bin/sh\nif [ "$1" = -version ]; then {tell}; else printf "%s\\n" "$@"; fi\n'
    program.write_text(script, encoding="utf-8")
    program.chmod(0o755)
    return home


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Places:
    """A checkout on a machine without any Java in the usual folders."""
    monkeypatch.setattr(java, "_USUAL_FOLDERS", (str(tmp_path / "jvm"),))
    return Places(tmp_path / "project")


@pytest.mark.parametrize(
    ("told", "version"), [("17.0.15", 17), ("1.8.0_392", 8), ("21", 21), ("25-ea", 25), ("11.0.2", 11)]
)
def test_the_version_is_read_from_what_java_tells(tmp_path: Path, told: str, version: int) -> None:
    assert java.version_of(make_java(tmp_path, told)) == version


def test_a_folder_without_java_has_version_0(tmp_path: Path) -> None:
    assert java.version_of(tmp_path) == 0


def test_java_home_comes_before_the_path_and_the_path_before_the_usual_folders(places: Places, tmp_path: Path) -> None:
    named, on_path = make_java(tmp_path / "named", "21.0.1"), make_java(tmp_path / "path", "18")
    usual = make_java(tmp_path / "jvm" / "jdk-17", "17.0.2")
    environment = {"JAVA_HOME": str(named), "PATH": str(on_path / "bin")}
    assert java.find_java(places, environment) == java.Java(named, 21)
    del environment["JAVA_HOME"]
    assert java.find_java(places, environment) == java.Java(on_path, 18)
    assert java.find_java(places, {"PATH": ""}) == java.Java(usual, 17)


def test_a_java_that_is_too_old_is_passed_over(places: Places, tmp_path: Path) -> None:
    old, own = make_java(tmp_path / "old", "11.0.2"), make_java(places.java, "17.0.9")
    assert java.find_java(places, {"JAVA_HOME": str(old), "PATH": ""}) == java.Java(own, 17)


def test_the_machines_java_is_taken_behind_the_shim_until_it_goes(
    places: Places, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = make_java(tmp_path / "first", "21"), make_java(tmp_path / "second", "17.0.1")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    for home in (first, second):
        # The shim is a shell's work; `sh` has to be found.
        monkeypatch.setenv("PATH", f"{home / 'bin'}:/bin:/usr/bin")
        java.adopt_java(places)
        assert java.java_environment(places) == {"JAVA_HOME": str(places.java)}
        assert java.version_of(places.java) == java.version_of(home)
        (home / "bin" / "java").unlink()
    monkeypatch.setenv("JAVA_HOME", str(make_java(tmp_path / "named", "18")))
    assert java.java_environment(places) == {"JAVA_HOME": str(tmp_path / "named")}


def test_no_java_is_a_fault_with_its_mend(places: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    assert java.find_java(places) is None
    with pytest.raises(EnvironmentFaultError, match=r"no Java 17 or newer.*make round"):
        java.java_environment(places)


def test_the_shim_drops_the_module_that_the_package_lacks_and_nothing_else(tmp_path: Path) -> None:
    real = make_java(tmp_path / "real home", "17.0.9") / "bin" / "java"
    java.write_shim(tmp_path / "shim", real)
    assert java.version_of(tmp_path / "shim") == 17
    given = ["-cp", "a b:c", "--add-modules=jdk.incubator.vector", "-Dx=*", "", "--add-modules=java.sql", "Main"]
    shown = subprocess.run([str(tmp_path / "shim/bin/java"), *given], capture_output=True, text=True, check=True).stdout
    assert shown.split("\n")[:-1] == [
        argument for argument in given if argument != "--add-modules=jdk.incubator.vector"
    ]
