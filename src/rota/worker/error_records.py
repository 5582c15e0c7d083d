"""An error as it is stored: bounded, without rota's own frames, and without secrets.

Most errors are plain, and a failing task fails at the same few lines again and again: the text of a
frame is written once and kept. Errors with causes, groups and syntax errors are written by the standard
library. Must never raise: the job of a failed attempt has to end.
"""

from __future__ import annotations

import linecache
import os
import traceback
from collections import deque
from collections.abc import Callable
from types import CodeType, FrameType, TracebackType

import msgspec

from ..core.payload import codec
from ..errors import Fail, PayloadError
from ..model import ErrorRecord
from .context import clean
from .redaction import Redactor

LONGEST_TYPE = 200
LONGEST_MESSAGE = 4000
LONGEST_TRACEBACK = 16_000
MAX_FRAMES = 30
MAX_KEPT_FRAMES = 2000
OWN_FOLDER = os.path.join(os.path.dirname(__file__), "")
HEADER = "Traceback (most recent call last):\n"

LONGEST_DETAILS = 16_384  # bytes

Redact = Callable[[str], str]
ExceptionInfo = tuple[type[BaseException], BaseException, TracebackType | None]


def error_record(error: BaseException, redact: Redact) -> ErrorRecord:
    """The error to store; a placeholder for one that fails when it is read."""
    try:
        return _record(error, redact)
    except Exception as failure:
        message = f"(the error could not be read: {type(failure).__name__})"
        return ErrorRecord(type=clean(redact(type(error).__qualname__), LONGEST_TYPE), message=message)


class TaskError(Exception):
    """Stands in for an exception whose object cannot be shown: in another process, huge, quoting secrets.

    Reads like the original: its type, message and traceback are those that are stored.
    """

    @classmethod
    def of(cls, fault: ErrorRecord) -> TaskError:
        module, _, name = fault.type.rpartition(".")
        alike = type(name or "Error", (cls,), {"__module__": module or "builtins", "__qualname__": name})
        error: TaskError = alike(fault.message)
        if fault.traceback is not None:
            error.add_note(fault.traceback)
        return error


def failure_record(failure: Fail, redactor: Redactor) -> ErrorRecord:
    """The error that a task stated on purpose, with its details. Details that cannot be stored are named."""
    message, details = str(failure.reason), None
    try:
        if failure.details is not None:
            encoded = codec.encode(failure.details, limit=LONGEST_DETAILS, what="the details of Fail")
            details = redactor.value(msgspec.json.decode(encoded))
    except Exception as error:
        message += f" (its details are not stored: {error})"
    record = error_record(failure, redactor.text)
    return msgspec.structs.replace(
        record, message=clean(redactor.text(message), LONGEST_MESSAGE), details=details
    )


def shown_exception(error: BaseException, redactor: Redactor) -> ExceptionInfo:
    """The exception for the log, from the task's own first frame on; a stand-in if it cannot be shown."""
    if not _can_be_shown(error, redactor):
        error = TaskError.of(error_record(error, redactor.text))
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None and is_own(trace.tb_frame.f_code.co_filename):
        trace = trace.tb_next
    return type(error), error, trace


def _can_be_shown(error: BaseException, redactor: Redactor) -> bool:
    """Whether a log takes the exception as it is: readable, not huge, and without secrets."""
    try:
        is_short = _is_plain(error) and not redactor.has_secrets
        text = str(error) if is_short else "".join(traceback.format_exception(error))
        text.encode()
    except Exception:
        return False
    longest = LONGEST_MESSAGE if is_short else LONGEST_TRACEBACK
    return len(text) <= longest and redactor.text(text) == text


def _record(error: BaseException, redact: Redact) -> ErrorRecord:
    name, message = _type_name(type(error)), _message(error)
    trace = None
    if error.__traceback__ is not None and not isinstance(error, PayloadError):
        text = redact(_plain_traceback(error, name, message) if _is_plain(error) else _full_traceback(error))
        trace = clean(text[-LONGEST_TRACEBACK:], LONGEST_TRACEBACK)  # cut last: half a secret is one too
    message = clean(redact(message), LONGEST_MESSAGE)
    return ErrorRecord(type=clean(redact(name), LONGEST_TYPE), message=message, traceback=trace)


def _type_name(kind: type[BaseException]) -> str:
    is_short = kind.__module__ == "builtins" or kind.__module__.partition(".")[0] == "rota"
    return kind.__qualname__ if is_short else f"{kind.__module__}.{kind.__qualname__}"


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:
        return "(the message could not be read)"


def _is_plain(error: BaseException) -> bool:
    return (
        error.__cause__ is None
        and (error.__context__ is None or error.__suppress_context__)
        and not isinstance(error, (SyntaxError, BaseExceptionGroup))
        and not hasattr(error, "__notes__")
    )


def _plain_traceback(error: BaseException, name: str, message: str) -> str:
    frames: deque[str] = deque(maxlen=MAX_FRAMES)
    step = error.__traceback__
    while step is not None:
        place = id(step.tb_frame.f_code), step.tb_lineno
        kept = _frame_texts.get(place)
        frames.append(_frame_text(place, step.tb_frame) if kept is None else kept[1])
        step = step.tb_next
    return f"{HEADER}{''.join(frames)}{name}{': ' if message else ''}{message}\n"


_Place = tuple[int, int]
_frame_texts: dict[_Place, tuple[CodeType, str]] = {}  # with the code, so that its id is not reused


def _frame_text(place: _Place, frame: FrameType) -> str:
    """A frame as text, empty for rota's own. Kept, because checking the file each time is slow."""
    if len(_frame_texts) >= MAX_KEPT_FRAMES:
        _frame_texts.clear()
    code, number = frame.f_code, place[1]
    text = "" if is_own(code.co_filename) else _written(code, number, frame)
    _frame_texts[place] = code, text
    return text


def _written(code: CodeType, number: int, frame: FrameType) -> str:
    linecache.checkcache(code.co_filename)
    line = linecache.getline(code.co_filename, number, frame.f_globals).strip()
    head = f'  File "{code.co_filename}", line {number}, in {code.co_name}\n'
    return f"{head}    {line}\n" if line else head


def _full_traceback(error: BaseException) -> str:
    """With its causes, groups and notes."""
    full = traceback.TracebackException(type(error), error, error.__traceback__, limit=-MAX_FRAMES)
    # Without columns there are no markers (^^^) below the lines: those take two fifths of the time.
    full.stack = traceback.StackSummary.from_list(
        [(f.filename, f.lineno or 0, f.name, f.line) for f in full.stack if not is_own(f.filename)]
    )
    return "".join(full.format())


def is_own(filename: str) -> bool:
    return filename.startswith(OWN_FOLDER)
