"""Small versioned documents: compare and swap, by kind and key."""

from __future__ import annotations

import asyncio

from ...store.calls import find_document
from ...store.protocol import Store
from .factories import T0, at
from .rules import keeps


class DocumentRules:
    @keeps(14)
    async def test_a_new_document_has_version_one(self, store: Store) -> None:
        assert await store.put_document("gate", "a", '{"x":1}', 0, T0) == 1
        document = await find_document(store, "gate", "a")
        assert document is not None
        assert (document.kind, document.key, document.body) == ("gate", "a", '{"x":1}')
        assert (document.version, document.updated_at) == (1, T0)

    @keeps(14)
    async def test_a_write_that_expects_absence_is_refused_when_it_exists(self, store: Store) -> None:
        await store.put_document("gate", "a", "1", 0, T0)
        assert await store.put_document("gate", "a", "2", 0, at(1)) is None
        document = await find_document(store, "gate", "a")
        assert document is not None
        assert (document.body, document.version, document.updated_at) == ("1", 1, T0)

    @keeps(14)
    async def test_a_write_with_the_right_version_raises_it(self, store: Store) -> None:
        await store.put_document("gate", "a", "1", 0, T0)
        assert await store.put_document("gate", "a", "2", 1, at(1)) == 2
        assert await store.put_document("gate", "a", "3", 2, at(2)) == 3
        document = await find_document(store, "gate", "a")
        assert document is not None
        assert (document.body, document.version, document.updated_at) == ("3", 3, at(2))

    @keeps(14)
    async def test_a_write_with_an_old_version_is_refused(self, store: Store) -> None:
        await store.put_document("gate", "a", "1", 0, T0)
        await store.put_document("gate", "a", "2", 1, T0)
        assert await store.put_document("gate", "a", "3", 1, T0) is None

    @keeps(14)
    async def test_a_write_that_expects_a_version_is_refused_when_absent(self, store: Store) -> None:
        assert await store.put_document("gate", "a", "1", 4, T0) is None
        assert await find_document(store, "gate", "a") is None

    @keeps(14)
    async def test_a_write_without_expectation_always_succeeds(self, store: Store) -> None:
        assert await store.put_document("gate", "a", "1", None, T0) == 1
        assert await store.put_document("gate", "a", "2", None, T0) == 2

    @keeps(14)
    async def test_documents_are_found_by_kind_in_order_of_key(self, store: Store) -> None:
        for kind, key in (("gate", "b"), ("limit", "a"), ("gate", "a"), ("gate", "B")):
            await store.put_document(kind, key, f'"{kind}{key}"', 0, T0)
        assert [document.key for document in await store.documents("gate")] == ["B", "a", "b"]
        assert [document.body for document in await store.documents("limit")] == ['"limita"']
        assert list(await store.documents("nothing")) == []

    @keeps(14)
    async def test_a_dropped_document_is_gone(self, store: Store) -> None:
        await store.put_document("gate", "a", "1", 0, T0)
        assert await store.delete_document("gate", "a") is True
        assert await store.delete_document("gate", "a") is False
        assert await find_document(store, "gate", "a") is None
        assert await store.put_document("gate", "a", "2", 0, T0) is not None

    @keeps(14)
    async def test_of_many_writers_with_one_version_one_wins(self, store: Store) -> None:
        await store.put_document("gate", "a", "0", 0, T0)
        results = await asyncio.gather(*[store.put_document("gate", "a", f"{n}", 1, T0) for n in range(12)])
        assert sorted(results, key=str) == [2, *[None] * 11]
