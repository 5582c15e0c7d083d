"""Arguments to JSON text and back, bound to the signature of a task.

Pure. ``encode`` and ``decode`` hold every payload and output to one set of rules (``canonical.py``);
a ``TaskSignature`` holds the arguments to what the task's function says it takes: when a job is enqueued,
and again when it runs. It never calls the function.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Any

import msgspec
from msgspec import UNSET

from ...errors import PayloadError
from ..jobs.options import FIELDS
from .annotations import Parameter, dec_hook, read_parameters
from .canonical import MAX_BYTES, decode, encode

CONTEXT_NAMES = ("ctx", "context")  # what people call it

__all__ = ["MAX_BYTES", "Parameter", "TaskSignature", "decode", "encode"]


class TaskSignature(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """What a task takes. Made once per task, at registration."""

    task: str
    parameters: tuple[Parameter, ...]
    context: str | None  # the parameter that receives the Context
    open_ended: bool  # has **kwargs
    names: tuple[str, ...]
    optional: tuple[str, ...]  # those with a default, which is left to the function
    decoder: msgspec.json.Decoder[Any]
    returned: msgspec.json.Decoder[Any] | None = None  # reads what the function returns; None: as plain JSON

    @classmethod
    def of(
        cls, function: Callable[..., Any], *, task: str | None = None, context: type | None = None
    ) -> TaskSignature:
        """``context``: the class that marks the context parameter, beside any with ``__rota_context__``."""
        name: str = task or getattr(function, "__qualname__", None) or type(function).__qualname__
        found = read_parameters(function, name, context)
        return cls(
            task=name,
            parameters=found.parameters,
            context=found.context,
            open_ended=found.open_ended,
            names=tuple(parameter.name for parameter in found.parameters),
            optional=tuple(parameter.name for parameter in found.parameters if not parameter.required),
            decoder=_decoder(found.parameters, found.open_ended),
            returned=None if found.returns is Any else msgspec.json.Decoder(found.returns, dec_hook=dec_hook),
        )

    def encode(self, arguments: Mapping[str, Any], *, limit: int = MAX_BYTES) -> str:
        """Check and encode in one go, by exactly the rules that ``bind`` applies later."""
        given = arguments if type(arguments) is dict else dict(arguments)
        if self.open_ended:
            self._check_names(given)
        try:
            text = encode(given, limit=limit)
            self._read(text)
        except PayloadError:
            self._check_names(given)  # a wrong name explains more than its consequence
            raise
        return text

    def check(self, arguments: Mapping[str, Any]) -> None:
        """PayloadError if the function cannot take these arguments."""
        self.encode(arguments, limit=2**62)

    def bind(self, payload_json: str) -> dict[str, Any]:
        """The arguments to call the function with, decoded to its annotations; without the context."""
        arguments = msgspec.structs.asdict(self._read(payload_json))
        for name in self.optional:
            if arguments[name] is UNSET:
                del arguments[name]
        if self.open_ended:
            self._add_rest(arguments, decode(payload_json, limit=2**62))
        return arguments

    def output(self, output_json: str) -> Any:
        """What the function returned, as its annotation says; plain values if it returned something else."""
        if self.returned is not None:
            try:
                return self.returned.decode(output_json)
            except msgspec.ValidationError:
                pass
        return msgspec.json.decode(output_json)

    def _add_rest(self, arguments: dict[str, Any], given: dict[str, Any]) -> None:
        if self.context in given:
            raise PayloadError(self._about(f"{self.context!r} is filled in by rota: leave it out"))
        arguments.update((name, value) for name, value in given.items() if name not in self.names)

    def _read(self, text: str) -> Any:
        try:
            return self.decoder.decode(text)
        except msgspec.ValidationError as error:
            raise PayloadError(self._about(self._reason(str(error)))) from error
        except RecursionError:
            raise PayloadError(self._about("the payload is nested too deeply")) from None
        except (msgspec.MsgspecError, ValueError) as error:
            raise PayloadError(self._about(f"the payload is not valid JSON: {error}")) from error

    def _check_names(self, arguments: Mapping[str, Any]) -> None:
        for name in arguments:
            if name == self.context:
                raise PayloadError(self._about(f"{name!r} is filled in by rota: leave it out"))
            if name not in self.names and not self.open_ended:
                raise PayloadError(self._about(self._unknown(name)))
        for parameter in self.parameters:
            if parameter.required and parameter.name not in arguments:
                raise PayloadError(self._about(self._missing(parameter.name)))

    def _reason(self, message: str) -> str:
        """msgspec's words in ours: ``Expected `int`, got `str` - at `$.order_id```."""
        cause, _, place = message.partition(" - at `$")
        place = place.rstrip("`").lstrip(".")
        if "missing required field" in cause and not place:
            return self._missing(cause.split("`")[1])
        if "unknown field" in cause and not place:
            return self._unknown(cause.split("`")[1])
        if not place and cause.startswith("Expected `object`"):
            return f"the payload is {cause.split('`')[3]}, not an object: pass arguments by name, as {{…}}"
        cause = cause.replace("`", "")
        return f"argument {place}: {cause[:1].lower()}{cause[1:]}" if place else cause

    def _missing(self, name: str) -> str:
        hint = ""
        if name in CONTEXT_NAMES and any(one.name == name and one.type is Any for one in self.parameters):
            hint = f"; if it is the job's context, annotate it: {name}: Context"
        return f"argument {name!r} is missing: it has no default{hint}"

    def _unknown(self, name: object) -> str:
        if name in FIELDS:
            known = ", ".join(self.names) or "no arguments"
            return (
                f"unknown argument {name!r}; it takes {known}. {name} is a job option: "
                f".options({name}=…).enqueue(…)"
            )
        close = get_close_matches(str(name), self.names, n=1, cutoff=0.5)
        if close:
            return f"unknown argument {name!r}, did you mean {close[0]!r}?"
        known = ", ".join(self.names) or "no arguments"
        return f"unknown argument {name!r}; it takes {known}"

    def _about(self, reason: str) -> str:
        return f"task {self.task!r}: {reason}"


def _decoder(parameters: tuple[Parameter, ...], open_ended: bool) -> msgspec.json.Decoder[Any]:
    """One struct per signature: JSON is decoded straight into it, and its fields are the arguments."""
    fields: list[tuple[str, Any] | tuple[str, Any, Any]] = [
        (parameter.name, parameter.type) if parameter.required else (parameter.name, parameter.type, UNSET)
        for parameter in parameters
    ]
    shape = msgspec.defstruct(
        "Arguments",
        fields,
        kw_only=True,
        forbid_unknown_fields=not open_ended,
    )
    return msgspec.json.Decoder(shape, dec_hook=dec_hook)
