"""A small web server on this machine, with the faults that real ones have."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Site:
    """What the server offers, and how it misbehaves."""

    files: dict[str, bytes]
    ranges: bool = True  # whether it can send the rest of a file
    drop_after: list[int] = field(default_factory=list)  # close the n-th connection after so many bytes
    status: list[int] = field(default_factory=list)  # answer the n-th request with this error
    shift_ranges: bool = False  # send another part than was asked for
    length: bool = True  # whether it says how long a file is
    requests: list[tuple[str, str | None]] = field(default_factory=list)  # what was asked: path, range
    address: str = ""


@contextmanager
def serving(site: Site) -> Iterator[Site]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            wanted = self.headers.get("Range")
            site.requests.append((self.path, wanted))
            content = site.files.get(self.path)
            if site.status and (code := site.status.pop(0)):
                self.send_error(code)
                return
            if content is None:
                self.send_error(404)
                return
            start = 0
            if wanted and site.ranges:
                start = int(wanted.removeprefix("bytes=").removesuffix("-"))
                if start >= len(content):
                    self.send_error(416)
                    return
                start += site.shift_ranges
                self.send_response(206)
                self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
            else:
                self.send_response(200)
            body = content[start:]
            if site.length:
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if site.drop_after:
                body = body[: site.drop_after.pop(0)]
            self.wfile.write(body)
            self.close_connection = True

        def log_message(self, *arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    site.address = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield site
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
