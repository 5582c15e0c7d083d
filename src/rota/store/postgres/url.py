"""The URL of a PostgreSQL store: what is ours in it, what is libpq's, and how to show it.

Owns the parsing of our own query parameters. Must never connect, nor show a password.
"""

from __future__ import annotations

from urllib.parse import SplitResult, parse_qsl, quote, urlencode, urlsplit, urlunsplit

import msgspec
from psycopg import Error
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import Conninfo

from ...config.passwords import has_password, is_ambiguous, without_password
from ...errors import ConfigError

SCHEMES = ("postgresql", "postgres")
OURS = ("listen", "connections")
MOST_CONNECTIONS = 4  # unless the URL says otherwise
SSL_MODES = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")
# Tuning of asyncpg and of SQLAlchemy's dialect for it, which says nothing to libpq.
OF_OTHER_DRIVERS = frozenset(
    {"async_fallback", "command_timeout", "prepared_statement_cache_size", "prepared_statement_name_func"}
    | {"max_cached_statement_lifetime", "max_cacheable_statement_size", "statement_cache_size"}
)


class PostgresUrl(msgspec.Struct, frozen=True):
    conninfo: str  # for libpq
    shown: str  # for people
    listen: str | None  # the conninfo to listen on; None: do not listen
    connections: int = MOST_CONNECTIONS  # at once, for the statements of one event loop


def parse(url: str) -> PostgresUrl:
    """``?listen=off`` turns push wake-ups off; ``?listen=URL`` gives a way around a transaction pooler.

    ``?connections=N`` limits the connections; the one that listens is not counted.
    """
    conninfo, ours = _split(url)
    most = _most_connections(url, ours.get("connections"))
    listen = ours.get("listen")
    if listen == "off":
        return PostgresUrl(conninfo, without_password(url), None, most)
    return PostgresUrl(conninfo, without_password(url), _split(listen)[0] if listen else conninfo, most)


def _most_connections(url: str, value: str | None) -> int:
    if value is None:
        return MOST_CONNECTIONS
    if not (value.isascii() and value.isdigit() and 1 <= int(value) <= 1000):
        raise ConfigError(
            f"{without_password(url)}: connections={value!r} must be a whole number from 1 to 1000"
        )
    return int(value)


def _split(url: str) -> tuple[str, dict[str, str]]:
    """The URL without our own options, and those options."""
    try:
        parts = urlsplit(url)
        query = parse_qsl(parts.query, keep_blank_values=True)
    except ValueError:  # its text may quote the password
        raise ConfigError(
            f"{without_password(url)}: the PostgreSQL URL cannot be read: write special characters of the "
            "password percent-encoded, such as %5B for [, and an IPv6 address as [::1]"
        ) from None
    if parts.scheme.partition("+")[0] not in SCHEMES:
        raise ConfigError(
            f"{without_password(url)}: a PostgreSQL URL begins with postgresql:// or postgres://"
        )
    if is_ambiguous(parts):
        raise ConfigError(
            f"{without_password(url)}: the host and port cannot be distinguished from the password: write "
            "its special characters percent-encoded, such as %40 for @, %2F for /, %3F for ? and %23 for #"
        )
    ours = {name: value for name, value in query if name in OURS}
    libpqs = _for_libpq([pair for pair in query if pair[0] not in OURS], without_password(url))
    plain = parts._replace(scheme=SCHEMES[0], query=urlencode(libpqs, quote_via=quote))
    conninfo = _joined(plain)
    try:
        conninfo_to_dict(conninfo)
    except (Error, UnicodeDecodeError) as error:
        # libpq quotes the part it could not read, which may be of a password
        said = type(error).__name__ if "@" in url or has_password(url) else str(error).strip()
        raise ConfigError(f"{without_password(url)}: libpq cannot read this URL: {said}") from None
    return conninfo, ours


def _for_libpq(query: list[tuple[str, str]], shown: str) -> list[tuple[str, str]]:
    """The options in the words of libpq: other drivers have some of their own."""
    hosts = [value for name, value in query if name == "host"]
    options = [pair for pair in query if pair[0] != "host" and pair[0] not in OF_OTHER_DRIVERS]
    options = [_translated(name, value, shown) for name, value in options]
    if len(hosts) > 1:  # as SQLAlchemy writes several: host=a:5432&host=b:5432
        pairs = [host.rpartition(":") if ":" in host else (host, "", "") for host in hosts]
        options += [
            ("host", ",".join(pair[0] for pair in pairs)),
            ("port", ",".join(pair[2] for pair in pairs)),
        ]
    else:
        options += [("host", host) for host in hosts]
    known = {option.keyword.decode() for option in Conninfo.get_defaults()}
    if unknown := [name for name, _ in options if name not in known]:
        name = repr(unknown[0]) if unknown[0] in shown else "of this name"  # it may be part of a password
        raise ConfigError(
            f"{shown}: PostgreSQL's client library has no option {name}; remove it from the URL, or "
            f"use one of {', '.join(OURS)} (rota's) or sslmode, connect_timeout, application_name … (libpq's)"
        )
    return options


def _translated(name: str, value: str, shown: str) -> tuple[str, str]:
    if name == "timeout":  # asyncpg's
        return "connect_timeout", value
    if name != "ssl":
        return name, value
    mode = {"true": "require", "1": "require", "false": "disable", "0": "disable"}.get(value.lower(), value)
    if mode not in SSL_MODES:
        raise ConfigError(
            f"{shown}: ssl={value!r} is not known; write sslmode= and one of {', '.join(SSL_MODES)}"
        )
    return "sslmode", mode


def _joined(parts: SplitResult) -> str:
    """Also without a host, which means a socket on this machine: ``urlunsplit`` would forget the slashes."""
    return f"{parts.scheme}://{parts.netloc}{urlunsplit(parts._replace(scheme='', netloc=''))}"
