"""What a function says about its parameters, read once at registration.

Pure; never calls the function. An annotation that cannot be resolved, or that JSON cannot be decoded
to, counts as Any: the task then receives plain values.
"""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import msgspec
from msgspec.inspect import CustomType, type_info

from ...errors import PayloadError


class Parameter(msgspec.Struct, frozen=True):
    name: str
    type: Any
    required: bool


class TaskParameters(msgspec.Struct, frozen=True):
    parameters: tuple[Parameter, ...]
    context: str | None
    open_ended: bool
    returns: Any  # the type that JSON can be decoded to; Any: none


def read_parameters(function: Callable[..., Any], task: str, context: type | None) -> TaskParameters:
    hints = _hints(function)
    parameters: list[Parameter] = []
    receiver: str | None = None
    open_ended = False
    for name, parameter in inspect.signature(function).parameters.items():
        hint = hints.get(name, Any)
        if parameter.kind is parameter.VAR_KEYWORD:
            open_ended = True
        elif parameter.kind in (parameter.POSITIONAL_ONLY, parameter.VAR_POSITIONAL):
            raise PayloadError(_unnamed(task, parameter))
        elif name.startswith("__"):  # by old custom, one that cannot be given by name
            raise PayloadError(f"task {task!r}: parameter {name!r} begins with two underscores: rename it")
        elif _is_context(hint, parameter.annotation, context):
            if receiver is not None:
                raise PayloadError(f"task {task!r}: both {receiver!r} and {name!r} are a Context: keep one")
            receiver = name
        else:
            required = parameter.default is parameter.empty
            parameters.append(Parameter(name, decodable(hint), required))
    returns = hints.get("return", Any)
    return TaskParameters(
        tuple(parameters), receiver, open_ended, Any if returns is type(None) else decodable(returns)
    )


def dec_hook(kind: type, value: Any) -> Any:
    """Pydantic models, known by their method; nothing else reaches this (see ``decodable``)."""
    return kind.model_validate(value)  # type: ignore[attr-defined]


def decodable(hint: Any) -> Any:
    """The annotation itself if JSON can be decoded to it, else Any."""
    try:
        known = type_info(hint)
        msgspec.json.Decoder(hint, dec_hook=dec_hook)
    except Exception:  # a foreign annotation may raise anything while it is looked at
        return Any
    return Any if _has_foreign_class(known) else hint


def _has_foreign_class(known: msgspec.inspect.Type) -> bool:
    seen: set[int] = set()
    stack: list[Any] = [known]
    while stack:
        item = stack.pop()
        if id(item) in seen:
            continue
        seen.add(id(item))
        if isinstance(item, CustomType):
            if not callable(getattr(item.cls, "model_validate", None)):
                return True
        elif isinstance(item, tuple):
            stack.extend(item)
        elif isinstance(item, (msgspec.inspect.Type, msgspec.inspect.Field)):
            stack.extend(getattr(item, name) for name in item.__struct_fields__)
    return False


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    while isinstance(function, functools.partial):
        function = function.func
    target = inspect.unwrap(function)
    if not hasattr(target, "__annotations__"):
        target = type(target).__call__  # an object that can be called
    try:
        return typing.get_type_hints(target, include_extras=True)
    except Exception:  # one bad annotation must not cost us the others
        scope = getattr(target, "__globals__", {})
        written = getattr(target, "__annotations__", {})
        return {name: _resolved(written[name], scope) for name in written}


def _resolved(annotation: Any, scope: dict[str, Any]) -> Any:
    alone = SimpleNamespace(__annotations__={"it": annotation})
    try:
        return typing.get_type_hints(alone, scope, include_extras=True)["it"]
    except Exception:
        return Any


def _is_context(hint: Any, written: Any, context: type | None) -> bool:
    if hint is Any:  # perhaps imported for type checkers only, so that it cannot be resolved here
        return isinstance(written, str) and written.rpartition(".")[2] == "Context"
    return isinstance(hint, type) and (hint is context or getattr(hint, "__rota_context__", False) is True)


def _unnamed(task: str, parameter: inspect.Parameter) -> str:
    many = parameter.kind is parameter.VAR_POSITIONAL
    kind = "takes any number of values" if many else "is positional-only"
    return (
        f"task {task!r}: parameter {parameter.name!r} {kind}, but arguments are stored by name: "
        "make it an ordinary parameter"
    )
