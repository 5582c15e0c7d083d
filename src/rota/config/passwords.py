"""Masks the passwords in URLs, so that they can be printed."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

from ..core.payload.masking import is_secret
from .settings import SECRET_FIELDS


def has_password(url: Any) -> bool:
    return isinstance(url, str) and without_password(url) != url


def without_password(url: str) -> str:
    """Replace each password in the URL with a mask, also in its query."""
    try:
        parts = urlsplit(url)
        query = parse_qsl(parts.query, keep_blank_values=True)
    except ValueError:
        return f"{url.partition('://')[0]}://***"
    account, _, host = parts.netloc.rpartition("@")
    beyond = [parts.path, parts.fragment, *(part for pair in query if "://" not in pair[1] for part in pair)]
    if parts.netloc and any("@" in part for part in beyond):  # perhaps a password with an unescaped / ? or #
        return f"{parts.scheme}://***@{url.rpartition('@')[2]}"
    hidden = [
        (key, "***" if is_secret(key, SECRET_FIELDS) or "://" in value else value) for key, value in query
    ]
    if ":" in account:
        parts = parts._replace(netloc=f"{account.partition(':')[0]}:***@{host}")
    if hidden != query:
        parts = parts._replace(query=urlencode(hidden, safe="*/", quote_via=quote))
    return url if parts == urlsplit(url) else urlunsplit(parts)
