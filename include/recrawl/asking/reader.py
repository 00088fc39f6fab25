"""The tables of a crawl through deltalake's query engine: SQL in well under a second, no JVM.

Deletion vectors are honoured. State tables are seen as the last closed round left them: when a
fold or an undo is half-way, they are read at the versions from before it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from recrawl.asking.named_rounds import ENDED_STATES, RoundRow, resolve_round
from recrawl.errors import TableError, UsageError
from recrawl.storage import Store
from recrawl.stored_tables import engine_sentence, open_table
from recrawl.tables.catalog import DATABASE, STATE_TABLES, TABLES
from recrawl.tables.vocabulary import RoundState
from recrawl.urls.canonical import Canonicalizer
from recrawl.urls.keys import url_id

if TYPE_CHECKING:
    from deltalake import QueryBuilder

_READING = re.compile(r"\s*(?:\(\s*)*(?:select|with|values|explain|show|describe)\b", re.IGNORECASE)
_COMMENT_OR_STRING = r"--[^\n]*|/\*.*?\*/|'(?:[^']|'')*'"
_URL_ID_CALL = re.compile(rf"({_COMMENT_OR_STRING})|\burl_id\s*\(\s*'((?:[^']|'')*)'\s*\)", re.IGNORECASE | re.DOTALL)
_IGNORED = re.compile(_COMMENT_OR_STRING, re.DOTALL)
_HALF_WAY = frozenset({RoundState.FOLDING.value, RoundState.UNDOING.value})


@dataclass(frozen=True)
class TableSize:
    """How large a table is now.

    Attributes:
        rows: live rows, deletion vectors taken off.
        files, bytes: data files of the current version and their size.
        version: the Delta version.
    """

    table: str
    rows: int
    files: int
    bytes: int
    version: int


class Reader:
    """Reads a crawl's tables.

    Args:
        store: the storage root.
        canonicalizer: what `url_id('…')` in a query canonicalises with; None: the default rules.
    """

    def __init__(self, store: Store, canonicalizer: Canonicalizer | None = None) -> None:
        self._store = store
        self._canonicalizer = canonicalizer

    def query(self, sql: str, at: str | None = None) -> pa.Table:
        """The rows of a SELECT over `crawl.<table>` (or `<table>`), times in UTC.

        Args:
            sql: one reading statement; `url_id('…')` stands for the id of a URL as written.
            at: a round as people name it: the tables as they were when it was closed.

        Raises:
            UsageError: not a reading statement, an unknown table or column, wrong SQL, or a
                round that does not exist or has not ended.
            TableError: no table yet, or a table newer than this program.
        """
        text = sql.strip().rstrip(";").strip()
        if not _READING.match(text):
            raise UsageError("Only reading statements are answered: SELECT, WITH, VALUES, EXPLAIN, SHOW, DESCRIBE.")
        builder = self._builder(self._pinned_versions(at), text)
        try:
            return pa.table(builder.execute(self._with_ids(text)))
        except Exception as error:
            if type(error).__name__ != "DeltaError":
                raise
            raise UsageError(f"The query can't be answered: {engine_sentence(error)}") from None

    def rounds(self) -> list[dict[str, Any]]:
        """The rows of `rounds` by number, MAP columns as dicts; [] before the first round."""
        if self.version("rounds") is None:
            return []
        rows = self._rows("SELECT * FROM rounds ORDER BY round_number")
        for row in rows:
            for name in ("engine_versions", "versions_at_open", "versions_at_close"):
                row[name] = dict(row[name]) if row.get(name) is not None else None
        return rows

    def resolve_round(self, text: str) -> RoundRow:
        """The round that a person means. Raises UsageError naming the candidates."""
        return resolve_round(self.rounds(), text)

    def versions_at(self, text: str) -> dict[str, int]:
        """The version of each table at the close of a round. Raises UsageError for one that has not ended."""
        row = self.resolve_round(text)
        if row["round_state"] not in ENDED_STATES or row["versions_at_close"] is None:
            raise UsageError(
                f"Round {row['round_number']} ({row['round_id']}) is {row['round_state']}: it has no end to look at.",
                "Without --at, the tables are shown as they are now.",
            )
        return {name: int(version) for name, version in row["versions_at_close"].items()}

    def current_versions(self) -> dict[str, int]:
        """Versions that differ from the latest: those of state tables before a half-way fold or undo."""
        half_way = [row for row in self.rounds() if row["round_state"] in _HALF_WAY]
        if not half_way:
            return {}
        opened = half_way[0]["versions_at_open"] or {}
        return {name: int(version) for name, version in opened.items() if name in STATE_TABLES}

    def version(self, table: str) -> int | None:
        """The latest Delta version of a table; None when it does not exist yet."""
        opened = open_table(self._store, table)
        return None if opened is None else opened.version()

    def table_sizes(self) -> list[TableSize]:
        """The sizes of all tables that exist, in the catalog's order."""
        sizes = []
        for name in TABLES:
            table = open_table(self._store, name)
            if table is None:
                continue
            files = pa.table(table.get_add_actions(flatten=True))
            rows = self._rows(f"SELECT count(*) AS n FROM {name}")[0]["n"]
            total = sum(files.column("size_bytes").to_pylist())
            sizes.append(TableSize(name, rows, files.num_rows, total, table.version()))
        return sizes

    def _rows(self, sql: str) -> list[dict[str, Any]]:
        """Rows at the latest versions."""
        rows: list[dict[str, Any]] = pa.table(self._builder({}, sql).execute(sql)).to_pylist()
        return rows

    def _pinned_versions(self, at: str | None) -> Mapping[str, int]:
        if at is not None:
            return self.versions_at(at)
        return self.current_versions()

    def _builder(self, versions: Mapping[str, int], sql: str) -> QueryBuilder:
        from deltalake import QueryBuilder

        words = set(re.findall(r"\w+", _IGNORED.sub(" ", sql).lower()))
        builder = QueryBuilder()
        pa.table(builder.execute(f"CREATE SCHEMA {DATABASE}"))
        for name in TABLES:
            if name not in words:
                continue
            table = open_table(self._store, name, versions.get(name))
            if table is not None:
                builder.register(name, table)
                builder.register(f"{DATABASE}.{name}", table)
            elif re.search(rf"\b(?:from|join)\s+(?:{DATABASE}\.)?{name}\b", sql, re.IGNORECASE):
                raise TableError(
                    f"There is no table {DATABASE}.{name} under {self._store.root} yet.",
                    "It is made by the first round: `recrawl round --seeds FILE`.",
                )
        return builder

    def _with_ids(self, sql: str) -> str:
        """`url_id('…')` replaced by the number, strings and comments left alone."""

        def replaced(match: re.Match[str]) -> str:
            if match[1] is not None:
                return match[1]
            identity = self.url_id(match[2].replace("''", "'"))
            return "CAST(NULL AS BIGINT)" if identity is None else f"({identity})"

        return _URL_ID_CALL.sub(replaced, sql)

    def url_id(self, url: str) -> int | None:
        """The id of a URL as written: canonicalised, then xxhash64; None where it is no URL."""
        if self._canonicalizer is None:
            self._canonicalizer = Canonicalizer()
        canonical = self._canonicalizer.canonical(url)
        return None if canonical is None else url_id(canonical)
