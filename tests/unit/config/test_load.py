"""Loading the configuration: the later source is the stronger, and nothing unknown passes."""

from __future__ import annotations

from pathlib import Path

import pytest

from recrawl.config.load import load_configuration
from recrawl.errors import ConfigurationError


def _load(
    tmp_path: Path, toml: str = "", environment: dict[str, str] | None = None, **overrides: dict[str, object]
) -> object:
    file = tmp_path / "recrawl.toml"
    file.write_text(toml, encoding="utf-8")
    return load_configuration(file, environment or {}, overrides)


def test_the_later_source_is_the_stronger(tmp_path: Path) -> None:
    file = tmp_path / "recrawl.toml"
    file.write_text("[fetch]\nslots = 3\nmax_redirects = 4\nmin_delay_seconds = 9\n", encoding="utf-8")
    environment = {"RECRAWL__FETCH__SLOTS": "5", "RECRAWL__FETCH__MAX_REDIRECTS": "6", "PATH": "/bin"}
    configuration = load_configuration(file, environment, {"fetch": {"slots": 7}})
    assert configuration.fetch.slots == 7
    assert configuration.fetch.max_redirects == 6
    assert configuration.fetch.min_delay_seconds == 9
    assert configuration.fetch.engine == "curl"


def test_lists_and_tables_of_the_environment_are_json() -> None:
    environment = {
        "RECRAWL__FETCH__ALLOWED_PRIVATE_RANGES": '["127.0.0.0/8"]',
        "RECRAWL__FETCH__HOST_SETTINGS": '{"example.org": {"password": "hidden"}}',
    }
    configuration = load_configuration(None, environment)
    assert configuration.fetch.allowed_private_ranges == ["127.0.0.0/8"]
    assert configuration.fetch.host_settings["example.org"].password.get_secret_value() == "hidden"
    assert "hidden" not in repr(configuration)
    assert "hidden" not in str(configuration.without_secrets())


@pytest.mark.parametrize(
    ("proxy", "kept"),
    [
        ("http://user:hidden@127.0.0.1:3128", "http://127.0.0.1:3128"),
        ("user:hid@den@proxy.test:3128/", "proxy.test:3128/"),
        ("socks5h://127.0.0.1:9050", "socks5h://127.0.0.1:9050"),
        ("", ""),
    ],
)
def test_what_is_shown_and_stored_has_no_secrets(proxy: str, kept: str) -> None:
    extra = {"spark.hadoop.fs.s3a.secret.key": "hidden", "spark.ui.port": "4041"}
    configuration = load_configuration(None, {}, {"fetch": {"proxy": proxy}, "spark": {"extra": extra}})
    shown = configuration.without_secrets()
    assert shown["fetch"]["proxy"] == kept  # type: ignore[index]
    assert shown["spark"]["extra"] == {"spark.ui.port": "4041"}  # type: ignore[index]


@pytest.mark.parametrize(
    ("toml", "environment", "said"),
    [
        ("[fetch]\nslot = 3\n", {}, "Did you mean fetch.slots?"),
        ("[fetsh]\n", {}, "Did you mean fetch?"),
        ("fetch = 3\n", {}, "must be a section"),
        ("[fetch\n", {}, "is not TOML"),
        ("[fetch]\nslots = -1\n", {}, "fetch.slots"),
        ("", {"RECRAWL__FETCH__SLOT": "3"}, "Did you mean fetch.slots?"),
        ("", {"RECRAWL__FETCH": "3"}, "is not of the form"),
        ("", {"RECRAWL__SEED__FILES": "a.txt"}, "must be JSON"),
        ("", {"RECRAWL__FETCH__ALLOWED_PRIVATE_RANGES": '["nowhere"]'}, "is not a CIDR range"),
        ("[fetch]\nmin_delay_seconds = 9\nmax_delay_seconds = 1\n", {}, "max_delay_seconds must not be less"),
    ],
)
def test_what_can_not_be_used_is_named(tmp_path: Path, toml: str, environment: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        _load(tmp_path, toml, environment)
    assert said in str(refused.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"absent\.toml can't be read"):
        load_configuration(tmp_path / "absent.toml", {})


def test_the_environment_may_name_the_file(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('[agent]\nname = "mybot"\n', encoding="utf-8")
    assert load_configuration(None, {"RECRAWL_CONFIG": str(file)}).agent.name == "mybot"


def test_an_empty_root_becomes_the_projects_own() -> None:
    assert load_configuration(None, {}).storage.root.endswith("/.recrawl/crawl")
