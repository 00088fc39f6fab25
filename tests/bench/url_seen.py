"""Is a URL new? The exact join alone and with Bloom filters before it, and the whole step dedupe.

    python -m tests.bench.url_seen --known 1 5 20 --candidates 1 --step

For each size (in millions) a synthetic table `urls` is written, and as many candidates as asked for, half
of them known. Measured are: building the filters (what `rank` does once, then only adds to them), the join
alone, the join behind the filters; with `--step` also the whole step dedupe over as many links from pages
of 50 links. Every answer is checked against what is true.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import functions as F

from jobs.dedupe import run
from jobs.dedupe_seen import keep_filters, known_among, maybe_known
from recrawl.spark.application import Step
from recrawl.table_parts import PartFile
from recrawl.tables.catalog import TABLES, TABLES_FOLDER
from recrawl.tables.ddl import arrow_schema
from tests.bench.process_tree import ProcessTree
from tests.bench.web import described, machine
from tests.jobs.crawl import BUCKETS, JobCrawl
from tests.unit.asking.small_crawl import rows_of

MILLION = 1_000_000
_LINKS_PER_PAGE = 50
_FILE_ROWS = 250_000


@dataclass(frozen=True)
class Measured:
    """One figure: wall seconds and the CPU of the process tree."""

    known: int
    candidates: int
    what: str
    seconds: float
    cpu_seconds: float


def ids_of(numbers: npt.NDArray[np.uint64]) -> pa.Array:
    """Distinct ids that look like hashes (the finaliser of splitmix64)."""
    mixed = numbers + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return pa.array((mixed ^ (mixed >> np.uint64(31))).view(np.int64))


def urls_of(numbers: npt.NDArray[np.uint64]) -> tuple[pa.Array, pa.Array]:
    """(url, host): 200 pages a host."""
    hosts = pc.binary_join_element_wise("host", pa.array(numbers // 200).cast(pa.string()), ".test", "")
    paths = pa.array(numbers).cast(pa.string())
    return pc.binary_join_element_wise("http://", hosts, "/section/page-", paths, ""), hosts


def write_urls(crawl: JobCrawl, count: int) -> None:
    """A table `urls` of `count` rows."""

    def parts() -> Iterator[tuple[int, dict[str, pa.Array]]]:
        for bucket in range(BUCKETS):
            numbers = np.arange(bucket, count, BUCKETS, dtype=np.uint64)
            for start in range(0, len(numbers), _FILE_ROWS):
                own = numbers[start : start + _FILE_ROWS]
                url, host = urls_of(own)
                yield bucket, {"url_id": ids_of(own), "url": url, "host": host}

    write_state(crawl, "urls", parts())


def write_state(crawl: JobCrawl, table: str, parts: Iterable[tuple[int, dict[str, pa.Array]]]) -> None:
    """Fill an empty state table in one commit: (bucket, columns) of each data file, harmless values in the others."""
    folder = crawl.root / TABLES_FOLDER / table
    template = rows_of(table, [{}]).drop_columns(["bucket"])
    schema = pa.schema([field.with_nullable(True) for field in template.schema])
    actions: list[dict[str, Any]] = []
    for place, (bucket, columns) in enumerate(parts):
        count = len(next(iter(columns.values())))
        rows = pa.table(
            [columns.get(name, pa.repeat(template[name][0], count)) for name in template.column_names],
            names=template.column_names,
        ).cast(schema)
        path = f"bucket={bucket}/part-{place:05}.snappy.parquet"
        (folder / path).parent.mkdir(exist_ok=True)
        pq.write_table(rows, folder / path)
        actions.append(
            {
                "add": {
                    "path": path, "partitionValues": {"bucket": str(bucket)}, "dataChange": True,
                    "size": (folder / path).stat().st_size, "modificationTime": 1_764_558_000_000,
                    "stats": json.dumps({"numRecords": count}),
                }
            }
        )  # fmt: skip
    actions.append({"commitInfo": {"timestamp": 1_764_558_000_000, "operation": "WRITE", "operationParameters": {}}})
    (folder / "_delta_log" / f"{1:020}.json").write_text("\n".join(map(json.dumps, actions)), encoding="utf-8")


def write_part(step: Step, table: str, count: int, columns: dict[str, Any], round_id: str | None = None) -> None:
    """A slice of an event table as one data file: `columns` are arrays, the rest harmless."""
    round_id = round_id or step.round_id
    template = rows_of(table, [{"round_id": round_id}]).drop_columns(list(TABLES[table].partition_by))
    rows = pa.table(
        [columns.get(name, pa.repeat(template[name][0], count)) for name in template.column_names],
        names=template.column_names,
    )
    schema = arrow_schema(TABLES[table])
    path = f"round_id={round_id}/part-bench.snappy.parquet"
    file = Path(step.store.root) / TABLES_FOLDER / table / path
    file.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(rows.cast(pa.schema([schema.field(name) for name in rows.column_names])), file)
    part = PartFile(table, path, file.stat().st_size, count, {"round_id": round_id})
    step.application.stored.commit_parts(table, round_id, [part])


def write_round(step: Step, numbers: npt.NDArray[np.uint64]) -> None:
    """The slices that dedupe reads: pages of 50 links, to these targets in turn."""
    pages = np.arange(len(numbers) // _LINKS_PER_PAGE, dtype=np.uint64)
    url, host = urls_of(pages)
    identity = {"url_id": ids_of(pages), "planned_url_id": ids_of(pages), "url": url, "host": host}
    ones = pa.repeat(pa.scalar(_LINKS_PER_PAGE, pa.int32()), len(pages))
    checksums = ids_of(pages + np.uint64(1 << 40))
    write_part(step, "fetch_plan", len(pages), identity)
    write_part(step, "fetches", len(pages), identity | {"outcome": pa.repeat("ok", len(pages))})
    write_part(
        step, "pages", len(pages),
        identity | {
            "content_checksum": checksums, "change_verdict": pa.repeat("first", len(pages)), "outlink_count": ones,
            "kept_outlink_count": ones, "parse_outcome": pa.repeat("ok", len(pages)),
        },
    )  # fmt: skip
    source = np.repeat(pages, _LINKS_PER_PAGE)
    source_url, source_host = urls_of(source)
    target_url, target_host = urls_of(numbers)
    write_part(
        step, "links", len(numbers),
        {
            "src_url_id": ids_of(source), "src_url": source_url, "src_host": source_host, "src_domain": source_host,
            "dst_url_id": ids_of(numbers), "dst_url": target_url, "dst_host": target_host, "dst_domain": target_host,
            "link_kind": pa.repeat("a", len(numbers)), "followed": pa.repeat(pa.scalar(True), len(numbers)),
        },
    )  # fmt: skip


@cache
def _tree() -> ProcessTree:
    return ProcessTree(set())


class Clock:
    """Wall and CPU of what runs in the block."""

    def __enter__(self) -> Clock:
        self._start, self._cpu = time.monotonic(), _tree().cpu_seconds()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds = round(time.monotonic() - self._start, 1)
        self.cpu_seconds = round(_tree().cpu_seconds() - self._cpu, 1)


def measured(known: int, candidates: int, with_step: bool) -> Iterator[Measured]:
    """All figures at one size."""
    with TemporaryDirectory(prefix="url-seen-") as folder:
        crawl = JobCrawl(Path(folder) / "crawl")
        crawl.stored.create_missing(crawl.application.clock.now())
        write_urls(crawl, known)
        # Half of the candidates are known, spread over the table.
        every = max(1, 2 * known // candidates)
        numbers = np.concatenate(
            [
                np.arange(0, known, every, dtype=np.uint64)[: candidates // 2],
                np.arange(known, known + candidates - candidates // 2, dtype=np.uint64),
            ]
        )
        np.random.default_rng(3).shuffle(numbers)
        off = crawl.open(known=known, dedupe={"bloom_filter": "off"})
        on = crawl.open("20261201T030000.000000Z", known=known, dedupe={"bloom_filter": "on"})
        file = f"{folder}/candidates.parquet"
        pq.write_table(pa.table({"url_id": ids_of(numbers)}), file, row_group_size=100_000)
        targets = crawl.spark.read.parquet(file)

        def joined(step: Step, what: str) -> Measured:
            with Clock() as clock, known_among(step, targets) as (asked, found):
                row = asked.join(found, "url_id", "left").agg(F.count("*"), F.count("known_url")).first()
            assert row is not None and tuple(row) == (candidates, candidates // 2), (what, row)
            return Measured(known, candidates, what, clock.seconds, clock.cpu_seconds)

        joined(off, "warming up")
        yield joined(off, "exact join")
        with Clock() as clock:
            assert keep_filters(on) == BUCKETS
        yield Measured(known, candidates, "building all filters", clock.seconds, clock.cpu_seconds)
        with Clock() as clock:
            left = maybe_known(on, targets).count()
        assert candidates // 2 <= left < candidates * 0.51, left
        yield Measured(known, candidates, "asking the filters", clock.seconds, clock.cpu_seconds)
        yield joined(on, "filters, then exact join")
        if with_step:
            for step in (off, on):
                write_round(step, numbers)
                with Clock() as clock:
                    summary = run(step)
                assert summary["new_urls"] == candidates - candidates // 2, summary
                what = f"whole step, filters {step.configuration.dedupe.bloom_filter}"
                yield Measured(known, candidates, what, clock.seconds, clock.cpu_seconds)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--known", type=float, nargs="+", default=[1, 5, 20], metavar="MILLIONS")
    parser.add_argument("--candidates", type=float, default=1, metavar="MILLIONS")
    parser.add_argument("--step", action="store_true", help="also run the whole step dedupe")
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep the figures")
    arguments = parser.parse_args()
    found, figures = machine(), []
    print(described(found), "", "| known | candidates | what | s | CPU s |", "|---|---|---|---|---|", sep="\n")
    for known in arguments.known:
        for one in measured(int(known * MILLION), int(arguments.candidates * MILLION), arguments.step):
            figures.append(one)
            print(
                f"| {one.known:,} | {one.candidates:,} | {one.what} | {one.seconds} | {one.cpu_seconds} |", flush=True
            )
    if arguments.json:
        arguments.json.write_text(
            json.dumps({"machine": found, "figures": [asdict(one) for one in figures]}, indent=1), encoding="utf-8"
        )


if __name__ == "__main__":
    main()
