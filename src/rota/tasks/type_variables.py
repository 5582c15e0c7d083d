"""The type variables of tasks and job handles.

All have a default, so that a bare ``JobHandle`` or ``Task`` is a complete type. Python 3.11 cannot express
that itself; type checkers read it from ``typing_extensions``, which rota does not need at run time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing_extensions import ParamSpec, TypeVar

    P = ParamSpec("P", default=...)  # what ``enqueue`` takes
    R_co = TypeVar("R_co", covariant=True, default=Any)  # what ``result`` returns
    Q = ParamSpec("Q", default=...)  # what the function takes: a context too, perhaps
    S_co = TypeVar("S_co", covariant=True, default=Any)  # what calling it gives: a coroutine, perhaps
else:
    from typing import ParamSpec, TypeVar

    P, Q = ParamSpec("P"), ParamSpec("Q")
    R_co, S_co = TypeVar("R_co", covariant=True), TypeVar("S_co", covariant=True)
