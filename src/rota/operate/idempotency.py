"""Idempotency keys of enqueue requests: every request with one key creates the same job, at most once.

A key is a document that names the id of its job before the job is stored. Must never create a second job
for a key, even if the first has been removed since.
"""

from __future__ import annotations

import hashlib

import msgspec

from ..errors import IllegalMove
from ..model import JobFilter, JobId, PageRequest, Value
from ..runtime.clock import Clock
from ..store.calls import find_document
from ..store.protocol import Store
from .requests import EnqueueRequest

KIND = "idempotency"


class IdempotencyRecord(Value, frozen=True, kw_only=True):
    """The job that an idempotency key belongs to, and the request that used it first."""

    key: str
    job: JobId
    request: str  # a hash of it
    made: bool = False  # the job was stored


async def reserve(
    store: Store, clock: Clock, tenant: str, job: JobId, request: EnqueueRequest
) -> IdempotencyRecord | None:
    """The record of the request's key: ``job`` is its id if the key is new. None: it has no key."""
    if request.idempotency_key is None:
        return None
    content = msgspec.json.encode(
        msgspec.structs.replace(request, idempotency_key=None), order="deterministic"
    )
    fresh = IdempotencyRecord(
        key=hashlib.sha256(f"{tenant}\0{request.idempotency_key}".encode()).hexdigest(),
        job=job,
        request=hashlib.sha256(content).hexdigest(),
    )
    await store.put_document(KIND, fresh.key, msgspec.json.encode(fresh).decode(), 0, clock.now())
    document = await find_document(store, KIND, fresh.key)
    stored = fresh if document is None else msgspec.json.decode(document.body, type=IdempotencyRecord)
    if stored.request != fresh.request:
        raise IllegalMove(
            f"the idempotency key {request.idempotency_key!r} was used for another request: choose a new one"
        )
    if stored.made and not (await store.jobs(JobFilter(ids=(stored.job,)), PageRequest(limit=1))).items:
        raise IllegalMove(
            f"the job of the idempotency key {request.idempotency_key!r} has been removed since: "
            "choose a new key to create another"
        )
    return stored


async def confirm(store: Store, clock: Clock, record: IdempotencyRecord | None) -> None:
    """Note that the job is stored: if it is removed later, the key must not create it again."""
    if record is not None and not record.made:
        body = msgspec.json.encode(msgspec.structs.replace(record, made=True)).decode()
        await store.put_document(KIND, record.key, body, None, clock.now())
