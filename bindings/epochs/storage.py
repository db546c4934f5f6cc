"""Files that are written once, whole, by whoever is first, and never changed after that."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import unquote, urlsplit
from uuid import uuid4

import pyarrow as pa
from windjoin.errors import LogError

Bytes = bytes | memoryview | pa.Buffer
HADOOP = {"s3a": "s3", "s3n": "s3"}  # what Spark calls stores


def local_path(address: str) -> str:
    """A path of ``file:`` addresses and of plain paths; addresses of stores as Arrow has them.

    >>> local_path("file:/data/my%20log"), local_path("/data/log"), local_path("s3a://bucket/log")
    ('/data/my log', '/data/log', 's3://bucket/log')
    """
    parts = urlsplit(str(address))
    if parts.scheme == "file":
        return unquote(parts.path)
    if parts.scheme in HADOOP:
        return HADOOP[parts.scheme] + str(address)[len(parts.scheme) :]
    return str(address)


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder of such files, on a file system that all machines share."""

    root: str

    def path(self, *names: str | int) -> str:
        """Where something lies."""
        return os.path.join(self.root, *map(str, names))

    def put(self, name: str, parts: Iterable[Bytes]) -> bool:
        """Write a file whole, once; False if it is there already.

        A link to a finished file makes it appear: no reader sees half of it, and of several
        writers one is the first.
        """
        path = self.path(name)
        folder = os.path.dirname(path)
        temporary = os.path.join(folder, f".{uuid4().hex}")
        try:
            try:
                with _new_file(temporary) as file:
                    file.writelines(parts)
                os.link(temporary, path)
                return True
            except FileExistsError:
                return False
            finally:
                with suppress(FileNotFoundError):
                    os.unlink(temporary)
        except OSError as error:
            raise full(path, error) from error

    def ending(self, name: str, least: int = 0) -> pa.Buffer:
        """Some of the last bytes of a file: all, as they are mapped and not read."""
        return self.map(name)

    def map(self, name: str) -> pa.Buffer:
        """The bytes of a file, mapped into memory."""
        path = self.path(name)
        try:
            with pa.memory_map(path) as file:
                return file.read_buffer()
        except FileNotFoundError:
            raise missing(path) from None
        except OSError as error:
            raise unreadable(path, error) from error

    def has(self, name: str) -> bool:
        """Whether a file is there."""
        return os.path.exists(self.path(name))

    def read_json(self, name: str) -> Any:
        """What a JSON file says; None if there is no such file."""
        text = self.text(name)
        if text is None:
            return None
        try:
            return json.loads(text)
        except ValueError:
            raise LogError(
                f"{self.path(name)} is cut off or damaged; restore it from a copy of the log, or"
                " begin anew with an empty checkpoint"
            ) from None

    def text(self, name: str) -> bytes | None:
        """What a small file holds; None if there is none."""
        try:
            return Path(self.path(name)).read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise unreadable(self.path(name), error) from error

    def names(self, *folder: str | int) -> list[str]:
        """What is in a folder, finished files only; nothing if it is not there."""
        try:
            return sorted(n for n in os.listdir(self.path(*folder)) if not n.startswith("."))
        except (FileNotFoundError, NotADirectoryError):
            return []

    def remove(self, *folder: str | int) -> None:
        """Delete a folder with all in it."""
        shutil.rmtree(self.path(*folder), ignore_errors=True)


def _new_file(path: str) -> BinaryIO:
    """A file to write to, in a folder that is made if it is not there."""
    try:
        return open(path, "wb")
    except FileNotFoundError:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        return open(path, "wb")


def missing(path: str) -> LogError:
    """A file that the log names is not there."""
    return LogError(
        f"{path} is missing, and the window cannot be had without it; restore it from a copy of the"
        " log, or begin anew with an empty checkpoint"
    )


def full(path: str, error: OSError) -> LogError:
    """The system does not take what is to be written."""
    return LogError(
        f"the log cannot be written: {path}: {error.strerror or error}; the epoch fails as a whole"
        " and is done again when there is room and the folder can be written"
    )


def unreadable(path: str, error: OSError) -> LogError:
    """The system does not give what is in a file."""
    return LogError(f"the log cannot be read: {path}: {error.strerror or error}")
