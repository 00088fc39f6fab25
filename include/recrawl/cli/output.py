"""How answers look: tables for people, JSON and CSV for programs.

64-bit ids are text in every JSON: most JSON readers would round them. Times are ISO 8601 in UTC.
"""

from __future__ import annotations

import json
import shutil
import sys
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum
from typing import Any

#: Integers beyond these lose digits in readers that keep numbers as doubles.
_EXACT = 1 << 53
_MIN_WIDTH = 8
_MAX_CELL = 60


def jsonable(value: Any, is_id: bool = False) -> Any:
    """`value` as JSON-ready data.

    Args:
        is_id: the value is a 64-bit id or a checksum, hence text however small it is.
    """
    if value is None or isinstance(value, bool | float):
        return value
    if isinstance(value, Enum):
        return jsonable(value.value)
    if isinstance(value, int):
        return str(value) if is_id or not -_EXACT < value < _EXACT else value
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, datetime):
        moment = value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
        return moment.isoformat().replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, bytes | bytearray):
        return bytes(value).hex()
    if isinstance(value, Mapping):
        return {str(key): jsonable(item, is_id_name(str(key))) for key, item in value.items()}
    if isinstance(value, str):
        return str(value)
    if isinstance(value, Iterable):
        return [jsonable(item, is_id) for item in value]
    return str(value)


def is_id_name(name: str) -> bool:
    """Whether a column of this name holds 64-bit ids or checksums."""
    return name.endswith(("url_id", "url_ids", "_checksum", "cluster_id")) or name in ("id", "bands", "checksum")


def print_json(value: Any) -> None:
    """One JSON document on standard output."""
    print(json.dumps(jsonable(value), indent=2, ensure_ascii=False))


def print_json_line(value: Any) -> None:
    """One JSON document in one line, at once."""
    print(json.dumps(jsonable(value), ensure_ascii=False), flush=True)


def print_rows(columns: Sequence[str], rows: Iterable[Sequence[Any]], width: int | None = None) -> None:
    """A table for people on standard output; cut to the terminal, whole where there is none."""
    if width is None and sys.stdout.isatty():
        width = shutil.get_terminal_size().columns
    for line in table_lines(columns, [[cell(value) for value in row] for row in rows], width):
        print(line)


def print_section(title: str, values: Mapping[str, Any]) -> None:
    """A title and a line for each value, on standard output."""
    print(f"\n{title}")
    for name, value in values.items():
        print(f"  {name:22} {cell(value)}")


def print_titled_rows(title: str, rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> None:
    """A title and a table of some columns of rows; nothing where there is no row."""
    if rows:
        print(f"\n{title}")
        print_rows(columns, [[row[name] for name in columns] for row in rows])


def table_lines(columns: Sequence[str], rows: Sequence[Sequence[str]], width: int | None) -> list[str]:
    """The lines of a table: a head, a rule, the rows; numbers to the right; wide text cut with `…`.

    Args:
        width: columns of the terminal; None cuts single cells only.
    """
    widths = [
        min(_MAX_CELL if len(columns) > 1 else 10_000, max([_cells(name), *(_cells(row[i]) for row in rows)]))
        for i, name in enumerate(columns)
    ]
    while width is not None and sum(widths) + 2 * (len(widths) - 1) > width and max(widths) > _MIN_WIDTH:
        widths[widths.index(max(widths))] -= 1
    right = [bool(rows) and all(_is_number(row[i]) for row in rows) for i in range(len(columns))]
    lines = [_line(columns, widths, right), "  ".join("-" * size for size in widths)]
    lines += [_line(row, widths, right) for row in rows]
    return lines


def _line(values: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    parts = []
    for value, size, to_right in zip(values, widths, right, strict=True):
        text = _cut(value, size)
        space = " " * (size - _cells(text))
        parts.append(space + text if to_right else text + space)
    return "  ".join(parts).rstrip()


def _cut(text: str, size: int) -> str:
    if _cells(text) <= size:
        return text
    kept, used = [], 0
    for character in text:
        used += _character_cells(character)
        if used > size - 1:
            break
        kept.append(character)
    return "".join(kept) + "…"


def _cells(text: str) -> int:
    """How many terminal cells a text takes: East Asian wide characters two, combining ones none."""
    return len(text) if text.isascii() else sum(map(_character_cells, text))


def _character_cells(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _is_number(text: str) -> bool:
    return text in ("", "-") or text.lstrip("-").replace(".", "", 1).replace(",", "").isdigit()


def cell(value: Any) -> str:
    """A value as one line of text; control characters are made visible, so pages can't drive the terminal."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, datetime):
        moment = value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
        return moment.strftime("%Y-%m-%d %H:%M:%S")
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, Mapping | list | tuple):
        return printable(json.dumps(jsonable(value), ensure_ascii=False))
    return printable(str(jsonable(value)))


def printable(text: str) -> str:
    """`text` in one line without control characters."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else (" " if c in "\n\r\t" else "\ufffd") for c in text)


def csv_text(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Rows as CSV (RFC 4180, with line feeds): a header line, NULL as nothing, lists and maps as JSON."""
    lines = [",".join(map(_csv_field, columns))]
    lines += [",".join(_csv_field(jsonable(value)) for value in row) for row in rows]
    return "".join(f"{line}\n" for line in lines)


def _csv_field(value: Any) -> str:
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    # The standard library's writer leaves a lone carriage return bare, which ends a row for many readers.
    return '"' + text.replace('"', '""') + '"' if any(mark in text for mark in '",\r\n') else text


def size_text(size_bytes: int | float) -> str:
    """Bytes for people: 512 B, 3.4 MB."""
    size = float(size_bytes)
    for unit in ("B", "kB", "MB", "GB"):
        if abs(size) < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"


def duration_text(seconds: float) -> str:
    """Seconds for people: 42 s, 3 min 10 s, 2 h 5 min."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
