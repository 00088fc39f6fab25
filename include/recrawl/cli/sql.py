"""`recrawl sql`: Spark SQL over `crawl.<table>`, one query or a prompt."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recrawl.cli import output
from recrawl.cli.context import Context
from recrawl.errors import RecrawlError, TableError

if TYPE_CHECKING:
    import pyarrow as pa

    from recrawl.config.model import Configuration

#: Rows that a prompt shows; a query on the command line gives all of them.
_PROMPT_ROWS = 100
_HISTORY = Path("~/.local/state/recrawl/sql_history").expanduser()

Query = Callable[[str], "pa.Table"]


def add_commands(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Add `sql` to the tree."""
    sql = commands.add_parser(
        "sql", parents=[shared], help="ask the tables: SELECT … FROM crawl.pages", allow_abbrev=False,
        description="Spark SQL over crawl.<table>, in UTC; url_id('…') gives the id of a URL. Without a query: a "
        "prompt. The tables: `recrawl sql \"SHOW TABLES IN crawl\"`, their columns: docs/generated/data-dictionary.md.",
    )  # fmt: skip
    sql.add_argument("query", nargs="?", metavar="QUERY", help="one statement; `-` reads it from standard input")
    sql.add_argument("--at", metavar="ROUND", help="the tables as that round left them: an id, number, date, last, -2")
    sql.add_argument("--csv", action="store_true", help="the answer as CSV")
    sql.add_argument(
        "--engine", choices=("spark", "arrow"), default="spark",
        help="spark: all of Spark SQL (default); arrow: deltalake's engine, at once, no JVM",
    )  # fmt: skip
    sql.set_defaults(run=_sql)


def _sql(context: Context) -> int:
    arguments = context.arguments
    with _engine(context) as query:
        if arguments.query is not None:
            text = sys.stdin.read() if arguments.query == "-" else arguments.query
            _print(context, query(text), None)
            return 0
        return _prompt(context, query)


@contextmanager
def _engine(context: Context) -> Iterator[Query]:
    from recrawl.tables.catalog import TABLES_FOLDER

    at = context.arguments.at
    if context.arguments.engine == "arrow":
        reader = context.reader
        yield lambda text: reader.query(text, at)
        return
    if not context.store.exists(TABLES_FOLDER):
        raise TableError(f"There are no tables under {context.store.root} yet.", "The first round makes them.")
    versions = context.reader.versions_at(at) if at else context.reader.current_versions()

    from recrawl.spark.session import open_session
    from recrawl.spark.sql import open_sql, query

    # A folder that is there: by default Spark makes a new one where the person stands.
    settings = {"spark.sql.warehouse.dir": context.store.uri(TABLES_FOLDER)}
    session = open_session(with_spark_settings(context.configuration, settings))
    try:
        open_sql(session, context.store, versions, context.configuration_in_force.urls)
        yield lambda text: query(session, text)
    finally:
        session.stop()


def with_spark_settings(configuration: Configuration, settings: dict[str, str]) -> Configuration:
    """The configuration with further Spark settings; those that it names itself are stronger."""
    spark = configuration.spark.model_copy(update={"extra": settings | configuration.spark.extra})
    return configuration.model_copy(update={"spark": spark})


def _print(context: Context, table: pa.Table, limit: int | None) -> None:
    names = table.column_names
    if not names:
        return
    shown = table if limit is None else table.slice(0, limit)
    rows = list(zip(*(_values(column) for column in shown.columns), strict=True))
    if context.json:
        output.print_json([dict(zip(names, row, strict=True)) for row in rows])
    elif context.arguments.csv:
        sys.stdout.write(output.csv_text(names, rows))
    elif len(names) == len(rows) == 1 and "\n" in str(rows[0][0]):
        # A plan or a page's text: lines that belong to themselves.
        print("\n".join(output.printable(line) for line in str(rows[0][0]).splitlines()))
    else:
        output.print_rows(names, rows)
        more = f"; the first {limit} are shown" if limit is not None and table.num_rows > limit else ""
        context.note(f"({table.num_rows} row{'' if table.num_rows == 1 else 's'}{more})")


def _values(column: pa.ChunkedArray) -> list[Any]:
    """A column's values; maps as dicts, not as lists of pairs."""
    import pyarrow as pa

    values: list[Any] = column.to_pylist()
    if pa.types.is_map(column.type):
        return [None if value is None else dict(value) for value in values]
    return values


def _prompt(context: Context, query: Query) -> int:
    """Read statements up to their semicolon until the end of input; a fault ends a statement, not the prompt."""
    interactive = sys.stdin.isatty()
    if interactive:
        _remember_history()
        at = f" as of round {context.arguments.at}" if context.arguments.at else ""
        context.note(f"SQL over crawl.<table>{at}. A statement ends with `;`. Leave with Ctrl-D.")
    status = 0
    for statement in statements(_lines(interactive)):
        try:
            _print(context, query(statement), _PROMPT_ROWS if interactive else None)
        except RecrawlError as error:
            status = error.exit_status
            context.note(f"recrawl: {error}")
    return 0 if interactive else status


def _lines(interactive: bool) -> Iterator[str]:
    first = True
    while True:
        try:
            line = input(("crawl> " if first else "   ... ") if interactive else "")
        except EOFError:
            return
        except KeyboardInterrupt:
            print()
            yield ";"
            first = True
            continue
        first = line.rstrip().endswith(";") or (first and not line.strip())
        yield line


def statements(lines: Iterator[str]) -> Iterator[str]:
    """The statements in `lines`: each up to a `;` at the end of a line; the last may lack it."""
    pending: list[str] = []
    for line in lines:
        if not pending and line.strip().lower() in ("exit", "quit", "exit;", "quit;"):
            return
        pending.append(line)
        if line.rstrip().endswith(";"):
            text = "\n".join(pending).strip().rstrip(";").strip()
            pending = []
            if text:
                yield text
    text = "\n".join(pending).strip()
    if text:
        yield text


def _remember_history() -> None:
    try:
        import atexit
        import readline

        _HISTORY.parent.mkdir(parents=True, exist_ok=True)
        if _HISTORY.exists():
            readline.read_history_file(_HISTORY)
        readline.set_history_length(1000)
        atexit.register(readline.write_history_file, _HISTORY)
    except (ImportError, OSError):
        # No line editing or no place for its history: the prompt works without.
        return
