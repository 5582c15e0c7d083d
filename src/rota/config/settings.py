"""Every setting: its type, default, meaning and range.

Must never show a password: messages omit a value that may contain one.
"""

from __future__ import annotations

import difflib
from typing import Any, Literal, get_args

import msgspec

from .. import durations
from ..errors import ConfigError

OFF = "off"
SOONEST_S, LATEST_S = 60.0, 365 * 86_400.0  # for unknown_task_after
DEFAULT_URL = "sqlite:///rota.db"
SECRET_FIELDS = (
    "*password*", "*passwd*", "*passphrase*", "*passcode*", "*_pwd", "*secret*", "*token", "tokens",
    "*_access_tokens", "*_api_tokens", "*_auth_tokens", "*_refresh_tokens", "bearer*", "*_jwt", "*apikey*",
    "*accesskey*", "*privatekey*", "*_signing_key", "*_encryption_key", "*authorization", "*_auth",
    "*cookie", "*cookies", "*_session_id", "*credential*", "*_pin", "*_otp", "*_totp", "*cardnumber",
    "*_cvv", "*_cvc", "*_iban", "*_ssn", "*_dsn", "*_connection_string",
)  # fmt: skip


class Settings(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """The settings in force. ``dict`` stores the source of each value, outside of equality."""

    url: str = DEFAULT_URL
    imports: tuple[str, ...] = ()
    worker_concurrency: int = 32
    poll_interval_ms: int = 1000
    lease_duration_s: float = 30.0
    lease_guard: bool = True
    blocked_loop_s: float = 1.0
    max_attempts: int = 3
    quarantine_after: int = 3
    enqueue_patience_s: float = 10.0
    scheduler_enabled: bool = True
    scheduler_tick_s: float = 1.0
    shutdown_timeout_s: float = 30.0
    max_payload_bytes: int = 1024 * 1024
    unknown_task_after: str = "6h"
    retention_succeeded_days: float = 7.0
    retention_failed_days: float = 30.0
    retention_cancelled_days: float = 7.0
    retention_audit_days: float = 365.0
    secret_fields: tuple[str, ...] = SECRET_FIELDS
    sql_functions: tuple[str, ...] = ()
    admin_host: str = "127.0.0.1"
    admin_port: int = 8765
    admin_connections: int = 0
    admin_requests_in_flight: int = 8
    admin_requests_per_s: float = 200.0
    allowed_hosts: tuple[str, ...] = ()
    behind_proxy: bool = False
    tls_cert: str | None = None
    tls_key: str | None = None
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    log_format: Literal["text", "json"] | None = None

    @property
    def unknown_task_after_s(self) -> float | None:
        """Seconds; None: never."""
        return None if self.unknown_task_after == OFF else durations.read(self.unknown_task_after)


HELP: dict[str, str] = {
    "url": "the store URL",
    "imports": "modules with tasks that a worker imports: shop.mail, or a pattern such as shop.*.tasks",
    "worker_concurrency": "running jobs per worker",
    "poll_interval_ms": "how long an idle worker waits for a wake-up before it polls; many share this",
    "lease_duration_s": "duration of a lease: how long a worker may be unresponsive before its jobs "
    "are rescued",
    "lease_guard": "whether a second process renews the leases of a worker that is too busy to do so itself",
    "blocked_loop_s": "how long an async task may block the event loop before the log names it; 0: never",
    "max_attempts": "attempts per job when its task sets none",
    "quarantine_after": "crashes of its workers in a row that quarantine a job; with max_attempts=1, "
    "one is enough",
    "enqueue_patience_s": "how long enqueueing waits for a store that is not available; 0: the error "
    "is raised at once",
    "scheduler_enabled": "whether workers fire schedules and store those that the code declares",
    "scheduler_tick_s": "how long a scheduler waits before it checks for schedules created or changed "
    "elsewhere; many share this",
    "shutdown_timeout_s": "how long a stopping worker lets running jobs finish",
    "max_payload_bytes": "maximum size of a payload and of an output",
    "unknown_task_after": "how long running workers may lack a task before its due jobs fail, such as 6h; "
    "off: they wait for ever",
    "retention_succeeded_days": "how long succeeded jobs are kept",
    "retention_failed_days": "how long failed jobs are kept",
    "retention_cancelled_days": "how long cancelled jobs are kept",
    "retention_audit_days": "how long the audit log is kept",
    "secret_fields": "names of payload fields that are never shown or logged; case, - and _ are ignored, "
    "*_pin is any name that ends with the word pin",
    "sql_functions": "reserved: patterns of SQL functions, such as public.*; no effect in this version",
    "admin_host": "the address that the HTTP API and the dashboard listen on",
    "admin_port": "the port of the HTTP API and the dashboard; 0 for any free port",
    "admin_connections": "how many connections the HTTP API and the dashboard accept at a time; 0: as many "
    "as the limit on open files allows",
    "admin_requests_in_flight": "how many requests of one token or session are answered at a time; "
    "an address may have four times as many",
    "admin_requests_per_s": "how many requests per second one token or session may send, on average "
    "over five seconds; an address may send four times as many",
    "allowed_hosts": "host names to accept, besides the address and localhost",
    "behind_proxy": "behind a TLS proxy: trust its headers, and allow other addresses than loopback "
    "without TLS",
    "tls_cert": "the TLS certificate: a PEM file, with the chain",
    "tls_key": "the private key of the certificate: a PEM file",
    "log_level": "the lowest level that is logged",
    "log_format": "format of log lines; by default text on a terminal and JSON elsewhere",
}

RANGES: dict[str, tuple[float, float]] = {
    "worker_concurrency": (1, 4096),
    "poll_interval_ms": (10, 60_000),
    "lease_duration_s": (5, 3600),
    "blocked_loop_s": (0, 3600),
    "max_attempts": (1, 100),
    "quarantine_after": (1, 20),
    "enqueue_patience_s": (0, 3600),
    "scheduler_tick_s": (1, 3600),
    "shutdown_timeout_s": (0, 86_400),
    "max_payload_bytes": (1, 64 * 1024 * 1024),
    "retention_succeeded_days": (0, 36_500),
    "retention_failed_days": (0, 36_500),
    "retention_cancelled_days": (0, 36_500),
    "retention_audit_days": (1, 36_500),
    "admin_port": (0, 65_535),
    "admin_connections": (0, 100_000),
    "admin_requests_in_flight": (1, 10_000),
    "admin_requests_per_s": (1, 1_000_000),
}

FIELDS = {field.name: field for field in msgspec.structs.fields(Settings)}
TYPES: dict[str, Any] = {name: field.type for name, field in FIELDS.items()}
_LIST = tuple[str, ...]


def known(name: str, source: str = "given") -> str:
    """Return the name, or raise a ConfigError that suggests the closest one."""
    if name not in TYPES:
        near = difflib.get_close_matches(name, TYPES, 1)
        hint = f"; did you mean {near[0]}?" if near else f"; known settings: {', '.join(TYPES)}"
        raise ConfigError(f"{place(source)}: there is no setting {name!r}{hint}")
    return name


def from_text(name: str, text: str, source: str) -> Any:
    """Parse a string: lists by commas or as JSON, switches as true or false."""
    value: Any = text
    if TYPES[name] == _LIST:
        if text.startswith("[") and text.endswith("]"):
            return _converted(name, text, source, json=True)
        value = [part.strip() for part in text.split(",") if part.strip()]
    return _converted(name, value, source, strict=False)


def checked(name: str, value: Any, source: str) -> Any:
    """Return the value in the setting's type, or raise a ConfigError if it is invalid or out of range."""
    if known(name, source) == "unknown_task_after":
        return _unknown_task_after(value, source)
    result = _converted(name, value, source)
    if name == "admin_host" and not result.strip():  # a socket would listen on every address
        raise ConfigError(f"{place(source)}: admin_host={value!r} names no address; use 0.0.0.0 for all")
    if name in RANGES:
        low, high = RANGES[name]
        if not low <= result <= high:
            raise ConfigError(f"{place(source)}: {name}={value!r} is out of range: {allowed(name)}")
    return result


def _unknown_task_after(value: Any, source: str) -> str:
    if value == OFF:
        return OFF
    seconds = durations.read(value)
    if seconds is None or not SOONEST_S <= seconds <= LATEST_S:
        raise ConfigError(
            f"{place(source)}: unknown_task_after={value!r} cannot be used; use a duration such as 6h: "
            f"{allowed('unknown_task_after')}"
        )
    return value if isinstance(value, str) else f"{seconds:g}s"


def _converted(name: str, value: Any, source: str, strict: bool = True, json: bool = False) -> Any:
    kind = TYPES[name]
    if value == "" and type(None) in get_args(kind):
        return None  # the only form of None in TOML and in the environment
    try:
        return msgspec.json.decode(value, type=kind) if json else msgspec.convert(value, kind, strict=strict)
    except msgspec.DecodeError as error:
        shown = "" if is_hidden(name) else f"={value!r}"
        remedy = f"; use {allowed(name)}" if allowed(name) else ""
        raise ConfigError(f"{place(source)}: {name}{shown} cannot be used: {error}{remedy}") from None


def place(source: str) -> str:
    return "Rota(…)" if source == "given" else source


def allowed(name: str) -> str:
    """The accepted values of a setting, as text; empty if its type is enough."""
    if name == "unknown_task_after":
        return f"{durations.short(SOONEST_S)} to {durations.short(LATEST_S)}, or {OFF}"
    if name in RANGES:
        low, high = RANGES[name]
        return f"{low:.0f} to {high:.0f}"
    kind = TYPES[name]
    if kind is bool:
        return "true or false"
    choices = [one for part in (kind, *get_args(kind)) for one in get_args(part) if isinstance(one, str)]
    return " or ".join(filter(None, (", ".join(choices[:-1]), *choices[-1:])))


def to_text(value: Any) -> str:
    """The value in the form of an environment variable."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, (list, tuple)):
        return ",".join(value)
    return "" if value is None else str(value)


def is_hidden(name: str) -> bool:
    """Whether the value may contain a password."""
    return name == "url"
