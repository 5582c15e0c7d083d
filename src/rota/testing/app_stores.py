"""An app on a store of the test's own: ``override`` and ``reset``. Never touches the app's usual store."""

from __future__ import annotations

from types import TracebackType
from typing import Any

from ..app import Rota
from ..errors import AlreadyRunning, ConfigError
from ..runtime.clock import Clock
from ..runtime.runtime import Bound

IN_MEMORY = "sqlite://:memory:"


class override:
    """Inside the block, the app and all its tasks use another store, clock and settings.

    For an app that a module defines, with ``with`` or ``async with``. Tasks keep their options, and
    schedules and hooks stay declared. At the end the store of the test is closed, which deletes it if it is
    in memory, and the app is what it was::

        with override(app, clock=FakeClock()):
            send_receipt.enqueue_sync(order_id=42)
            assert drain_sync(app) == 1
    """

    def __init__(
        self, app: Rota, url: str = IN_MEMORY, *, clock: Clock | None = None, **settings: Any
    ) -> None:
        self._app = app
        self._clock = clock
        self._given = {"url": url, **settings}
        self._usual: Bound | None = None

    def __enter__(self) -> Rota:
        if self._app.is_running:
            raise AlreadyRunning("override(app): the app runs a worker in this process; stop it first")
        self._usual = self._app.runtime.rebind(self._clock, **self._given)
        return self._app

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self._app.portal.close()
        self._restore()

    async def __aenter__(self) -> Rota:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self._app.close()
        self._restore()

    def _restore(self) -> None:
        if self._usual is not None:
            self._app.runtime.restore(self._usual)


async def reset(app: Rota, *, any_store: bool = False) -> None:
    """Delete everything that rota has in the app's store, and bring its schema up to date.

    For tests on a database that outlives them. Refuses a store whose address does not contain ``test``,
    unless ``any_store`` is true.
    """
    _check(app, any_store)
    await app.close()
    await _clear(app)


def reset_sync(app: Rota, *, any_store: bool = False) -> None:
    """``reset`` for tests that are not async."""
    _check(app, any_store)
    app.portal.close()
    app.portal.call(_clear, app)


def _check(app: Rota, any_store: bool) -> None:
    if app.is_running:
        raise AlreadyRunning("reset(app): the app runs a worker in this process; stop it first")
    shown = app.stores.root().url
    if not any_store and shown != IN_MEMORY and "test" not in shown.lower():
        raise ConfigError(
            f"reset deletes all jobs and schedules of {shown}, whose address does not contain 'test'; "
            "use a database of the tests' own, or pass any_store=True"
        )


async def _clear(app: Rota) -> None:
    store = app.stores.root().for_another_loop()
    try:
        await store.schema.migrate(fresh=True)
    finally:
        await store.close()
