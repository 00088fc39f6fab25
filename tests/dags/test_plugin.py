"""The plugin as Airflow loads it."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from types import ModuleType

import pytest

from recrawl.config.load import PROJECT_FOLDER


@pytest.fixture
def plugin_module() -> Iterator[ModuleType]:
    """The plugin's file, imported as Airflow does."""
    spec = importlib.util.spec_from_file_location("recrawl_plugin", PROJECT_FOLDER / "plugins" / "recrawl_plugin.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["recrawl_plugin"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["recrawl_plugin"]


def test_it_offers_the_macros_of_a_round(plugin_module: ModuleType) -> None:
    from airflow.plugins_manager import AirflowPlugin

    from recrawl.orchestration.rounds import MACROS

    plugin = plugin_module.RecrawlPlugin
    assert issubclass(plugin, AirflowPlugin) and plugin.name == "recrawl"
    plugin.validate()
    assert {macro.__name__ for macro in plugin.macros} == set(MACROS)
