"""Server-sent events: changes, for every listener as far as it may see them.

One pass over the store per second serves all listeners, and only while there are any, or were until a
moment ago. Events have growing ids; the last thousand are kept, so that a listener that reconnects misses
nothing, or gets ``reset`` if it did.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from ..app import Rota
from ..core.access import may
from ..errors import StoreError
from ..model import Actor
from ..operate.requests import ActionRequest
from ..runtime.clock import monotonic
from ..runtime.service import any_of, repeat
from ..runtime.service_records import ServiceRecord
from .authentication import AuthenticatedCaller, Authenticator, ticket_of
from .problems import Problem
from .requests import from_query
from .responses import encode
from .snapshot_diff import ALL_TENANTS, LIMITED_TO_ONE, ChangeEvent, SnapshotDiff

EVERY_S = 1.0
KEPT = 1000
LINGER = 30  # passes after the last listener has left: it may only have lost its connection
MOST_EACH = 5
ALIVE_S = 15.0  # between comments that keep a quiet connection open
RECHECK_S = 2.0  # between checks that the caller's credential is still valid
RETRY_MS = 2000
NEEDS = {"worker": "read.shared", "audit": "audit"}


class NumberedEvent(NamedTuple):
    """An event with its id."""

    id: int
    event: ChangeEvent


class Feed:
    """The latest events, and a loop that reads new ones while there are listeners."""

    def __init__(self, rota: Rota) -> None:
        self._rota = rota
        self._kept: deque[NumberedEvent] = deque()
        self._listeners: dict[asyncio.Event, str | None] = {}
        self._task: asyncio.Task[None] | None = None
        self._stop = asyncio.Event()
        self.closing = asyncio.Event()
        self.last = 0
        self.passes = 0  # over the store, so far
        self._from = 0  # every event after this id is kept

    @property
    def listeners(self) -> int:
        return len(self._listeners)

    def join(self, changed: asyncio.Event, tenant: str | None) -> None:
        self._listeners[changed] = tenant
        if self._task is None or self._task.done():
            self._begin()

    def leave(self, changed: asyncio.Event) -> None:
        self._listeners.pop(changed, None)

    def has(self, id: int) -> bool:
        return self._from <= id <= self.last

    def since(self, id: int) -> list[NumberedEvent]:
        return [one for one in self._kept if one.id > id]

    async def close(self) -> None:
        """End every stream."""
        self.closing.set()
        self._stop.set()
        for changed in list(self._listeners):
            changed.set()
        if self._task is not None:
            await self._task

    def _begin(self) -> None:
        """Ids start from the time of day, so that they also grow over restarts."""
        self.last = self._from = max(self.last + 1, int(self._rota.clock.now().timestamp() * 1_000_000))
        self._kept.clear()
        self._stop = asyncio.Event()
        diff, stop, idle = SnapshotDiff(self._rota), self._stop, 0

        async def read() -> float:
            nonlocal idle
            idle = 0 if self._listeners else idle + 1
            if idle > LINGER:
                stop.set()
                return 0.0
            try:
                for event in await diff.changes(set(self._listeners.values())):
                    self._keep(event)
                self.passes += 1
            finally:
                for changed in self._listeners:
                    changed.set()
            return EVERY_S

        self._task = asyncio.create_task(repeat(read, stop, ServiceRecord("events")), name="rota-events")

    def _keep(self, event: ChangeEvent) -> None:
        self.last += 1
        self._kept.append(NumberedEvent(self.last, event))
        while len(self._kept) > KEPT:
            self._from = self._kept.popleft().id


class Events:
    """The endpoint of the event stream."""

    def __init__(self, rota: Rota, authenticator: Authenticator) -> None:
        self._authenticator = authenticator
        self._streams: Counter[str] = Counter()
        self.feed = Feed(rota)

    async def listen(self, request: Request) -> Response:
        caller = await self._authenticator.authenticate(request)
        await self._authenticator.allow(caller, "read")
        query = from_query(request.query_params.multi_items(), EventsRequest)
        if request.method == "HEAD":
            return Response(media_type=Stream.media_type)
        if self._streams[caller.credential] >= MOST_EACH:
            raise Problem(429, "too_many_streams", f"{MOST_EACH} streams are open already: close one.",
                          headers={"Retry-After": "5"})  # fmt: skip
        last = request.headers.get("last-event-id") or query.last_event_id
        ticket_of(request).leave()  # streams are counted apart
        self._streams[caller.credential] += 1  # now: other requests may arrive before the stream begins
        return Stream(self._stream(caller, last), lambda: self._ended(caller.credential))

    def _ended(self, credential: str) -> None:
        self._streams[credential] -= 1
        self._streams += Counter()  # drop zeros

    async def _stream(self, caller: AuthenticatedCaller, last: str | None) -> AsyncIterator[bytes]:
        changed, feed = asyncio.Event(), self.feed
        feed.join(changed, caller.actor.tenant)
        try:
            at, opening = _resume(feed, last)
            yield opening
            async for part in self._parts(caller, changed, at):
                yield part
        finally:
            feed.leave(changed)

    async def _parts(
        self, caller: AuthenticatedCaller, changed: asyncio.Event, at: int
    ) -> AsyncIterator[bytes]:
        actor: Actor | None = caller.actor
        checked = sent = monotonic()
        while not self.feed.closing.is_set():
            if monotonic() - checked >= RECHECK_S:
                actor, checked = await self._current(caller, actor), monotonic()
            if actor is None:
                return
            changed.clear()
            if not self.feed.has(at):
                at, part = self.feed.last, _reset(self.feed.last)
            else:
                part = b"".join(_encoded(one) for one in self.feed.since(at) if is_visible(actor, one.event))
                at = self.feed.last
            if not part and monotonic() - sent >= ALIVE_S:
                part = b": alive\n\n"
            if part:
                sent = monotonic()
                yield part
            await any_of(changed.wait(), timeout=ALIVE_S)

    async def _current(self, caller: AuthenticatedCaller, actor: Actor | None) -> Actor | None:
        try:
            return await self._authenticator.current_actor(caller)
        except StoreError:  # no events can be read either, until it is available again
            return actor


class EventsRequest(ActionRequest, frozen=True, kw_only=True):
    """Where to resume the stream."""

    last_event_id: str | None = None  # for clients that cannot send the header


class Stream(StreamingResponse):
    """A response that reports its end, however it ends."""

    media_type = "text/event-stream"

    def __init__(self, parts: AsyncIterator[bytes], ended: Callable[[], None]) -> None:
        super().__init__(parts)
        self._ended = ended

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:  # also if the connection closed while it was sending
            self._ended()
            await self.body_iterator.aclose()  # type: ignore[attr-defined]


def is_visible(actor: Actor, event: ChangeEvent) -> bool:
    """Whether the actor may see the event."""
    if not may(actor, NEEDS.get(event.kind, "read")):
        return False
    if event.kind == "stats":
        return event.tenant == actor.tenant
    if actor.tenant is None:
        return event.tenant != LIMITED_TO_ONE
    return event.tenant in (actor.tenant, ALL_TENANTS, LIMITED_TO_ONE)


def _resume(feed: Feed, last: str | None) -> tuple[int, bytes]:
    """The id to resume after, and the first part of the stream."""
    retry = f"retry: {RETRY_MS}\n\n".encode()
    if last is None:
        return feed.last, retry + f"id: {feed.last}\n\n".encode()
    if last.isdecimal() and len(last) < 20 and feed.has(int(last)):
        return int(last), retry
    return feed.last, retry + _reset(feed.last)


def _reset(id: int) -> bytes:
    return f"id: {id}\nevent: reset\ndata: {{}}\n\n".encode()


def _encoded(one: NumberedEvent) -> bytes:
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (one.id, one.event.kind.encode(), encode(one.event.data))
