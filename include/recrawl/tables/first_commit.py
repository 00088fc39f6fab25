"""The first commit of a Delta table: what `CREATE TABLE` would write, without an engine.

The form is that of the Delta transaction log protocol, sections "Change Metadata" and "Protocol
Evolution". Readers and writers need no more features than the table uses.
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import pyarrow as pa

from recrawl.tables.catalog import Table, TableKind
from recrawl.tables.ddl import arrow_schema, constraints, properties

#: Writer version 3: NOT NULL and CHECK constraints.
_PLAIN_PROTOCOL: dict[str, Any] = {"minReaderVersion": 1, "minWriterVersion": 3}

#: Deletion vectors have no version of their own, only a feature; the others are those of version 3.
_VECTOR_PROTOCOL: dict[str, Any] = {
    "minReaderVersion": 3,
    "minWriterVersion": 7,
    "readerFeatures": ["deletionVectors"],
    "writerFeatures": ["deletionVectors", "checkConstraints", "invariants", "appendOnly"],
}

def first_commit(table: Table, undo_days: int, table_id: str, at: datetime) -> bytes:
    """The content of `_delta_log/00000000000000000000.json`.

    Args:
        undo_days: days that time travel and undo reach back.
        table_id: a UUID, the table's identity.
        at: when it is created, aware.
    """
    milliseconds = int(at.timestamp() * 1_000)
    checks = {f"delta.constraints.{name}": check for name, check in constraints(table).items()}
    partitions = list(table.partition_by)
    actions: list[dict[str, Any]] = [
        {
            "commitInfo": {
                "timestamp": milliseconds,
                "operation": "CREATE TABLE",
                "operationParameters": {"partitionBy": json.dumps(partitions), "description": table.sentence},
                "isBlindAppend": True,
            }
        },
        {"protocol": _VECTOR_PROTOCOL if table.kind is TableKind.STATE else _PLAIN_PROTOCOL},
        {
            "metaData": {
                "id": table_id,
                "description": table.sentence,
                "format": {"provider": "parquet", "options": {}},
                "schemaString": json.dumps(_schema(table), ensure_ascii=False),
                "partitionColumns": partitions,
                "configuration": properties(table, undo_days) | checks,
                "createdTime": milliseconds,
            }
        },
    ]
    return "".join(f"{json.dumps(action, ensure_ascii=False)}\n" for action in actions).encode()


def _schema(table: Table) -> dict[str, Any]:
    from deltalake import Schema

    commented = [
        field.with_metadata({"comment": column.sentence})
        for field, column in zip(arrow_schema(table, nullable=False), table.columns, strict=True)
    ]
    schema: dict[str, Any] = json.loads(Schema.from_arrow(pa.schema(commented)).to_json())
    return schema
