"""A web server that says whatever a test wants: for what a good server never does."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import msgspec

ME = {
    "name": "t", "role": "viewer", "tenant": None, "payloads": False, "permissions": [], "version": "0",
    "store": None, "now": "2030-01-01T00:00:00Z",
}  # fmt: skip

Reply = Callable[[BaseHTTPRequestHandler], None]


def reply(status: int, body: bytes = b"", kind: str = "application/json", **headers: str) -> Reply:
    def answer(request: BaseHTTPRequestHandler) -> None:
        request.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(body)), **headers}.items():
            request.send_header(name.replace("_", "-"), value)
        request.end_headers()
        request.wfile.write(body)

    return answer


def problem(status: int, code: str, **more: Any) -> Reply:
    told = {"status": status, "code": code, "title": "No", "detail": "as it is", "request_id": "r1", **more}
    return reply(status, msgspec.json.encode(told), "application/problem+json")


@contextmanager
def answering(answer: Reply, context: ssl.SSLContext | None = None) -> Iterator[tuple[str, list[Any]]]:
    """A server that gives this answer to everything; its address, and what it was asked."""
    asked: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_any(self) -> None:
            size = int(self.headers.get("Content-Length") or 0)
            asked.append((self.command, self.path, dict(self.headers), self.rfile.read(size)))
            answer(self)

        do_GET = do_POST = do_PUT = do_DELETE = handle_any

        def log_message(self, format: str, *args: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        scheme = "http" if context is None else "https"
        yield f"{scheme}://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
