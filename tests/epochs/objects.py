"""A store of objects with the interface of S3, as far as Arrow asks for it, on this machine."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit
from xml.etree import ElementTree as Tree
from xml.sax.saxutils import escape

WHEN = "2026-01-01T00:00:00.000Z"


class Objects(ThreadingHTTPServer):
    """Objects by bucket and key; they appear whole, and new ones take the place of old ones."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.objects: dict[str, bytes] = {}
        self.uploads: dict[str, dict[int, bytes]] = {}
        self.is_full = False

    @property
    def options(self) -> str:
        """Of an address, for Arrow."""
        told = f"endpoint_override=127.0.0.1:{self.server_address[1]}"
        return f"?{told}&scheme=http&region=us-east-1&allow_bucket_creation=false"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1  # answers leave whole
    server: Objects

    def log_message(self, *_: Any) -> None:
        pass

    def handle_expect_100(self) -> bool:
        going_on = super().handle_expect_100()
        self.wfile.flush()
        return going_on

    def _asked(self) -> tuple[str, dict[str, list[str]]]:
        parts = urlsplit(self.path)
        return unquote(parts.path).lstrip("/"), parse_qs(parts.query, keep_blank_values=True)

    def _body(self) -> bytes:
        if "chunked" in self.headers.get("Transfer-Encoding", ""):
            data = b""
            while size := int(self.rfile.readline().split(b";")[0], 16):
                data += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        else:
            data = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if "x-amz-decoded-content-length" not in self.headers:
            return data
        whole = b""  # pieces again, and a checksum
        while data:
            head, _, data = data.partition(b"\r\n")
            size = int(head.split(b";")[0], 16)
            if not size:
                break
            whole, data = whole + data[:size], data[size + 2 :]
        return whole

    def _say(self, code: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(code)
        for name, value in {"Content_Length": str(len(body)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _missing(self) -> None:
        self._say(404, b"<Error><Code>NoSuchKey</Code></Error>")

    def do_HEAD(self) -> None:
        key, _ = self._asked()
        if "/" not in key.rstrip("/"):
            self._say(200)
        elif key in self.server.objects:
            size = str(len(self.server.objects[key]))
            self._say(
                200, ETag='"x"', Content_Length=size, Last_Modified="Thu, 01 Jan 2026 00:00:00 GMT"
            )
        else:
            self._missing()

    def do_GET(self) -> None:
        key, query = self._asked()
        if "list-type" in query:
            self._list(key.rstrip("/"), query)
        elif key not in self.server.objects:
            self._missing()
        else:
            data = self.server.objects[key]
            asked = self.headers.get("Range", "").removeprefix("bytes=")
            if not asked:
                self._say(200, data, ETag='"x"')
                return
            first, last = asked.split("-")
            part = data[int(first) : int(last) + 1 if last else None]
            told = f"bytes {first}-{int(first) + len(part) - 1}/{len(data)}"
            self._say(206, part, Content_Range=told, ETag='"x"')

    def _list(self, bucket: str, query: dict[str, list[str]]) -> None:
        prefix, between = (query.get(name, [""])[0] for name in ("prefix", "delimiter"))
        keys, folders = [], set()
        for name in sorted(self.server.objects):
            key = name.removeprefix(f"{bucket}/")
            if not name.startswith(f"{bucket}/") or not key.startswith(prefix):
                continue
            rest = key[len(prefix) :]
            if between and between in rest:
                folders.add(prefix + rest.partition(between)[0] + between)
            else:
                keys.append((key, len(self.server.objects[name])))
        count = int(query.get("max-keys", ["1000"])[0])
        entries = "".join(
            f"<Contents><Key>{escape(k)}</Key><Size>{n}</Size><LastModified>{WHEN}</LastModified></Contents>"
            for k, n in keys[:count]
        )
        entries += "".join(
            f"<CommonPrefixes><Prefix>{escape(f)}</Prefix></CommonPrefixes>"
            for f in sorted(folders)
        )
        head = f"<Name>{bucket}</Name><KeyCount>{len(keys) + len(folders)}</KeyCount>"
        text = (
            f"<ListBucketResult>{head}<IsTruncated>false</IsTruncated>{entries}</ListBucketResult>"
        )
        self._say(200, text.encode(), Content_Type="application/xml")

    def do_PUT(self) -> None:
        key, query = self._asked()
        data = self._body()
        if self.server.is_full:
            self._say(403, b"<Error><Code>QuotaExceeded</Code><Message>full</Message></Error>")
            return
        if "partNumber" in query:
            self.server.uploads[query["uploadId"][0]][int(query["partNumber"][0])] = data
        else:
            self.server.objects[key] = data
        self._say(200, ETag='"x"')

    def do_POST(self) -> None:
        key, query = self._asked()
        body = self._body()
        if "uploads" in query:
            name = uuid.uuid4().hex
            self.server.uploads[name] = {}
            told = f"<UploadId>{name}</UploadId>"
            root = "InitiateMultipartUploadResult"
        elif "uploadId" in query:
            parts = self.server.uploads.pop(query["uploadId"][0])
            self.server.objects[key] = b"".join(parts[number] for number in sorted(parts))
            told, root = "<ETag>x</ETag>", "CompleteMultipartUploadResult"
        else:  # several are deleted
            names = [one.text for one in Tree.fromstring(body).iter() if one.tag.endswith("Key")]
            for name in names:
                self.server.objects.pop(f"{key.rstrip('/')}/{name}", None)
            told = "".join(f"<Deleted><Key>{escape(str(n))}</Key></Deleted>" for n in names)
            root = "DeleteResult"
        self._say(200, f"<{root}>{told}</{root}>".encode(), Content_Type="application/xml")

    def do_DELETE(self) -> None:
        key, _ = self._asked()
        self.server.objects.pop(key, None)
        self._say(204)


@contextmanager
def store() -> Iterator[Objects]:
    """A store that is there until the end."""
    with Objects() as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
