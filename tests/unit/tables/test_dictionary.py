"""The data dictionary says everything that is declared."""

from __future__ import annotations

from recrawl.tables.catalog import TABLES
from recrawl.tables.dictionary import closed_sets, data_dictionary, markdown_table


def test_every_table_column_and_word_is_in_it() -> None:
    page = data_dictionary()
    for table in TABLES.values():
        section = page.partition(f"### {table.name}\n")[2].partition("\n### ")[0]
        assert table.sentence in section
        for column in table.columns:
            assert f"| `{column.name}` | {column.type} |" in section
    for values in closed_sets():
        for member in values:
            assert f"| `{member.value}` | {member.sentence} |" in page


def test_each_link_has_its_target() -> None:
    page = data_dictionary()
    targets = {line.lstrip("# ").lower() for line in page.splitlines() if line.startswith("#")}
    for line in page.splitlines():
        for part in line.split("](#")[1:]:
            assert part.partition(")")[0] in targets


def test_cells_keep_to_their_line() -> None:
    assert markdown_table(("a", "b"), [("x|y", "1\n2")]).splitlines() == [
        "| a | b |",
        "| --- | --- |",
        "| x\\|y | 1 2 |",
    ]
