"""Checks of the machine: storage, space, the lease, memory, file descriptors."""

from __future__ import annotations

import re
import resource
import shutil
import uuid
from datetime import datetime
from pathlib import Path

from recrawl.config.model import MIB, Configuration
from recrawl.doctor.finding import Finding, Level
from recrawl.errors import StorageError
from recrawl.lease import LeaseState
from recrawl.rounds import LEASE_FILE
from recrawl.storage import Store

GIB = 1 << 30
LEAST_FREE_BYTES = 1 * GIB
GOOD_FREE_BYTES = 5 * GIB
#: Besides Spark's own heap: Python workers, Airflow's task, the system.
MEMORY_BESIDES_BYTES = 1 * GIB
#: Besides a fetch task's connections: jars, logs, WARC parts, the journal.
DESCRIPTORS_BESIDES = 300


def storage(configuration: Configuration) -> Finding:
    """Whether the storage root can be written and read back."""
    store = Store(configuration.storage)
    probe = f"control/doctor-{uuid.uuid4().hex}"
    data = b"written by recrawl doctor"
    existed = store.is_local and Path(store.root).exists()
    try:
        store.write_bytes(probe, data)
        same = store.read_bytes(probe) == data
        store.delete(probe)
    except (StorageError, OSError) as error:
        return Finding("storage", Level.PROBLEM, f"{store.root} can't be written: {error}", _storage_mend(store))
    if not same:
        return Finding(
            "storage", Level.PROBLEM, f"{store.root} does not give back what was written.", _storage_mend(store)
        )
    if store.is_local and not existed:
        # Leave nothing behind where there was no crawl.
        shutil.rmtree(store.root, ignore_errors=True)
    return Finding("storage", Level.OK, f"{store.root} can be written.")


def free_space(configuration: Configuration) -> Finding:
    """Space for WARC files and tables, where that can be known."""
    store = Store(configuration.storage)
    if not store.is_local:
        return Finding("free space", Level.OK, "The object store's own matter.")
    folder = Path(store.root)
    while not folder.exists():
        folder = folder.parent
    free_bytes = shutil.disk_usage(folder).free
    found = f"{free_bytes / GIB:.1f} GiB free at {folder}."
    mend = "Free some space, or set storage.root to a larger disk; 1,000 pages take about 30 MB."
    if free_bytes < LEAST_FREE_BYTES:
        return Finding("free space", Level.PROBLEM, found, mend)
    if free_bytes < GOOD_FREE_BYTES:
        return Finding("free space", Level.WARNING, found, mend)
    return Finding("free space", Level.OK, found)


def lease(configuration: Configuration, now: datetime) -> Finding:
    """Who owns the crawl at the moment."""
    data = Store(configuration.storage).read_bytes(LEASE_FILE)
    if data is None:
        return Finding("lease", Level.OK, "Nobody works on this crawl.")
    try:
        held = LeaseState.from_json(data)
    except StorageError as error:
        return Finding("lease", Level.WARNING, str(error.message), error.mend)
    if held.expires_at < now:
        return Finding("lease", Level.OK, f"Left by {held.purpose}, run out; the next round takes it over.")
    return Finding("lease", Level.OK, f"Held for {held.purpose} until {held.expires_at:%H:%M:%S} UTC.")


def memory(configuration: Configuration) -> Finding:
    """Memory for the driver and what runs beside it."""
    available_bytes = available_memory_bytes()
    if available_bytes is None:
        return Finding("memory", Level.OK, "This system does not tell how much is free.")
    heap = configuration.spark.driver_memory
    needed_bytes = int(heap[:-1]) * (GIB if heap.endswith("g") else MIB) + MEMORY_BESIDES_BYTES
    needed = f"a round with spark.driver_memory {heap} wants {needed_bytes / GIB:.1f}"
    found = f"{available_bytes / GIB:.1f} GiB available; {needed}."
    if available_bytes < needed_bytes:
        mend = "End what you don't need, or set spark.driver_memory to 1g for a small crawl."
        return Finding("memory", Level.WARNING, found, mend)
    return Finding("memory", Level.OK, found)


def available_memory_bytes(meminfo: Path = Path("/proc/meminfo")) -> int | None:
    """Memory that programs can still have; None where the system does not tell."""
    try:
        found = re.search(r"^MemAvailable:\s+(\d+) kB", meminfo.read_text(encoding="utf-8"), re.MULTILINE)
    except OSError:
        return None
    return int(found[1]) * 1024 if found else None


def file_descriptors(configuration: Configuration) -> Finding:
    """Descriptors for the connections of a fetch task."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = configuration.fetch.max_connections + DESCRIPTORS_BESIDES
    if soft in (resource.RLIM_INFINITY, -1) or soft >= needed:
        return Finding("file descriptors", Level.OK, f"{soft} allowed, {needed} wanted.")
    # A fetch task raises its soft limit itself; only the hard one stands in its way.
    if hard in (resource.RLIM_INFINITY, -1) or hard >= needed:
        return Finding("file descriptors", Level.OK, f"{soft} allowed, up to {hard} on demand, {needed} wanted.")
    mend = (
        f"Raise the limit (ulimit -n {needed}) or lower fetch.max_connections to {max(1, hard - DESCRIPTORS_BESIDES)}."
    )
    return Finding("file descriptors", Level.WARNING, f"{hard} allowed at most, {needed} wanted.", mend)


def _storage_mend(store: Store) -> str:
    if store.is_local:
        return f"Make {store.root} writable for you, or set storage.root to a folder of yours."
    return "Check storage.s3_endpoint, storage.s3_access_key, storage.s3_secret_key and that the bucket exists."
