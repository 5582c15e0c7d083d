"""An error as it is stored: bounded, without rota's own frames, and without secrets.

Most errors are plain, and a task that fails does so at the same few lines again and again: their
text is made once. Errors with causes, groups and syntax errors are written by the standard library.
"""

from __future__ import annotations

import linecache
import os
import traceback
from collections import deque
from collections.abc import Callable
from types import CodeType, FrameType

from ..errors import PayloadError
from ..model import ErrorRecord
from .context import clean

LONGEST_MESSAGE = 4000
LONGEST_TRACEBACK = 16_000
MOST_FRAMES = 30
MOST_TEXTS = 2000
OURS = os.path.join(os.path.dirname(__file__), "")
HEAD = "Traceback (most recent call last):\n"


def fault_of(error: BaseException, redact: Callable[[str], str]) -> ErrorRecord:
    """Whatever the error does when it is looked at: its job must end."""
    try:
        return _fault(error, redact)
    except Exception as trouble:
        message = f"(it cannot be shown: {type(trouble).__name__} while reading it)"
        return ErrorRecord(type=clean(redact(type(error).__qualname__), 200), message=message)


def _fault(error: BaseException, redact: Callable[[str], str]) -> ErrorRecord:
    name, message = _name(type(error)), _message(error)
    trace = None
    if error.__traceback__ is not None and not isinstance(error, PayloadError):
        text = redact(_plain(error, name, message) if _is_plain(error) else _whole(error))
        trace = clean(text[-LONGEST_TRACEBACK:], LONGEST_TRACEBACK)  # last: half a secret is one too
    message = clean(redact(message), LONGEST_MESSAGE)
    return ErrorRecord(type=clean(redact(name), 200), message=message, traceback=trace)


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
        place = id(step.tb_frame.f_code), step.tb_lineno
        kept = _texts.get(place)
        frames.append(_text(place, step.tb_frame) if kept is None else kept[1])
        step = step.tb_next
    return f"{HEAD}{''.join(frames)}{name}{': ' if message else ''}{message}\n"


_Place = tuple[int, int]
_texts: dict[_Place, tuple[CodeType, str]] = {}  # with the code, which keeps its id


def _text(place: _Place, frame: FrameType) -> str:
    """A frame as text; nothing for our own. Kept: to ask each time whether the file has changed is dear."""
    if len(_texts) >= MOST_TEXTS:
        _texts.clear()
    code, number = frame.f_code, place[1]
    linecache.checkcache(code.co_filename)
    line = linecache.getline(code.co_filename, number, frame.f_globals).strip()
    told = f'  File "{code.co_filename}", line {number}, in {code.co_name}\n'
    told += f"    {line}\n" if line else ""
    text = "" if _is_ours(code.co_filename) else told
    _texts[place] = code, text
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
    return filename.startswith(OURS)
