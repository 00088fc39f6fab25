"""docker-compose.yml: valid by its schema, and every name in it refers to something."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from compose_spec import PyCompose

from recrawl.config import load_configuration
from recrawl.config.load import PROJECT_FOLDER

TEXT = (PROJECT_FOLDER / "docker-compose.yml").read_text(encoding="utf-8")
COMPOSE: dict[str, Any] = yaml.safe_load(TEXT)
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
EXAMPLE = (PROJECT_FOLDER / ".env.example").read_text(encoding="utf-8")
EXAMPLE_VARIABLES = dict(re.findall(r"^([A-Z0-9_]+)=(.*)$", EXAMPLE, re.MULTILINE))
VARIABLE = re.compile(r"(?<!\$)\$\{([A-Z0-9_]+)[^}]*\}")

AIRFLOW_SERVICES = [name for name in SERVICES if name.startswith("airflow-")]


def filled_in(part: Any) -> Any:
    """A part of the file with the example's values in the place of its variables."""
    if isinstance(part, dict):
        return {key: filled_in(value) for key, value in part.items()}
    if isinstance(part, list):
        return [filled_in(value) for value in part]
    return VARIABLE.sub(lambda found: EXAMPLE_VARIABLES[found[1]], part) if isinstance(part, str) else part


def test_it_is_valid_by_the_schema() -> None:
    PyCompose.from_json(json.dumps(filled_in(COMPOSE)))


def test_all_the_parts_are_there() -> None:
    assert {"airflow-apiserver", "airflow-scheduler", "airflow-dag-processor", "airflow-triggerer"} <= set(SERVICES)
    assert {"airflow-init", "postgres", "spark-master", "spark-worker-1", "spark-worker-2"} <= set(SERVICES)
    assert {"store", "resolver", "sample-web"} <= set(SERVICES)


@pytest.mark.parametrize("name", SERVICES)
def test_what_a_service_waits_for_exists_and_can_come_true(name: str) -> None:
    for target, how in SERVICES[name].get("depends_on", {}).items():
        assert target in SERVICES
        if how["condition"] == "service_healthy":
            assert "healthcheck" in SERVICES[target]
        if how["condition"] == "service_completed_successfully":
            assert SERVICES[target]["restart"] == "no"


@pytest.mark.parametrize("name", SERVICES)
def test_volumes_and_networks_are_declared(name: str) -> None:
    for mount in SERVICES[name].get("volumes", []):
        source = mount.split(":")[0]
        assert source in COMPOSE["volumes"] or (PROJECT_FOLDER / source).exists()
    assert set(SERVICES[name]["networks"]) <= set(COMPOSE["networks"])


def test_no_declared_volume_is_unused() -> None:
    used = {mount.split(":")[0] for service in SERVICES.values() for mount in service.get("volumes", [])}
    assert set(COMPOSE["volumes"]) == used


def test_each_variable_has_an_example_and_each_example_a_use() -> None:
    assert set(VARIABLE.findall(TEXT)) == set(EXAMPLE_VARIABLES)


def test_no_secret_is_written_down() -> None:
    for name in ("PASSWORD", "SECRET", "FERNET_KEY"):
        for line in re.findall(rf"^.*{name}.*:.+$", TEXT, re.MULTILINE):
            assert "${" in line or "FILE" in line or "$$" in line, line
    examples = [value for key, value in EXAMPLE_VARIABLES.items() if re.search("PASSWORD|SECRET|FERNET", key)]
    assert all("change-me" in value for value in examples)


@pytest.mark.parametrize("name", [name for name in SERVICES if "build" in SERVICES[name]])
def test_dockerfiles_and_what_they_copy_exist(name: str) -> None:
    build = SERVICES[name]["build"]
    context = PROJECT_FOLDER / build["context"]
    dockerfile = context / build["dockerfile"]
    for line in re.findall(r"^COPY (.+)$", dockerfile.read_text(encoding="utf-8"), re.MULTILINE):
        sources = [word for word in line.split() if not word.startswith("--")][:-1]
        for source in sources:
            assert (context / source).exists(), f"{dockerfile.name}: {source}"


@pytest.mark.parametrize("name", AIRFLOW_SERVICES)
def test_every_airflow_service_shares_keys_database_and_home(name: str) -> None:
    environment = SERVICES[name]["environment"]
    first = SERVICES["airflow-apiserver"]["environment"]
    for variable in (
        "AIRFLOW__CORE__FERNET_KEY",
        "AIRFLOW__API_AUTH__JWT_SECRET",
        "AIRFLOW__API__SECRET_KEY",
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN",
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL",
    ):
        assert environment[variable] == first[variable]
    assert "airflow-home:/opt/recrawl/airflow" in SERVICES[name]["volumes"]


@pytest.mark.parametrize(
    "name", [name for name in SERVICES if "RECRAWL__STORAGE__ROOT" in SERVICES[name].get("environment", {})]
)
def test_the_crawls_configuration_is_one_that_loads(name: str) -> None:
    filled = {key: VARIABLE.sub("x", str(value)) for key, value in SERVICES[name]["environment"].items()}
    configuration = load_configuration(file=_empty_file(), environment=filled)
    assert configuration.storage.root == "s3a://x/crawl"
    assert configuration.spark.master == "spark://spark-master:7077"
    addresses = {
        service["networks"]["recrawl"]["ipv4_address"]
        for service in SERVICES.values()
        if isinstance(service["networks"], dict)
    }
    assert set(configuration.dns.servers) <= addresses


def test_ports_are_bound_to_this_machine_alone() -> None:
    published = [port for service in SERVICES.values() for port in service.get("ports", [])]
    assert published and all(port.startswith("127.0.0.1:") for port in published)


def _empty_file() -> Path:
    """A configuration file without a word, so that the developer's own plays no part."""
    return Path("/dev/null")
