"""The only reader of the configuration file and of `RECRAWL__…` environment variables.

Order: defaults of the model, then the TOML file, then the environment
(`RECRAWL__SECTION__KEY`, lists and tables as JSON), then overrides of the caller.
"""

from __future__ import annotations

import difflib
import json
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from recrawl.config.model import Configuration
from recrawl.errors import ConfigurationError

ENVIRONMENT_PREFIX = "RECRAWL__"
FILE_VARIABLE = "RECRAWL_CONFIG"
DEFAULT_FILE = "recrawl.toml"

PROJECT_FOLDER = Path(__file__).resolve().parents[3]


def load_configuration(
    file: str | Path | None = None,
    environment: Mapping[str, str] | None = None,
    overrides: Mapping[str, Mapping[str, Any]] | None = None,
) -> Configuration:
    """Load and check the configuration.

    Args:
        file: a TOML file; None means the one that `RECRAWL_CONFIG` names, else `recrawl.toml`
            in the project folder if there is one.
        environment: variables to read; None means the process's own.
        overrides: section → key → value, stronger than all else (command line, trigger form).

    Raises:
        ConfigurationError: unknown key (with the nearest known one), wrong type or value,
            unreadable file.
    """
    environment = os.environ if environment is None else environment
    values: dict[str, dict[str, Any]] = {}
    path = configuration_file(file, environment)
    if path is not None:
        _merge(values, read_file(path), str(path))
    _merge(values, _read_environment(environment), "the environment")
    _merge(values, {k: dict(v) for k, v in (overrides or {}).items()}, "the command")
    try:
        configuration = Configuration.model_validate(values)
    except ValidationError as error:
        raise ConfigurationError(_first_problem(error)) from None
    if not configuration.storage.root:
        storage = configuration.storage.model_copy(update={"root": str(PROJECT_FOLDER / ".recrawl" / "crawl")})
        configuration = configuration.model_copy(update={"storage": storage})
    return configuration


def configuration_file(file: str | Path | None, environment: Mapping[str, str]) -> Path | None:
    """The file that is read: the one given, the one that the environment names, the project's; None: none."""
    named = file or environment.get(FILE_VARIABLE)
    if named:
        return Path(named)
    default = PROJECT_FOLDER / DEFAULT_FILE
    return default if default.is_file() else None


def read_file(path: Path) -> dict[str, Any]:
    """The sections of a configuration file, not yet checked. Raises ConfigurationError."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigurationError(f"The configuration file {path} can't be read: {error.strerror}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"The configuration file {path} is not TOML: {error}.") from None


def _read_environment(environment: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    values: dict[str, dict[str, Any]] = {}
    for variable, text in sorted(environment.items()):
        if not variable.startswith(ENVIRONMENT_PREFIX):
            continue
        section, _, key = variable[len(ENVIRONMENT_PREFIX) :].lower().partition("__")
        if not section or not key:
            raise ConfigurationError(f"{variable} is not of the form {ENVIRONMENT_PREFIX}SECTION__KEY.")
        values.setdefault(section, {})[key] = _environment_value(section, key, variable, text)
    return values


def _environment_value(section: str, key: str, variable: str, text: str) -> Any:
    """Lists and tables are JSON; everything else stays text, which the model converts."""
    model = Configuration.model_fields.get(section)
    section_model: Any = model.annotation if model else None
    field = section_model.model_fields.get(key) if _is_section(section_model) else None
    if field is None or not any(word in str(field.annotation) for word in ("list[", "dict[")):
        return text
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise ConfigurationError(f"{variable} must be JSON: {error}.") from None


def _is_section(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def _merge(values: dict[str, dict[str, Any]], new: Mapping[str, Any], source: str) -> None:
    for section, keys in new.items():
        if section not in Configuration.model_fields:
            raise ConfigurationError(_unknown(f"{section}", list(Configuration.model_fields), source))
        if not isinstance(keys, Mapping):
            raise ConfigurationError(f"{section} in {source} must be a section with keys, not a value.")
        known = list(Configuration.model_fields[section].annotation.model_fields)  # type: ignore[union-attr]
        for key, value in keys.items():
            if key not in known:
                raise ConfigurationError(_unknown(f"{section}.{key}", [f"{section}.{name}" for name in known], source))
            values.setdefault(section, {})[key] = value


def _unknown(name: str, known: list[str], source: str) -> str:
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.4)
    hint = f" Did you mean {near[0]}?" if near else f" Known: {', '.join(known)}."
    return f"Unknown configuration key {name} in {source}.{hint}"


def _first_problem(error: ValidationError) -> str:
    problem = error.errors()[0]
    where = ".".join(str(part) for part in problem["loc"])
    return f"Configuration key {where}: {problem['msg'].removeprefix('Value error, ')}."
