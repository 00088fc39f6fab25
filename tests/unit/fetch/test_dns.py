"""Names: the hosts file, and the cache before the name servers."""

from __future__ import annotations

from pathlib import Path

import pytest

from recrawl.clock import SystemClock
from recrawl.config.model import Dns
from recrawl.errors import ConfigurationError
from recrawl.fetch.dns import Resolved, Resolver, host_name, read_hosts_file


def test_a_hosts_file_is_read_as_systems_read_theirs(tmp_path: Path) -> None:
    path = tmp_path / "hosts"
    path.write_text("# names\n127.0.0.1 a.test A2.test # comment\n\n127.0.0.2\ta.test\n::1 six.test.\n")
    assert read_hosts_file(str(path)) == {
        "a.test": ("127.0.0.1", "127.0.0.2"),
        "a2.test": ("127.0.0.1",),
        "six.test": ("::1",),
    }


@pytest.mark.parametrize("text", ["a.test 127.0.0.1\n", "300.1.1.1 a.test\n"])
def test_a_bad_line_is_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "hosts"
    path.write_text(text)
    with pytest.raises(ConfigurationError, match="line 1"):
        read_hosts_file(str(path))


def test_a_missing_file_is_a_fault(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="can't be read"):
        Resolver(Dns(hosts_file=str(tmp_path / "none")), SystemClock())


def test_literals_and_unknown_names(tmp_path: Path) -> None:
    path = tmp_path / "hosts"
    path.write_text("127.0.0.1 a.test\n")
    resolver = Resolver(Dns(hosts_file=str(path)), SystemClock())
    assert resolver.known("10.0.0.1") == Resolved(("10.0.0.1",))
    assert resolver.known("a.test") == Resolved(("127.0.0.1",))
    assert resolver.known("b.test") == Resolved(())  # the system's resolver is asked


@pytest.mark.parametrize(
    ("authority", "name"), [("a.test", "a.test"), ("a.test:81", "a.test"), ("[::1]:81", "::1"), ("[::1]", "::1")]
)
def test_the_name_of_an_authority(authority: str, name: str) -> None:
    assert host_name(authority) == name
