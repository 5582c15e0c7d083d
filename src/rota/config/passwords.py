"""Masks the passwords in store URLs and connection strings, so that they can be printed.

The only place that does. A password may contain characters that belong escaped in a URL, so whatever may be
part of one is masked: rather too much than a single character of it.
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlencode, urlsplit

from ..core.payload.masking import is_secret
from .settings import SECRET_FIELDS

MASK = "***"
_SCHEME = re.compile(r"[A-Za-z][\w+.-]*(?=://)")
_PAIR = re.compile(r"""(\w+)['"]?\s*=""")
_HOST = r"(?:\[[^\]@]*\]|[^:,@\[\]]*)(?::\d*)?"
_HOSTS = re.compile(rf"{_HOST}(?:,{_HOST})*")
_PATHS = ("passfile",)  # secret too: it names a file of passwords


def has_password(url: Any) -> bool:
    return isinstance(url, str) and without_password(url) != url


def without_password(url: str) -> str:
    """Replace each password in the URL, or in ``host=… password=…``, with a mask."""
    shown = _without_password(url)
    for pair in _PAIR.finditer(plain := unquote(shown)):  # one where none belongs: after ; or #, or escaped
        if _is_secret(pair[1]) and not plain.startswith(MASK, pair.end()):
            scheme = _SCHEME.match(shown)
            return f"{scheme[0]}://{MASK}" if scheme is not None else MASK
    return shown


def _without_password(url: str) -> str:
    scheme = _SCHEME.match(url)
    if scheme is None:
        return _without_pairs(url)
    try:
        parts = urlsplit(url)
        query = parse_qsl(parts.query, keep_blank_values=True)
    except ValueError:
        return f"{scheme[0]}://{MASK}"
    if is_ambiguous(parts):
        _, at, rest = url.rpartition("@")
        is_host = at and not any(
            _is_secret(pair[1]) for pair in _PAIR.finditer(unquote(url[: -len(rest) or None]))
        )
        return f"{scheme[0]}://{MASK}" + (f"@{re.split('[?#]', rest)[0]}" if is_host else "")
    account, _, host = parts.netloc.rpartition("@")
    user, colon, _ = account.partition(":")
    shown = _query(query)
    if not colon and shown == query:
        return url
    netloc = f"{user}:{MASK}@{host}" if colon else parts.netloc
    joined = f"?{urlencode(shown, safe='*/', quote_via=quote)}" if shown else ""
    is_cut = len(shown) < len(query) or MASK in joined
    fragment = f"#{parts.fragment}" if parts.fragment and not is_cut else ""
    return f"{scheme[0]}://{netloc}{parts.path}{joined}{fragment}"


def is_ambiguous(parts: SplitResult) -> bool:
    """Whether an unescaped ``/ ? # :`` of a password may have ended the part of the URL it stands in."""
    if parts.scheme == "sqlite":
        return False
    rest = [parts.path, parts.fragment]
    rest += [
        part for pair in parse_qsl(parts.query, keep_blank_values=True) if not _is_url(pair) for part in pair
    ]
    return any("@" in part for part in rest) or _HOSTS.fullmatch(parts.netloc.rpartition("@")[2]) is None


def _is_url(pair: tuple[str, str]) -> bool:
    return pair[0] == "listen" and _SCHEME.match(pair[1]) is not None


def _query(query: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Without what follows a secret: it may be the rest of it, after an ``&`` that is not escaped."""
    shown: list[tuple[str, str]] = []
    for name, value in query:
        if _is_secret(name):
            return [*shown, (name, MASK)]
        shown.append((name, MASK if "://" in value else value))
    return shown


def _without_pairs(text: str) -> str:
    """``host=db password=***``: what follows a password may be the rest of it, after a blank."""
    for pair in _PAIR.finditer(text):
        if _is_secret(pair[1]):
            return f"{text[: pair.end()]}{MASK}"
    before, _, rest = text.rpartition("@")  # user:password@host, without a scheme
    return f"{MASK}@{rest}" if ":" in before else text


def _is_secret(name: str) -> bool:
    return is_secret(name, SECRET_FIELDS) or name.lower() in _PATHS
