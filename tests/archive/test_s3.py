"""A storage root on an S3-compatible store: files, a fetch partition, tables, and what reads them."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from recrawl.asking.reader import Reader
from recrawl.asking.verify import verify
from recrawl.cli.main import main
from recrawl.config.load import load_configuration
from recrawl.config.model import Configuration, Storage
from recrawl.errors import StorageError
from recrawl.rounds import warc_folder
from recrawl.storage import Store
from tests.archive.s3_server import S3Server
from tests.archive.tables import write_tables
from tests.fetch.crawl import FAST, ROUND_ID, fetch, plan_of, settled_once, task_of
from tests.web import MisbehavingWeb


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """The store."""
    with S3Server(tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture
def store(server: S3Server, request: pytest.FixtureRequest) -> Store:
    """A root of its own for each test."""
    return Store(server.storage(request.node.name.partition("[")[0]))


def test_files_appear_are_listed_and_go(store: Store) -> None:
    assert store.read_bytes("a/one") is None
    assert not store.exists("a")
    assert store.names("a") == []
    store.write_bytes("a/one", b"1")
    assert store.create("a/two", b"2")
    assert not store.create("a/two", b"other")
    store.write_bytes("a/deeper/three", b"3")
    store.write_bytes("b/not-compressed.gz", b"as it is")
    assert [store.read_bytes(name) for name in ("a/one", "a/two", "b/not-compressed.gz")] == [b"1", b"2", b"as it is"]
    assert store.exists("a") and store.exists("a/one")
    assert store.names("a") == ["a/one", "a/two"]
    store.delete("a/one")
    store.delete("a/one")
    assert store.names("a") == ["a/two"]
    with pytest.raises(FileNotFoundError):
        store.open_read("a/one")
    again = pickle.loads(pickle.dumps(store))
    assert again.read_bytes("a/two") == b"2"


def test_folders_move_and_go(store: Store) -> None:
    for name in ("from/a", "from/deeper/b"):
        store.write_bytes(name, name.encode())
    store.move_folder("from", "to/here")
    store.move_folder("nothing", "nowhere")
    assert not store.exists("from/a") and not store.exists("from/deeper/b")
    assert store.read_bytes("to/here/deeper/b") == b"from/deeper/b"
    store.delete_folder("to")
    store.delete_folder("to")
    assert not store.exists("to/here/a")


@pytest.mark.parametrize("size_bytes", [0, 1, 12 << 20])
def test_a_file_is_published_by_one_upload_and_read_by_offset(store: Store, tmp_path: Path, size_bytes: int) -> None:
    data = Random(size_bytes).randbytes(size_bytes)
    local = tmp_path / "part"
    local.write_bytes(data)
    name = f"warc/part-{size_bytes}.warc.gz"
    store.publish(local, name)
    assert not local.exists()
    assert store.read_bytes(name) == data
    with store.open_read(name) as stream:
        stream.seek(size_bytes // 2)
        assert stream.read(100) == data[size_bytes // 2 :][:100]


def test_an_upload_that_breaks_off_leaves_nothing_and_keeps_the_local_file(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    local = tmp_path / "part"
    local.write_bytes(b"x" * (3 << 20))

    def broken_copy(source: Any, target: Any, length: int) -> None:
        target.write(source.read(length))
        raise OSError("Input/output error")

    monkeypatch.setattr("recrawl.storage.shutil.copyfileobj", broken_copy)
    with pytest.raises(StorageError, match="Input/output error"):
        store.publish(local, "warc/part")
    assert not store.exists("warc/part")
    assert local.exists()
    monkeypatch.setattr("recrawl.storage.shutil.copyfileobj", lambda source, target, length: target.write(b"short"))
    with pytest.raises(StorageError, match="it has 5 bytes after its upload"):
        store.publish(local, "warc/part")
    assert not store.exists("warc/part")
    assert local.exists()


def test_what_the_store_refuses_is_a_fault_in_a_sentence(server: S3Server, tmp_path: Path) -> None:
    missing = Store(server.storage().model_copy(update={"root": "s3a://no-such-bucket/crawl"}))
    local = tmp_path / "part"
    local.write_bytes(b"x")
    for refused in (lambda: missing.write_bytes("a", b"1"), lambda: missing.publish(local, "a")):
        with pytest.raises(StorageError, match=r"s3a://no-such-bucket/crawl/a can't be used: .*bucket"):
            refused()
    assert local.exists()


def _settings(storage: Storage, folder: Path, web: MisbehavingWeb) -> Configuration:
    values = storage.model_dump() | {"s3_secret_key": storage.s3_secret_key.get_secret_value()}
    overrides = {
        "storage": values,
        "fetch": FAST | {"spool_dir": str(folder / "spool")},
        "dns": {"hosts_file": str(web.hosts_file(folder / "hosts"))},
    }
    return load_configuration(environment={}, overrides=overrides)


def test_a_partition_publishes_there_and_everything_reads_it_back(
    store: Store, server: S3Server, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    with MisbehavingWeb(["a.test", "b.test"]) as web:
        settings = _settings(server.storage(store.root.rpartition("/")[2]), tmp_path, web)
        paths = ("/page/1.html", "/odd/encoded?as=gzip", "/odd/partial", "/odd/status?code=404")
        plan = plan_of(web.url(host, path) for host in ("a.test", "b.test") for path in paths)
        summary = fetch(task_of(settings), plan)
    assert (summary.planned, summary.final) == (8, 8)
    assert settled_once(settings, plan)
    assert not any((tmp_path / "spool").rglob("recrawl-*"))
    (warc_file,) = summary.warc_files
    assert store.names(warc_folder(ROUND_ID)) == sorted(
        warc_file.replace(".warc.gz", ending) for ending in (".warc.gz", ".cdxj", ".journal.jsonl")
    )

    write_tables(store, settings)
    reader = Reader(store)
    counted = reader.query("SELECT count(*) AS n FROM crawl.fetches WHERE final").to_pylist()
    assert counted == [{"n": 8}]
    assert {size.table: size.rows for size in reader.table_sizes()}["warc_files"] == 1
    found = verify(reader, store, None, None, Random(1))
    assert (found.files, found.findings) == (1, ())

    configuration = tmp_path / "recrawl.toml"
    configuration.write_text(f'[storage]\nroot = "{store.root}"\ns3_endpoint = "{server.endpoint}"\n')
    monkeypatch.setenv("RECRAWL__STORAGE__S3_ACCESS_KEY", "key")
    monkeypatch.setenv("RECRAWL__STORAGE__S3_SECRET_KEY", "secret")
    assert main(["--config", str(configuration), "verify", "--all"]) == 0
    assert "all as published" in capsys.readouterr().out
    host = plan[0].host
    assert main(["--config", str(configuration), "--json", "host", host]) == 0
    assert json.loads(capsys.readouterr().out)["visits"][0]["requests"] == 5

    store.write_bytes(warc_file, (store.read_bytes(warc_file) or b"")[:-1])
    assert main(["--config", str(configuration), "verify", "--round", "last"]) == 1
    said = capsys.readouterr()
    assert "the file ends inside a gzip member." in said.out
    assert "secret" not in said.out + said.err


def test_a_store_out_of_reach_is_a_fault_in_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with S3Server(tmp_path) as server:
        storage = server.storage()
        Store(storage).write_bytes("a", b"1")
    gone = Store(storage)
    local = tmp_path / "part"
    local.write_bytes(b"x")
    for ask in (lambda: gone.read_bytes("a"), lambda: gone.publish(local, "a"), lambda: Reader(gone).version("urls")):
        with pytest.raises(StorageError) as refused:
            ask()
        assert "\n" not in str(refused.value) and "\x1b" not in str(refused.value)
        assert "Check storage.root" in str(refused.value)
    assert local.exists()
    monkeypatch.setenv("RECRAWL__STORAGE__S3_ACCESS_KEY", "key")
    monkeypatch.setenv("RECRAWL__STORAGE__S3_SECRET_KEY", "secret")
    configuration = tmp_path / "recrawl.toml"
    configuration.write_text(f'[storage]\nroot = "{gone.root}"\ns3_endpoint = "{server.endpoint}"\n')
    assert main(["--config", str(configuration), "verify"]) == 1
    assert capsys.readouterr().err.startswith("recrawl: s3a://archive/crawl")
