"""What engines get to see of the declared tables."""

from __future__ import annotations

import pyarrow as pa
import pytest

from recrawl.tables import vocabulary
from recrawl.tables.catalog import TABLES, Table
from recrawl.tables.ddl import (
    MODEL_VERSION_PROPERTY,
    arrow_schema,
    arrow_type,
    constraints,
    properties,
)

ALL = pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)


@ALL
def test_every_closed_set_becomes_a_check(table: Table) -> None:
    checks = constraints(table)
    for column in table.columns:
        if column.values is not None:
            check = checks[f"{column.name}_known"]
            for member in column.values:
                assert f"'{member.value}'" in check
            assert check.startswith(f"{column.name} IS NULL OR ") == table.nullable(column.name)
        if column.minimum is not None:
            assert checks[f"{column.name}_minimum"].endswith(f"{column.name} >= {column.minimum}")


def test_a_check_is_true_for_null() -> None:
    assert constraints(TABLES["fetches"])["truncated_known"] == (
        "truncated IS NULL OR truncated IN ('length', 'time', 'disconnect')"
    )
    assert constraints(TABLES["skips"])["skip_reason_known"].startswith("skip_reason IN ('quota',")


def test_both_retentions_are_the_days_of_undo() -> None:
    values = properties(TABLES["urls"], undo_days=12)
    assert values["delta.deletedFileRetentionDuration"] == values["delta.logRetentionDuration"] == "interval 12 days"
    assert values[MODEL_VERSION_PROPERTY].isdigit()


def test_statistics_are_kept_for_columns_that_exist() -> None:
    for table in TABLES.values():
        kept = properties(table, 30).get("delta.dataSkippingStatsColumns", "")
        assert set(filter(None, kept.split(","))) <= {column.name for column in table.columns}


@ALL
def test_arrow_has_every_column(table: Table) -> None:
    schema = arrow_schema(table, nullable=False)
    assert schema.names == [column.name for column in table.columns]
    assert [field.nullable for field in schema] == [table.nullable(column.name) for column in table.columns]
    assert all(field.nullable for field in arrow_schema(table))


def test_arrow_types() -> None:
    assert arrow_type("MAP<STRING,BIGINT>") == pa.map_(pa.string(), pa.int64())
    assert arrow_type("ARRAY<BIGINT>") == pa.list_(pa.int64())
    assert arrow_type("DECIMAL(38,0)") == pa.decimal128(38, 0)
    assert arrow_type("TIMESTAMP") == pa.timestamp("us", tz="UTC")
    with pytest.raises(ValueError, match="VARIANT"):
        arrow_type("VARIANT")


def test_every_closed_set_explains_its_words() -> None:
    for name, values in vars(vocabulary).items():
        if isinstance(values, type) and issubclass(values, vocabulary.Vocabulary):
            for member in values:
                assert member.sentence.endswith("."), f"{name}.{member.name}"
