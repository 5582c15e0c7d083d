"""Arguments held to the signature of a task: at enqueue and again when the job runs."""

from __future__ import annotations

import datetime as dt
import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
import pytest
from effort import examples
from hypothesis import given
from hypothesis import strategies as st

from rota.core.payload.codec import TaskSignature
from rota.errors import PayloadError

if TYPE_CHECKING:
    from elsewhere import Context, Unknown  # type: ignore[import-not-found]


class Handle:
    __rota_context__ = True


class Plain:
    pass


@dataclass
class Item:
    name: str
    price: float = 1.0


class Order(msgspec.Struct):
    items: list[Item]
    at: dt.datetime | None = None


class Model:
    """Looks like a pydantic model."""

    def __init__(self, n: int) -> None:
        self.n = n

    @classmethod
    def model_validate(cls, value: Any) -> Model:
        if not isinstance(value, dict) or not isinstance(value.get("n"), int):
            raise ValueError("n must be an integer")
        return cls(value["n"])

    def model_dump(self, mode: str) -> dict[str, int]:
        return {"n": self.n}


async def send(ctx: Handle, order_id: int, email: str, items: list[Item], note: str = "none") -> None: ...


SEND = TaskSignature.of(send, task="mail.send")
GOOD: dict[str, Any] = {"order_id": 1, "email": "a@b", "items": [{"name": "pen"}]}


def test_a_signature_knows_its_parameters_and_its_context() -> None:
    assert SEND.context == "ctx"
    assert [(parameter.name, parameter.required) for parameter in SEND.parameters] == [
        ("order_id", True), ("email", True), ("items", True), ("note", False)
    ]  # fmt: skip


def test_arguments_are_decoded_to_their_annotations() -> None:
    assert SEND.bind(SEND.encode(GOOD)) == {"order_id": 1, "email": "a@b", "items": [Item("pen")]}


def test_typed_values_survive_the_journey() -> None:
    def task(
        order: Order, day: dt.date, ids: set[int], names: dict[int, str], kind: Literal["a", "b"]
    ) -> None: ...

    given = {
        "order": Order([Item("pen", 2.0)], dt.datetime(2030, 1, 1, tzinfo=dt.UTC)),
        "day": dt.date(2030, 1, 2),
        "ids": {1, 2},
        "names": {1: "one"},
        "kind": "b",
    }
    signature = TaskSignature.of(task)
    assert signature.bind(signature.encode(given)) == given


def test_defaults_are_left_to_the_function() -> None:
    assert "note" not in SEND.bind(SEND.encode(GOOD))
    assert SEND.bind(SEND.encode(GOOD | {"note": "x"}))["note"] == "x"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"order_id": "1"}, "order_id: expected int, got str"),
        ({"order_id": 1.5}, "order_id: expected int, got float"),
        ({"order_id": True}, "order_id: expected int, got bool"),
        ({"email": None}, "email: expected str, got null"),
        ({"items": [{"name": 7}]}, r"items\[0\].name: expected str, got int"),
        ({"items": [{}]}, r"items\[0\].*missing required field name"),
        ({"emial": "x"}, "unknown argument 'emial', did you mean 'email'"),
        ({"zzz": "x"}, "unknown argument 'zzz'; it takes order_id, email, items, note"),
        ({"ctx": 1}, "'ctx' is filled in by rota"),
    ],
)
def test_arguments_that_do_not_fit_are_refused_at_enqueue(change: dict[str, Any], reason: str) -> None:
    with pytest.raises(PayloadError, match=reason) as caught:
        SEND.check(GOOD | change)
    assert "mail.send" in str(caught.value)


def test_a_missing_argument_is_refused_at_enqueue() -> None:
    with pytest.raises(PayloadError, match=r"task 'mail.send': argument 'email' is missing"):
        SEND.check({"order_id": 1, "items": []})


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[1]", "array, not an object"),
        ("null", "null, not an object"),
        ("{", "not valid JSON"),
        ("", "not valid JSON"),
        ('{"order_id":1}', "argument 'email' is missing"),
        ('{"order_id":1,"email":"","items":[],"old":1}', "unknown argument 'old'"),
        ('{"order_id":1,"email":"","items":[],"ctx":1}', "unknown argument 'ctx'"),
        ('{"order_id":"1","email":"","items":[]}', "order_id: expected int, got str"),
    ],
)
def test_a_stored_payload_that_does_not_fit_is_refused_at_run(text: str, reason: str) -> None:
    with pytest.raises(PayloadError, match=reason) as caught:
        SEND.bind(text)
    assert "mail.send" in str(caught.value)


def test_a_value_that_cannot_be_stored_is_refused_by_its_place() -> None:
    with pytest.raises(PayloadError, match=r"payload\.items\[0\]: .*type object"):
        SEND.check(GOOD | {"items": [object()]})


def test_further_arguments_go_to_kwargs() -> None:
    def task(ctx: Handle, a: int, **rest: Any) -> None: ...

    signature = TaskSignature.of(task)
    assert signature.bind(signature.encode({"a": 1, "b": [2]})) == {"a": 1, "b": [2]}
    with pytest.raises(PayloadError, match="'ctx' is filled in"):
        signature.bind('{"a":1,"ctx":2}')
    with pytest.raises(PayloadError, match="'ctx' is filled in"):
        signature.encode({"a": 1, "ctx": 2})


def test_parameters_without_a_name_are_refused_at_registration() -> None:
    def many(*values: int) -> None: ...
    def first(value: int, /) -> None: ...
    def twice(a: Handle, b: Handle) -> None: ...

    for function, reason in (
        (many, "'values' takes any number"),
        (first, "positional-only"),
        (twice, "keep one"),
    ):
        with pytest.raises(PayloadError, match=reason):
            TaskSignature.of(function)


def test_the_context_is_known_by_class_by_mark_or_by_its_unresolved_name() -> None:
    def by_class(handle: Plain, a: int) -> None: ...
    def by_mark(a: int, handle: Handle) -> None: ...
    def by_name(handle: Context, a: int) -> None: ...

    assert TaskSignature.of(by_class, context=Plain).context == "handle"
    assert TaskSignature.of(by_mark).context == "handle"
    assert TaskSignature.of(by_name).context == "handle"


def test_annotations_that_cannot_be_used_count_as_any() -> None:
    def task(a: Unknown, b: Plain, c: list[Plain], d: int, e=None) -> None: ...  # type: ignore[no-untyped-def]

    signature = TaskSignature.of(task)
    assert [parameter.type for parameter in signature.parameters] == [Any, Any, Any, int, Any]
    payload = {"a": [1], "b": {"x": 1}, "c": ["y"], "d": 4}
    assert signature.bind(signature.encode(payload)) == payload


def test_models_are_validated_by_their_own_method() -> None:
    def task(one: Model, many: list[Model], maybe: Model | None = None) -> None: ...

    signature = TaskSignature.of(task)
    bound = signature.bind(signature.encode({"one": Model(1), "many": [{"n": 2}]}))
    assert (bound["one"].n, bound["many"][0].n) == (1, 2)
    with pytest.raises(PayloadError, match="one: n must be an integer"):
        signature.check({"one": {"n": "x"}, "many": []})


def test_constraints_in_annotations_are_kept() -> None:
    def task(n: Annotated[int, msgspec.Meta(gt=0)]) -> None: ...

    with pytest.raises(PayloadError, match="n: expected int >= 1"):
        TaskSignature.of(task).check({"n": 0})


def test_wrapped_and_partial_functions_and_methods_can_be_tasks() -> None:
    class Service:
        def run(self, a: int) -> None: ...
        def __call__(self, a: int) -> None: ...

    @functools.wraps(send)
    def wrapped(*args: Any, **kwargs: Any) -> None: ...

    assert TaskSignature.of(wrapped).names == SEND.names
    for function in (Service().run, Service()):
        assert [(p.name, p.type) for p in TaskSignature.of(function).parameters] == [("a", int)]
    assert TaskSignature.of(functools.partial(send, note="x")).names == SEND.names


def test_odd_parameter_names_are_fine() -> None:
    def task(self: int, type: int, p0: int, _private: int = 1, order_id: int = 2) -> None: ...

    payload = {"self": 1, "type": 2, "p0": 3, "_private": 4}
    assert TaskSignature.of(task).bind(TaskSignature.of(task).encode(payload)) == payload


def test_a_task_without_parameters_takes_an_empty_object() -> None:
    def task() -> None: ...

    signature = TaskSignature.of(task)
    assert signature.bind(signature.encode({})) == {}
    with pytest.raises(PayloadError, match="unknown argument 'a'; it takes no arguments"):
        signature.check({"a": 1})


@examples()
@given(st.text(st.characters()) | st.text('[]{}",:0123456789.eE-+\\u order_id email items'))
def test_no_stored_text_raises_anything_but_a_payload_error(text: str) -> None:
    try:
        SEND.bind(text)
    except PayloadError as error:
        assert "mail.send" in str(error)
