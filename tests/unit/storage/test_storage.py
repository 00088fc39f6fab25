"""The storage root on a file system."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pydantic import SecretStr

from recrawl.config.model import Storage
from recrawl.errors import StorageError
from recrawl.storage import Store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(Storage(root=str(tmp_path)))


def test_what_is_written_is_read(store: Store) -> None:
    assert store.read_bytes("a/b") is None
    store.write_bytes("a/b", b"one")
    store.write_bytes("a/b", b"two")
    assert store.read_bytes("a/b") == b"two"
    with store.open_read("a/b") as file:
        file.seek(1)
        assert file.read() == b"wo"


def test_create_makes_a_file_once(store: Store) -> None:
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda n: store.create("a/once", str(n).encode()), range(32)))
    assert made.count(True) == 1
    assert store.read_bytes("a/once") == str(made.index(True)).encode()


def test_names_are_sorted_and_half_written_files_are_not_seen(store: Store) -> None:
    for name in ("f/b", "f/a", "f/sub/c"):
        store.write_bytes(name, b"")
    (Path(store.root) / "f" / ".b.half").write_bytes(b"")
    assert store.names("f") == ["f/a", "f/b"]
    assert store.names("absent") == []
    assert not [p for p in (Path(store.root) / "f").iterdir() if p.name.startswith(".") and "half" not in p.name]


def test_publish_moves_a_file(store: Store, tmp_path: Path) -> None:
    spool = tmp_path / "spool.part"
    spool.write_bytes(b"data")
    store.publish(spool, "warc/x")
    assert store.read_bytes("warc/x") == b"data"
    assert not spool.exists()


def test_delete_and_delete_folder_may_be_repeated(store: Store) -> None:
    store.write_bytes("f/a", b"")
    for _ in range(2):
        store.delete("f/a")
        store.delete_folder("f")
    assert not store.exists("f")


def test_it_travels_to_other_processes(store: Store) -> None:
    store.write_bytes("x", b"1")
    assert pickle.loads(pickle.dumps(store)).read_bytes("x") == b"1"


def test_a_file_in_the_way_of_a_folder_is_named(store: Store) -> None:
    store.write_bytes("x", b"")
    with pytest.raises(StorageError, match="can't be written"):
        store.create("x/y", b"")
    with pytest.raises(StorageError, match="can't be written"):
        store.write_bytes("x/y", b"")


def test_relative_and_file_addresses_are_made_absolute() -> None:
    assert Store(Storage(root="data/")).root == str(Path("data").absolute())
    assert Store(Storage(root="file:///data")).root == "/data"


def test_object_stores_have_no_local_paths_and_keep_their_secret() -> None:
    storage = Storage(
        root="s3a://bucket/crawl/",
        s3_endpoint="http://127.0.0.1:9000",
        s3_access_key="key",
        s3_secret_key=SecretStr("s"),
    )
    store = Store(storage)
    assert store.uri("tables/urls") == "s3a://bucket/crawl/tables/urls"
    with pytest.raises(StorageError):
        store.local_path("x")
    assert store.delta_options() == {
        "aws_endpoint": "http://127.0.0.1:9000",
        "aws_allow_http": "true",
        "aws_access_key_id": "key",
        "aws_secret_access_key": "s",
    }
    assert Store(Storage(root="s3a://bucket/x")).delta_options() == {}
