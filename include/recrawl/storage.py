"""The storage root: a folder or an S3-compatible bucket, through one small class.

Every name is relative to the root. Writes appear whole or not at all: a rename on a file
system, one upload on an object store.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

from pyarrow import fs

from recrawl.config.model import Storage
from recrawl.errors import StorageError

_S3_SCHEMES = ("s3a://", "s3://")


_COPY_BYTES = 1 << 20


class Store:
    """Files under one storage root. Picklable: connections are made where they are used.

    Every method raises StorageError when an object store can't be reached or refuses.
    """

    def __init__(self, settings: Storage) -> None:
        self._settings = settings
        self.root = settings.root.rstrip("/")
        self.is_local = not self.root.startswith(_S3_SCHEMES)
        if self.is_local:
            self.root = str(Path(self.root.removeprefix("file://")).absolute())
        self._filesystem: fs.FileSystem | None = None

    def __reduce__(self) -> tuple[type[Store], tuple[Storage]]:
        return (Store, (self._settings,))

    def uri(self, name: str) -> str:
        """The address of `name` as Spark and other engines take it."""
        return f"{self.root}/{name}"

    def delta_options(self) -> dict[str, str]:
        """How other Delta engines (deltalake) reach the root; {} for a local folder."""
        settings = self._settings
        if self.is_local or not (settings.s3_endpoint or settings.s3_access_key):
            return {}
        options = {}
        if settings.s3_endpoint:
            scheme, _, address = settings.s3_endpoint.rpartition("://")
            options["aws_endpoint"] = f"{scheme or 'https'}://{address}"
            options["aws_allow_http"] = str(scheme == "http").lower()
        if settings.s3_access_key:
            options["aws_access_key_id"] = settings.s3_access_key
            options["aws_secret_access_key"] = settings.s3_secret_key.get_secret_value()
        return options

    def local_path(self, name: str) -> Path:
        """The path of `name`. Raises StorageError when the root is no local folder."""
        if not self.is_local:
            raise StorageError(f"{self.uri(name)} is not a local file.")
        return Path(self.root) / name

    def read_bytes(self, name: str) -> bytes | None:
        """The whole content of `name`, or None when there is no such file."""
        if not self.exists(name):
            return None
        with contextlib.suppress(FileNotFoundError), self._remote_faults(name), self.open_read(name) as file:
            return file.read()
        return None

    def open_read(self, name: str) -> BinaryIO:
        """A seekable stream of `name`. Raises FileNotFoundError."""
        if self.is_local:
            return self.local_path(name).open("rb")
        with self._remote_faults(name):
            return cast(BinaryIO, self._remote().open_input_file(self._remote_path(name)))

    def write_bytes(self, name: str, data: bytes) -> None:
        """Write or replace `name` in one step."""
        if not self.is_local:
            with self._remote_faults(name), self._open_write(name) as stream:
                stream.write(data)
            return
        path = self.local_path(name)
        temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with temporary.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        except OSError as error:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise StorageError(f"{path} can't be written: {error.strerror}.") from None

    def create(self, name: str, data: bytes) -> bool:
        """Write `name` only if it does not exist; whether this call made it.

        Atomic on a file system (a hard link); on an object store a check and an upload, which
        is why a lease is read back after it was written (`lease.py`).
        """
        if not self.is_local:
            if self.exists(name):
                return False
            self.write_bytes(name, data)
            return True
        path = self.local_path(name)
        temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            temporary.write_bytes(data)
            with contextlib.suppress(FileExistsError):
                os.link(temporary, path)
                return True
        except OSError as error:
            raise StorageError(f"{path} can't be written: {error.strerror}.") from None
        finally:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
        return False

    def publish(self, local_file: Path, name: str) -> None:
        """Move a finished local file to `name`: one rename or one upload.

        An upload appears when it is complete, and the local file goes only after that.
        """
        if not self.is_local:
            self._upload(local_file, name)
            local_file.unlink()
            return
        path = self.local_path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            local_file.replace(path)
        except OSError:
            temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
            try:
                shutil.copyfile(local_file, temporary)
                temporary.replace(path)
            except OSError as error:
                with contextlib.suppress(OSError):
                    temporary.unlink(missing_ok=True)
                raise StorageError(f"{local_file} can't be published as {path}: {error.strerror}.") from None
            local_file.unlink()

    def _upload(self, local_file: Path, name: str) -> None:
        size_bytes = local_file.stat().st_size
        remote = self._remote_path(name)
        with self._remote_faults(name):
            try:
                with local_file.open("rb") as source, self._open_write(name) as target:
                    shutil.copyfileobj(source, target, _COPY_BYTES)
                stored_bytes = self._remote().get_file_info(remote).size
                if stored_bytes != size_bytes:
                    raise OSError(f"it has {stored_bytes} bytes after its upload, not {size_bytes}")
            except OSError:
                # An upload that breaks off on our side is ended like a whole one.
                with contextlib.suppress(OSError):
                    self._remote().delete_file(remote)
                raise

    def exists(self, name: str) -> bool:
        """Whether there is a file or folder `name`."""
        if self.is_local:
            return self.local_path(name).exists()
        with self._remote_faults(name):
            info = self._remote().get_file_info(self._remote_path(name))
        return bool(info.type != fs.FileType.NotFound)

    def names(self, folder: str) -> list[str]:
        """The names, relative to the root, of the files directly in `folder`, sorted; [] if there is none."""
        if self.is_local:
            path = self.local_path(folder)
            if not path.is_dir():
                return []
            return sorted(f"{folder}/{p.name}" for p in path.iterdir() if p.is_file() and not p.name.startswith("."))
        selector = fs.FileSelector(self._remote_path(folder), allow_not_found=True)
        with self._remote_faults(folder):
            infos = self._remote().get_file_info(selector)
        return sorted(f"{folder}/{info.base_name}" for info in infos if info.type == fs.FileType.File)

    def delete(self, name: str) -> None:
        """Delete the file `name` if it is there."""
        if self.is_local:
            self.local_path(name).unlink(missing_ok=True)
        elif self.exists(name):
            with self._remote_faults(name), contextlib.suppress(FileNotFoundError):
                self._remote().delete_file(self._remote_path(name))

    def delete_folder(self, folder: str) -> None:
        """Delete `folder` with all that is in it, if it is there."""
        if self.is_local:
            shutil.rmtree(self.local_path(folder), ignore_errors=True)
        elif self.exists(folder):
            with self._remote_faults(folder), contextlib.suppress(FileNotFoundError):
                self._remote().delete_dir(self._remote_path(folder))

    def move_folder(self, folder: str, target: str) -> None:
        """Move `folder` to `target`, if it is there."""
        if not self.exists(folder):
            return
        if not self.is_local:
            # An object store has no folders to rename: each object is copied by the store, then deleted.
            source, filesystem = self._remote_path(folder), self._remote()
            with self._remote_faults(folder):
                for info in filesystem.get_file_info(fs.FileSelector(source, recursive=True)):
                    if info.type == fs.FileType.File:
                        filesystem.move(info.path, self._remote_path(target) + info.path[len(source) :])
            return
        path = self.local_path(target)
        path.parent.mkdir(parents=True, exist_ok=True)
        self.local_path(folder).replace(path)

    def _remote_path(self, name: str) -> str:
        return f"{self.root.partition('://')[2]}/{name}"

    def _open_write(self, name: str) -> BinaryIO:
        # By itself pyarrow would compress what is called .gz, once more.
        return cast(BinaryIO, self._remote().open_output_stream(self._remote_path(name), compression=None))

    @contextlib.contextmanager
    def _remote_faults(self, name: str) -> Iterator[None]:
        """What an object store says as StorageError; that there is no such file stays what it is."""
        try:
            yield
        except FileNotFoundError:
            raise
        except OSError as error:
            if self.is_local:
                raise
            lines = str(error).splitlines() or [type(error).__name__]
            mend = "Check storage.root, storage.s3_endpoint and the keys."
            raise StorageError(f"{self.uri(name)} can't be used: {lines[0][:300]}.", mend) from None

    def _remote(self) -> fs.FileSystem:
        if self._filesystem is None:
            settings = self._settings
            options: dict[str, str] = {}
            if settings.s3_endpoint:
                scheme, _, address = settings.s3_endpoint.rpartition("://")
                options = {"endpoint_override": address, "scheme": scheme or "https"}
            if settings.s3_access_key:
                options |= {
                    "access_key": settings.s3_access_key,
                    "secret_key": settings.s3_secret_key.get_secret_value(),
                }
            self._filesystem = fs.S3FileSystem(**options)
        return self._filesystem
