"""The commit that creates a table: what Delta engines read of it is what was declared."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from recrawl.tables.catalog import TABLES, Table, TableKind
from recrawl.tables.ddl import arrow_schema, constraints, properties
from recrawl.tables.first_commit import first_commit

AT = datetime(2026, 11, 30, 3, tzinfo=UTC)
ALL = pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)


def _actions(table: Table) -> dict[str, Any]:
    lines = first_commit(table, 30, "11111111-2222-3333-4444-555555555555", AT).decode().splitlines()
    return {name: action for line in lines for name, action in json.loads(line).items()}


@ALL
def test_another_engine_finds_the_declared_table(table: Table, tmp_path: Path) -> None:
    log = tmp_path / "_delta_log"
    log.mkdir()
    (log / f"{0:020}.json").write_bytes(first_commit(table, 30, "11111111-2222-3333-4444-555555555555", AT))
    found = DeltaTable(tmp_path)
    assert (found.version(), found.file_uris()) == (0, [])
    assert pa.schema(found.schema()).equals(arrow_schema(table, nullable=False))
    metadata = found.metadata()
    assert (metadata.description, metadata.partition_columns) == (table.sentence, list(table.partition_by))
    checks = {f"delta.constraints.{name}": check for name, check in constraints(table).items()}
    assert metadata.configuration == properties(table, 30) | checks
    assert metadata.created_time == AT.timestamp() * 1_000


@ALL
def test_every_column_says_what_it_is(table: Table) -> None:
    fields = json.loads(_actions(table)["metaData"]["schemaString"])["fields"]
    assert [field["metadata"]["comment"] for field in fields] == [column.sentence for column in table.columns]


@ALL
def test_a_table_asks_for_no_more_features_than_it_uses(table: Table) -> None:
    protocol = _actions(table)["protocol"]
    if table.kind is TableKind.STATE:
        assert protocol["readerFeatures"] == ["deletionVectors"]
        assert set(protocol["writerFeatures"]) == {"deletionVectors", "checkConstraints", "invariants", "appendOnly"}
    else:
        assert protocol == {"minReaderVersion": 1, "minWriterVersion": 3}
