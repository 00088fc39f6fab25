"""Near-duplicates of a round against a large stored state: candidates of a content, and time.

    python -m tests.bench.near_duplicates --contents 1 10 --own 5000

For each size (in millions) synthetic signatures are stored: four fifths of the contents share bands by
chance alone, the others in families of pages that have half of their bands in common, as pages of one
template do, up to 20,000 in a family. The round brings contents half of which are near copies of stored
ones. Printed are the seconds of the comparison, the candidates of a content at most and on average, the
bands left aside as over-full, and the near copies that were found.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import functions as F

from jobs.dedupe_near import candidates, distinct_signatures, near_clusters, shared_bands
from recrawl.dedupe.similarity import MAX_CONTENTS_PER_BAND
from recrawl.parse.minhash import BANDS
from tests.bench.url_seen import MILLION, Clock, ids_of, write_part, write_state
from tests.bench.web import described, machine
from tests.jobs.crawl import BEFORE, BUCKETS, JobCrawl

_WORDS = 8
_FAMILIES = (20_000, 2_000, 200, 20)

Longs = npt.NDArray[np.int64]


def stored_signatures(count: int, draw: np.random.Generator) -> tuple[Longs, Longs]:
    """(bands, words) of `count` contents."""
    bands = draw.integers(-(1 << 63), (1 << 63) - 1, (count, BANDS), dtype=np.int64)
    words = draw.integers(-(1 << 63), (1 << 63) - 1, (count, _WORDS), dtype=np.int64)
    start = 0
    while start < count // 5:
        for size in _FAMILIES:
            own = slice(start, min(start + size, count // 5))
            bands[own, : BANDS // 2] = draw.integers(-(1 << 63), (1 << 63) - 1, (1, BANDS // 2), dtype=np.int64)
            start += size
    return bands, words


def lists(rows: Longs) -> pa.ListArray:
    """Rows of numbers as an Arrow column."""
    offsets = np.arange(0, rows.size + 1, rows.shape[1], dtype=np.int32)
    return pa.ListArray.from_arrays(offsets, rows.reshape(-1))


def measured(contents: int, own: int) -> str:
    """A line of the table."""
    draw = np.random.default_rng(4)
    with TemporaryDirectory(prefix="near-duplicates-") as folder:
        crawl = JobCrawl(Path(folder) / "crawl")
        crawl.stored.create_missing(crawl.application.clock.now())
        identities = np.arange(contents, dtype=np.uint64)
        every = ids_of(identities).to_numpy()
        write_state(
            crawl, "contents",
            (
                (bucket, {"identity_checksum": pa.array(mine), "cluster_id": pa.array(mine)})
                for bucket in range(BUCKETS)
                for mine in [every[every % BUCKETS == bucket]]
            ),
        )  # fmt: skip
        step = crawl.open()
        bands, words = stored_signatures(contents, draw)
        columns = {"url_id": pa.array(every), "identity_checksum": pa.array(every)}
        write_part(step, "signatures", contents, columns | {"bands": lists(bands), "signature": lists(words)}, BEFORE)
        copied = draw.integers(0, contents, own // 2)
        own_bands = draw.integers(-(1 << 63), (1 << 63) - 1, (own, BANDS), dtype=np.int64)
        own_words = draw.integers(-(1 << 63), (1 << 63) - 1, (own, _WORDS), dtype=np.int64)
        own_bands[: own // 2, 4:] = bands[copied, 4:]
        own_words[: own // 2] = words[copied]
        new = ids_of(np.arange(contents, contents + own, dtype=np.uint64))
        columns = {"url_id": new, "identity_checksum": new}
        write_part(step, "signatures", own, columns | {"bands": lists(own_bands), "signature": lists(own_words)})
        with Clock() as clock, near_clusters(step) as (clusters, over_full):
            joined = clusters.where("cluster_id <> identity_checksum").count()
            full = over_full()
        assert own // 2 * 0.99 <= joined <= own // 2, joined
        mine = distinct_signatures(step.slice("signatures"))
        stored = step.tables.read("signatures").where(f"round_id < '{step.round_id}'")
        pairs = candidates(shared_bands(mine, stored)).groupBy("identity_checksum").count()
        row = pairs.agg(F.max("count"), F.sum("count")).first()
        assert row is not None and row[0] <= BANDS * MAX_CONTENTS_PER_BAND
        return (
            f"| {contents:,} | {own:,} | {clock.seconds} | {clock.cpu_seconds} | {row[0]} | {row[1] / own:.1f} "
            f"| {full:,} | {joined:,} of {own // 2:,} |"
        )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--contents", type=float, nargs="+", default=[1, 10], metavar="MILLIONS")
    parser.add_argument("--own", type=int, default=5_000, help="new contents of the round (default: %(default)s)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep the figures")
    arguments = parser.parse_args()
    found, lines = machine(), []
    print(described(found), "", sep="\n")
    print("| stored contents | of the round | s | CPU s | candidates at most | on average | over-full bands | found |")
    print("|---|---|---|---|---|---|---|---|", flush=True)
    for contents in arguments.contents:
        lines.append(measured(int(contents * MILLION), arguments.own))
        print(lines[-1], flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps({"machine": found, "rows": lines}, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
