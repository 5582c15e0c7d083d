"""Calendars as data: named sets of excluded dates, kept as documents in the store."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date

import msgspec

from ..core.jobs.options import name_text
from ..core.schedules.calendars import Calendar, parse_ics
from ..errors import AlreadyRegistered, NotFound
from ..runtime.heavy import off_the_loop
from ..runtime.portal import Portal
from ..runtime.runtime import Runtime
from ..runtime.sync_twins import sync_twin
from ..store.calls import find_document
from ..store.protocol import StoreWithin

KIND = "calendar"


async def load(store: StoreWithin, name: str) -> Calendar | None:
    """The calendar; None if there is none, or if its document cannot be read."""
    document = await find_document(store, KIND, name)
    try:
        return None if document is None else msgspec.json.decode(document.body, type=Calendar)
    except msgspec.DecodeError:
        return None


class Calendars:
    """``app.calendars``: put, import, list and delete."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    @property
    def portal(self) -> Portal:
        """The event loop for callers that are not async."""
        return self._runtime.portal

    async def put(
        self, name: str, dates: Iterable[date], *, weekend: Iterable[int] = (5, 6), new: bool = False
    ) -> Calendar:
        """Store a set of dates on which schedules that name it do not run.

        Replaces an older one; with ``new`` that is an error instead.
        """
        calendar = Calendar(
            name=name_text("calendar", name), dates=frozenset(dates), weekend=frozenset(weekend)
        )
        store = await self._runtime.stores.get()
        body = msgspec.json.encode(calendar).decode()
        expected = 0 if new else None
        if await store.put_document(KIND, name, body, expected, self._runtime.clock.now()) is None:
            raise AlreadyRegistered(
                f"there is a calendar {name!r} already: change that one instead, or choose another name"
            )
        return calendar

    put_sync = sync_twin(put)

    async def import_ics(self, name: str, text: str, *, new: bool = False) -> Calendar:
        """Store the dates of an iCalendar file."""
        calendar = await off_the_loop(parse_ics, text, name, self._runtime.clock.now().date())
        return await self.put(name, calendar.dates, weekend=calendar.weekend, new=new)

    import_ics_sync = sync_twin(import_ics)

    async def get(self, name: str) -> Calendar:
        calendar = await load(await self._runtime.stores.get(), name)
        if calendar is None:
            raise NotFound(f"there is no calendar named {name!r}")
        return calendar

    get_sync = sync_twin(get)

    async def list(self) -> Sequence[Calendar]:
        store = await self._runtime.stores.get()
        documents = await store.documents(KIND)
        return await off_the_loop(
            lambda: [msgspec.json.decode(found.body, type=Calendar) for found in documents]
        )

    list_sync = sync_twin(list)

    async def delete(self, name: str) -> None:
        if not await (await self._runtime.stores.get()).delete_document(KIND, name):
            raise NotFound(f"there is no calendar named {name!r}")

    delete_sync = sync_twin(delete)
