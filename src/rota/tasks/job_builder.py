"""From a call to the job it asks for: options, defaults and payload, checked before anything is written.

Reads the clock's time as an argument and the running job by context; never touches the store.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from ..core.jobs.key_templates import (
    check_bulk_key,
    concurrency_key,
    filled_key,
    is_template,
    kept_for,
)
from ..core.jobs.options import Options, check_id_time, due, expiry
from ..errors import OptionError, PayloadError
from ..model import Backoff, NewJob
from ..runtime.runtime import Runtime
from .current import CURRENT, RunningJob
from .registry import Registry


class JobBuilder:
    """Builds the new jobs of one app."""

    def __init__(self, runtime: Runtime, registry: Registry) -> None:
        self._runtime = runtime
        self._registry = registry

    def one(
        self, name: str, arguments: Any, chosen: Options, now: datetime, running: RunningJob | None = None
    ) -> NewJob:
        """``running``: the job that asks; by default the one that this code belongs to."""
        self._registry.check_name(name)
        limit = self._runtime.settings.max_payload_bytes
        text = self._registry.encode(name, _mapping(arguments, name), limit)
        if chosen.id is not None:
            check_id_time(chosen.id, now)
        id = chosen.id or self._runtime.ids.new(now)
        job = self._job(id, name, text, chosen, now, running or CURRENT.get())
        if chosen.key is None and not is_template(chosen.concurrency_key):
            return job
        return replace(job, **self._filled(chosen, text, now))

    def many(
        self, name: str, arguments: Iterable[Mapping[str, Any]], chosen: Options, now: datetime
    ) -> list[NewJob]:
        """A job for each of the arguments. What they have in common is decided once."""
        self._registry.check_name(name)
        if chosen.id is not None:
            raise OptionError("id names one job; a bulk call makes many: leave it out")
        encode, limit = self._registry.encode, self._runtime.settings.max_payload_bytes
        job = self._job("", name, "{}", chosen, now, CURRENT.get())
        texts = [encode(name, _mapping(each, name), limit) for each in arguments]
        ids = self._runtime.ids.run(now, len(texts))
        if chosen.key is not None:
            check_bulk_key(chosen.key)
        if chosen.key is None and not is_template(chosen.concurrency_key):
            return [replace(job, id=id, payload_json=text) for id, text in zip(ids, texts, strict=True)]
        filled = [self._filled(chosen, text, now) for text in texts]
        made = zip(ids, texts, filled, strict=True)
        return [replace(job, id=id, payload_json=text, **keys) for id, text, keys in made]

    def _filled(self, chosen: Options, text: str, now: datetime) -> dict[str, str | None]:
        """The keys that the arguments fill."""
        filled: dict[str, str | None] = {}
        if chosen.key is not None:
            filled["key"] = filled_key(chosen, text, now, self._secrets)
        if is_template(chosen.concurrency_key):
            filled["concurrency_key"] = concurrency_key(chosen, text, self._secrets)
        return filled

    @property
    def _secrets(self) -> tuple[str, ...]:
        return self._runtime.settings.secret_fields

    def _job(
        self, id: str, name: str, payload_json: str, chosen: Options, now: datetime,
        running: RunningJob | None,
    ) -> NewJob:  # fmt: skip
        task = self._registry.options(name)
        run_at = due(chosen, now)
        parent = chosen.parent or (running.job.id if running is not None else None)
        return NewJob(
            id=id,
            task=name,
            payload_json=payload_json,
            queue=chosen.queue or "default",
            tenant=chosen.tenant or (running.job.tenant if running is not None else "default"),
            priority=chosen.priority or 0,
            run_at=run_at,
            max_attempts=chosen.max_attempts or self._runtime.settings.max_attempts,
            # What the task itself says is read from the task when the job runs.
            timeout=chosen.timeout if chosen.timeout != task.timeout else None,
            backoff=chosen.backoff
            if isinstance(chosen.backoff, Backoff) and chosen.backoff != task.backoff
            else None,
            key=chosen.key,
            key_for=kept_for(chosen),
            on_conflict=chosen.on_conflict or "return",
            auto_remove=bool(chosen.auto_remove),
            tags=chosen.tags or (),
            parent=parent,
            origin="job" if parent is not None else "api",
            expires_at=None if chosen.expires is None else expiry(chosen, run_at or now),
            keep=chosen.keep,
            concurrency_key=chosen.concurrency_key,
            units=chosen.units,
            price=chosen.price,
        )


def _mapping(arguments: Any, name: str) -> Mapping[str, Any]:
    if type(arguments) is dict or isinstance(arguments, Mapping):  # the usual type costs no search
        return arguments
    raise PayloadError(
        f"task {name!r}: the payload is of type {type(arguments).__name__}; pass arguments by name, as {{…}}"
    )
