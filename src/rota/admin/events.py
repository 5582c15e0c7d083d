"""Server-sent events: what changes, for whoever listens, as far as they may see it.

One look at the store per second serves all listeners, and only while there are any, or were a moment
ago. Events have growing ids; the last thousand are kept, so that a listener that comes back misses
nothing, or is told by ``reset`` that it did.
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
from ..core.access import may, require
from ..errors import StoreError
from ..model import Actor
from ..operate.requests import ActionRequest
from ..runtime.clock import monotonic
from ..runtime.service import ReconnectPolicy, any_of, repeat
from .authentication import AuthenticatedCaller, Authenticator
from .problems import Problem
from .requests import from_query
from .responses import encoded
from .snapshot_diff import EVERYBODY, ChangeEvent, SnapshotDiff

EVERY_S = 1.0
KEPT = 1000
LINGER = 30  # looks after the last listener has gone: it may only have lost its line
MOST_EACH = 5
ALIVE_S = 15.0  # between comments that keep a quiet line open
RECHECK_S = 2.0  # between looks at whether the caller is still welcome
RETRY_MS = 2000
NEEDS = {"worker": "read.shared", "audit": "audit"}


class NumberedEvent(NamedTuple):
    id: int
    event: ChangeEvent


class Feed:
    """The events of late, and a loop that looks for new ones while somebody listens."""

    def __init__(self, rota: Rota) -> None:
        self._rota = rota
        self._kept: deque[NumberedEvent] = deque()
        self._listeners: dict[asyncio.Event, str | None] = {}
        self._task: asyncio.Task[None] | None = None
        self._stop = asyncio.Event()
        self.closing = asyncio.Event()
        self.last = 0
        self.looks = 0  # at the store, so far
        self._from = 0  # nothing after this id has been forgotten

    @property
    def listeners(self) -> int:
        return len(self._listeners)

    def join(self, news: asyncio.Event, tenant: str | None) -> None:
        self._listeners[news] = tenant
        if self._task is None or self._task.done():
            self._begin()

    def leave(self, news: asyncio.Event) -> None:
        self._listeners.pop(news, None)

    def knows(self, id: int) -> bool:
        return self._from <= id <= self.last

    def since(self, id: int) -> list[NumberedEvent]:
        return [one for one in self._kept if one.id > id]

    async def close(self) -> None:
        """Every stream ends."""
        self.closing.set()
        self._stop.set()
        for news in list(self._listeners):
            news.set()
        if self._task is not None:
            await self._task

    def _begin(self) -> None:
        """Ids go on from the time of day, so that they grow over restarts too."""
        self.last = self._from = max(self.last + 1, int(self._rota.clock.now().timestamp() * 1_000_000))
        self._kept.clear()
        self._stop = asyncio.Event()
        changes, stop, idle = SnapshotDiff(self._rota), self._stop, 0

        async def step() -> float:
            nonlocal idle
            idle = 0 if self._listeners else idle + 1
            if idle > LINGER:
                stop.set()
                return 0.0
            try:
                for event in await changes.look(set(self._listeners.values())):
                    self._keep(event)
                self.looks += 1
            finally:
                for news in self._listeners:
                    news.set()
            return EVERY_S

        self._task = asyncio.create_task(repeat(step, stop, ReconnectPolicy("events")), name="rota-events")

    def _keep(self, event: ChangeEvent) -> None:
        self.last += 1
        self._kept.append(NumberedEvent(self.last, event))
        while len(self._kept) > KEPT:
            self._from = self._kept.popleft().id


class Events:
    def __init__(self, rota: Rota, callers: Authenticator) -> None:
        self._callers = callers
        self._streams: Counter[str] = Counter()
        self.feed = Feed(rota)

    async def listen(self, request: Request) -> Response:
        caller = await self._callers.of(request)
        require(caller.actor, "read")
        ask = from_query(request.query_params.multi_items(), EventsRequest)
        if request.method == "HEAD":
            return Response(media_type=Stream.media_type)
        if self._streams[caller.credential] >= MOST_EACH:
            raise Problem(429, "too_many_streams", f"There are {MOST_EACH} open streams already: close one.",
                          headers={"Retry-After": "5"})  # fmt: skip
        last = request.headers.get("last-event-id") or ask.last_event_id
        self._streams[caller.credential] += 1  # at once: others may ask before the stream begins
        return Stream(self._stream(caller, last), lambda: self._ended(caller.credential))

    def _ended(self, credential: str) -> None:
        self._streams[credential] -= 1
        self._streams += Counter()  # forget those at zero

    async def _stream(self, caller: AuthenticatedCaller, last: str | None) -> AsyncIterator[bytes]:
        news, feed = asyncio.Event(), self.feed
        feed.join(news, caller.actor.tenant)
        try:
            at, opening = _resume(feed, last)
            yield opening
            async for part in self._parts(caller, news, at):
                yield part
        finally:
            feed.leave(news)

    async def _parts(self, caller: AuthenticatedCaller, news: asyncio.Event, at: int) -> AsyncIterator[bytes]:
        actor: Actor | None = caller.actor
        checked = said = monotonic()
        while not self.feed.closing.is_set():
            if monotonic() - checked >= RECHECK_S:
                actor, checked = await self._still(caller, actor), monotonic()
            if actor is None:
                return
            news.clear()
            if not self.feed.knows(at):
                at, told = self.feed.last, _reset(self.feed.last)
            else:
                told = b"".join(_told(one) for one in self.feed.since(at) if is_for(actor, one.event))
                at = self.feed.last
            if not told and monotonic() - said >= ALIVE_S:
                told = b": alive\n\n"
            if told:
                said = monotonic()
                yield told
            await any_of(news.wait(), timeout=ALIVE_S)

    async def _still(self, caller: AuthenticatedCaller, actor: Actor | None) -> Actor | None:
        try:
            return await self._callers.still(caller)
        except StoreError:  # nothing can be told either, until it is back
            return actor


class EventsRequest(ActionRequest, frozen=True, kw_only=True):
    last_event_id: str | None = None  # for clients that cannot send the header


class Stream(StreamingResponse):
    media_type = "text/event-stream"

    def __init__(self, parts: AsyncIterator[bytes], ended: Callable[[], None]) -> None:
        super().__init__(parts)
        self._ended = ended

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:  # a stream that was cut off while it sent something leaves at once too
            self._ended()
            await self.body_iterator.aclose()  # type: ignore[attr-defined]


def is_for(actor: Actor, event: ChangeEvent) -> bool:
    """Whether this actor may know of it."""
    if not may(actor, NEEDS.get(event.kind, "read")):
        return False
    if event.kind == "stats":
        return event.tenant == actor.tenant
    return actor.tenant is None or event.tenant in (actor.tenant, EVERYBODY)


def _resume(feed: Feed, last: str | None) -> tuple[int, bytes]:
    """Where to go on, and how the stream opens."""
    retry = f"retry: {RETRY_MS}\n\n".encode()
    if last is None:
        return feed.last, retry + f"id: {feed.last}\n\n".encode()
    if last.isdecimal() and len(last) < 20 and feed.knows(int(last)):
        return int(last), retry
    return feed.last, retry + _reset(feed.last)


def _reset(id: int) -> bytes:
    return f"id: {id}\nevent: reset\ndata: {{}}\n\n".encode()


def _told(one: NumberedEvent) -> bytes:
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (one.id, one.event.kind.encode(), encoded(one.event.data))
