"""Static files: read once at start into a fixed list. A path outside the list is never opened."""

from __future__ import annotations

import hashlib
from html import escape
from pathlib import Path
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response

HERE = Path(__file__).parent
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".ico": "image/x-icon",
    ".woff2": "font/woff2",
    ".json": "application/json",
}
BASE = "__BASE__"  # in a page: replaced by the path that it is served under
REVALIDATE = "no-cache"


class File(NamedTuple):
    """One static file."""

    body: bytes
    type: str


def manifest(folder: Path) -> dict[str, File]:
    """Every file of a known type below the folder, by its relative path; no symbolic links."""
    return {
        path.relative_to(folder).as_posix(): File(path.read_bytes(), TYPES[path.suffix])
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.is_symlink() and path.suffix in TYPES
    }


class Pages:
    """One folder of files and its ``index.html``."""

    def __init__(self, folder: str, prefix: str) -> None:
        self.files = manifest(HERE / folder)
        self._prefix = prefix

    def find(self, request: Request, path: str) -> Response | None:
        """The file, or None. A page gets the path that it is served under."""
        file = self.files.get(path)
        if file is None:
            return None
        body = file.body
        if path.endswith(".html"):
            body = body.replace(BASE.encode(), escape(base_path(request, self._prefix)).encode())
        tag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
        headers = {"ETag": tag, "Cache-Control": REVALIDATE}
        if _has(request.headers.get("if-none-match", ""), tag):
            return Response(status_code=304, headers=headers)
        return Response(body, headers=headers, media_type=file.type)


def _has(known: str, tag: str) -> bool:
    """Whether the browser already has it; a proxy that compresses a response marks its tag as weak."""
    return tag in (one.strip().removeprefix("W/") for one in known.split(","))


def base_path(request: Request, prefix: str) -> str:
    """Where the application is mounted: "" or "/ops/rota"; two leading slashes would name a host."""
    whole = f"{request.scope.get('root_path', '')}{prefix}".strip("/")
    return f"/{whole}" if whole else ""
