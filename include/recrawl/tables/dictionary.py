"""The data dictionary as Markdown: every table, column and closed set, from their declarations."""

from __future__ import annotations

from collections.abc import Iterable

from recrawl.tables import vocabulary
from recrawl.tables.catalog import MODEL_VERSION, TABLES, Table, TableKind
from recrawl.tables.columns import Column

_LAYOUTS = {
    TableKind.STATE: "state: folded once a round; partitioned by `bucket`",
    TableKind.EVENT: "event: a slice a round; partitioned by `round_id`",
    TableKind.LEDGER: "ledger: small, lasting, merged by key",
}


def data_dictionary() -> str:
    """The whole page."""
    parts = [
        "# Data dictionary",
        "Generated from `include/recrawl/tables/` by `recrawl docs`; don't edit. "
        f"Model version {MODEL_VERSION}. Analysts see each table as `crawl.<table>`; times are UTC; "
        "64-bit ids are text in every JSON.",
        "## Tables",
        markdown_table(
            ("table", "a row is", "kind", "written by", "key"),
            [
                (f"[`{t.name}`](#{t.name})", t.sentence, t.kind.value, t.owner, ", ".join(f"`{k}`" for k in t.key))
                for t in TABLES.values()
            ],
        ),
        *(_table_section(table) for table in TABLES.values()),
        "## Closed sets",
        *(_set_section(values) for values in closed_sets()),
    ]
    return "\n\n".join(parts) + "\n"


def _table_section(table: Table) -> str:
    rows = [
        (
            f"`{column.name}`",
            column.type,
            "yes" if table.nullable(column.name) else "",
            column.sentence + _bounds(column),
        )
        for column in table.columns
    ]
    key = ", ".join(f"`{name}`" for name in table.key)
    return (
        f"### {table.name}\n\n{table.sentence} Key: {key}. Written by {table.owner}. {_LAYOUTS[table.kind]}.\n\n"
        + markdown_table(("column", "type", "NULL", "meaning"), rows)
    )


def _bounds(column: Column) -> str:
    notes = []
    if column.values is not None:
        notes.append(f"One of [{column.values.__name__}](#{column.values.__name__.lower()}).")
    if column.minimum is not None:
        notes.append(f"At least {column.minimum}.")
    if column.volatile:
        notes.append("May differ when a step runs again.")
    return "".join(f" {note}" for note in notes)


def closed_sets() -> list[type[vocabulary.Vocabulary]]:
    """Every closed set, in the order of their declaration."""
    return [
        item
        for item in vars(vocabulary).values()
        if isinstance(item, type) and issubclass(item, vocabulary.Vocabulary) and item is not vocabulary.Vocabulary
    ]


def _set_section(values: type[vocabulary.Vocabulary]) -> str:
    users = [f"`{t.name}.{c.name}`" for t in TABLES.values() for c in t.columns if c.values is values]
    where = f" Columns: {', '.join(users)}." if users else ""
    rows = [(f"`{member.value}`", member.sentence) for member in values]
    head = f"### {values.__name__}\n\n{(values.__doc__ or '').strip()}{where}"
    return f"{head}\n\n{markdown_table(('value', 'meaning'), rows)}"


def markdown_table(columns: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A Markdown table; pipes in cells are escaped, line breaks become spaces."""
    lines = [list(columns)]
    lines.append(["---"] * len(lines[0]))
    lines += [[cell.replace("|", "\\|").replace("\n", " ") for cell in row] for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
