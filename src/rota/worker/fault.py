"""An error as it is stored: bounded, without rota's own frames, and without secrets.

Most errors are plain, and a task that fails does so at the same few lines again and again: their
text is made once. Errors with causes, groups and syntax errors are written by the standard library.
"""

from __future__ import annotations

import linecache
import traceback
from collections import deque
from collections.abc import Callable
from typing import Any

from ..errors import PayloadError
from ..model import Fault
from .context import clean

LONGEST_MESSAGE = 4000
LONGEST_TRACEBACK = 16_000
MOST_FRAMES = 30
MOST_TEXTS = 2000
HEAD = "Traceback (most recent call last):\n"


def fault_of(error: BaseException, discreet: Callable[[str], str]) -> Fault:
    name, message = _name(type(error)), _message(error)
    trace = None
    if error.__traceback__ is not None and not isinstance(error, PayloadError):
        text = discreet(_plain(error, name, message) if _is_plain(error) else _whole(error))
        trace = clean(text[-LONGEST_TRACEBACK:], LONGEST_TRACEBACK)  # last: half a secret is one too
    message = clean(discreet(message), LONGEST_MESSAGE)
    return Fault(type=clean(discreet(name), 200), message=message, traceback=trace)


def _name(kind: type[BaseException]) -> str:
    ours = kind.__module__ == "builtins" or kind.__module__.partition(".")[0] == "rota"
    return kind.__qualname__ if ours else f"{kind.__module__}.{kind.__qualname__}"


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:
        return "(its message cannot be read)"


def _is_plain(error: BaseException) -> bool:
    return (
        error.__cause__ is None
        and (error.__context__ is None or error.__suppress_context__)
        and not isinstance(error, (SyntaxError, BaseExceptionGroup))
        and not hasattr(error, "__notes__")
    )


def _plain(error: BaseException, name: str, message: str) -> str:
    frames: deque[str] = deque(maxlen=MOST_FRAMES)
    step = error.__traceback__
    while step is not None:
        code = step.tb_frame.f_code
        place = code.co_filename, step.tb_lineno, code.co_name
        text = _texts.get(place)
        frames.append(_text(place, step.tb_frame.f_globals) if text is None else text)
        step = step.tb_next
    return f"{HEAD}{''.join(frames)}{name}{': ' if message else ''}{message}\n"


_Place = tuple[str, int, str]
_texts: dict[_Place, str] = {}


def _text(place: _Place, names: dict[str, Any]) -> str:
    """A frame as text; nothing for our own. Kept: to ask each time whether the file has changed is dear."""
    if len(_texts) >= MOST_TEXTS:
        _texts.clear()
    filename, number, name = place
    line = linecache.getline(filename, number, names).strip()
    text = f'  File "{filename}", line {number}, in {name}\n' + (f"    {line}\n" if line else "")
    _texts[place] = text = "" if _is_ours(filename) else text
    return text


def _whole(error: BaseException) -> str:
    """With its causes, groups and notes."""
    whole = traceback.TracebackException(type(error), error, error.__traceback__, limit=-MOST_FRAMES)
    # Without columns there are no marks (^^^) below the lines: those cost two fifths of the whole.
    whole.stack = traceback.StackSummary.from_list(
        [(f.filename, f.lineno or 0, f.name, f.line) for f in whole.stack if not _is_ours(f.filename)]
    )
    return "".join(whole.format())


def _is_ours(filename: str) -> bool:
    return "/rota/worker/" in filename.replace("\\", "/")
