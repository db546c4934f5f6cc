"""The same files in a store of objects, through Arrow's file systems: S3 and Google Cloud Storage.

Such a store has no links and no rename, and Arrow has no way to create an object only if there is
none.  An object appears whole when its writer is done, and another one may take its place.  That
does no harm where all who may write it write the same: tasks of one slot and epoch keep the same
rows, give the same results.  A manifest is different: of two that were decided at the same time one
would win after it was read.  So one process has to decide, the driver of `windjoin.spark.start`.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
from pyarrow import fs
from windjoin.epochs.storage import Bytes, Folder, full, missing, unreadable
from windjoin.errors import LogError, QueryError

SCHEMES = ("s3", "gs")
FOOT = 1 << 16  # bytes that are read of the end of a file, before it is known how many it takes


def is_store(root: str) -> bool:
    """Whether an address is that of a store.

    >>> is_store("s3://bucket/log"), is_store("/data/log")
    (True, False)
    """
    return "://" in root


def folder_at(root: str) -> Folder:
    """A folder of files, or a part of a store."""
    return StoreFolder(root) if is_store(root) else Folder(root)


def below(root: str, *names: str) -> str:
    """The address of what is in a folder; what is told in ``?...`` of a store stays at the end.

    >>> below("/data", "log"), below("s3://bucket/a?region=x", "log")
    ('/data/log', 's3://bucket/a/log?region=x')
    """
    if not is_store(root):
        return os.path.join(root, *names)
    address, mark, told = root.partition("?")
    return "/".join([address.rstrip("/"), *names]) + mark + told


def shown(root: str) -> str:
    """An address without keys of an account and what else it tells Arrow.

    >>> shown("s3://someone:secret@bucket/log?region=x"), shown("/data/log")
    ('s3://bucket/log', '/data/log')
    """
    scheme, mark, rest = root.partition("://")
    if not mark:
        return root
    server, slash, path = rest.partition("?")[0].partition("/")
    return scheme + mark + server.rpartition("@")[2] + slash + path


def refuse_store(root: str) -> None:
    """`QueryError` if the tasks of a query would decide about epochs in a store."""
    if is_store(root):
        raise QueryError(
            f"log={shown(root)!r}: with windjoin.spark.stream tasks decide about an epoch, and in a"
            " store of objects two of them could at the same time; use windjoin.spark.start, whose"
            " driver decides, or a folder that all machines see"
        )


@lru_cache(maxsize=16)
def _opened(root: str) -> tuple[Any, str]:
    scheme = urlsplit(root).scheme
    if scheme not in SCHEMES:
        raise LogError(
            f"log={shown(root)!r}: a log lies in a folder that driver and executors see under the"
            f" same path, or in a store ({', '.join(f'{one}:' for one in SCHEMES)}); mount"
            f" {scheme}: as a folder"
        )
    try:
        system, path = fs.FileSystem.from_uri(root)
    except (OSError, ValueError) as error:
        why = str(error).replace(root, shown(root))
        raise LogError(f"log={shown(root)!r} is no address of a store: {why}") from error
    return system, path


@dataclass(frozen=True, slots=True)
class StoreFolder(Folder):
    """A part of a store."""

    def path(self, *names: str | int) -> str:
        """Where something lies, as users know it."""
        return below(shown(self.root), *map(str, names))

    def _inner(self, *names: str | int) -> tuple[Any, str]:
        system, path = _opened(self.root)
        return system, posixpath.normpath("/".join([path, *map(str, names)]))

    def put(self, name: str, parts: Iterable[Bytes]) -> bool:
        """Write an object whole; False if it is there already, or came while this was written."""
        if self.has(name):
            return False
        system, path = self._inner(name)
        try:
            with system.open_output_stream(path) as stream:
                for part in parts:
                    stream.write(part)
        except OSError as error:
            raise full(self.path(name), error) from error
        return True

    def map(self, name: str) -> pa.Buffer:
        """The bytes of an object."""
        return self._read(name, None)

    def ending(self, name: str, least: int = FOOT) -> pa.Buffer:
        """Some of the last bytes of an object, no fewer than ``least`` if it has them."""
        return self._read(name, least)

    def _read(self, name: str, last: int | None) -> pa.Buffer:
        system, path = self._inner(name)
        try:
            with system.open_input_file(path) as file:
                size = file.size()
                if last is not None:
                    file.seek(max(0, size - last))
                found: pa.Buffer = file.read_buffer()
                return found
        except FileNotFoundError:
            raise missing(self.path(name)) from None
        except OSError as error:
            raise unreadable(self.path(name), error) from error

    def has(self, name: str) -> bool:
        """Whether an object is there."""
        system, path = self._inner(name)
        try:
            return bool(system.get_file_info(path).is_file)
        except OSError as error:
            raise unreadable(self.path(name), error) from error

    def text(self, name: str) -> bytes | None:
        """What an object holds; None if there is none."""
        return self.map(name).to_pybytes() if self.has(name) else None

    def names(self, *folder: str | int) -> list[str]:
        """What is in a part of the store."""
        system, path = self._inner(*folder)
        try:
            found = system.get_file_info(fs.FileSelector(path, allow_not_found=True))
        except OSError as error:
            raise unreadable(self.path(*folder), error) from error
        return sorted(one.base_name for one in found if one.base_name)

    def remove(self, *folder: str | int) -> None:
        """Delete all that is in a part of the store; what cannot be deleted now stays."""
        system, path = self._inner(*folder)
        try:
            system.delete_dir(path)
        except OSError:
            return
