"""How an error is stored: the text of the standard library, without rota's own frames."""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest

from rota import Rota
from rota.model import State
from rota.testing import drain
from rota.worker.error_records import MAX_FRAMES, error_record


def same(text: str) -> str:
    return text


def caught(function: Callable[[], object]) -> BaseException:
    try:
        function()
    except BaseException as error:
        return error
    raise AssertionError("it did not raise")


def standard(error: BaseException) -> str:
    written = "".join(traceback.format_exception(error))
    return re.sub(r"^ +[~^]+\n", "", written, flags=re.MULTILINE)  # the marks below a line are left out


def plainly() -> None:
    raise ValueError("no such order: 42")


def without_words() -> None:
    raise KeyError


def in_many_lines() -> None:
    raise RuntimeError("first\nsecond")


def from_a_cause() -> None:
    try:
        plainly()
    except ValueError as error:
        raise RuntimeError("it went wrong") from error


def while_handling() -> None:
    try:
        plainly()
    except ValueError:
        raise RuntimeError("and again") from None


def with_a_note() -> None:
    error = ValueError("see below")
    error.add_note("it happened on a Monday")
    raise error


def in_a_group() -> None:
    raise ExceptionGroup("two", [ValueError("one"), TypeError("another")])


def in_a_text() -> None:
    compile("1 +", "rule", "eval")


def from_generated_code() -> None:
    exec(compile("raise OSError('gone')", "<generated>", "exec"))


@pytest.mark.parametrize(
    "function",
    [
        plainly, without_words, in_many_lines, from_a_cause, while_handling, with_a_note, in_a_group,
        in_a_text, from_generated_code,
    ],
)  # fmt: skip
def test_the_traceback_reads_as_the_standard_one(function: Callable[[], object]) -> None:
    error = caught(function)
    for _ in range(2):  # once made, once remembered
        fault = error_record(error, same)
        assert fault.traceback == standard(error)
        assert (fault.type, fault.message) == (type(error).__qualname__, str(error))


def test_deep_traceback_keeps_its_last_frames() -> None:
    def deeper(n: int) -> None:
        if n == 0:
            raise ValueError("the ground")
        deeper(n - 1)

    fault = error_record(caught(lambda: deeper(200)), same)
    assert fault.traceback is not None
    assert fault.traceback.count("  File ") == MAX_FRAMES
    assert fault.traceback.endswith("ValueError: the ground\n")


def test_error_type_includes_its_module_unless_it_is_builtin_or_rotas() -> None:
    class Mine(Exception):
        pass

    def fail() -> None:
        raise Mine("x")

    fault = error_record(caught(fail), same)
    assert fault.type == f"{__name__}.{Mine.__qualname__}"
    assert fault.traceback is not None and f"{fault.type}: x" in fault.traceback


class Sulking(Exception):
    """An error that fails when it is read."""

    def __getattr__(self, name: str) -> object:
        raise RuntimeError(f"do not look at my {name}")

    def __str__(self) -> str:
        raise RuntimeError("nor at my words")


class Nameless(Exception):
    __module__ = None  # type: ignore[assignment]


@pytest.mark.parametrize("kind", [Sulking, Nameless])
def test_an_unreadable_error_still_gives_a_record(kind: type[Exception]) -> None:
    def fail() -> None:
        raise kind("x")

    assert error_record(caught(fail), same).type == kind.__name__


async def test_a_job_that_fails_with_an_unreadable_error_ends(app: Rota) -> None:
    @app.task(max_attempts=1)
    async def sulks() -> None:
        raise Sulking

    job = await sulks.enqueue()
    await drain(app)
    assert (await job.refresh()).state is State.FAILED


def test_two_programs_with_one_file_name_keep_their_own_lines(tmp_path: Path) -> None:
    texts = []
    for word in ("first", "second"):
        (tmp_path / "same.py").write_text(f"raise ValueError('{word}')\n")
        code = compile((tmp_path / "same.py").read_text(), str(tmp_path / "same.py"), "exec")
        fault = error_record(caught(lambda code=code: exec(code)), same)  # type: ignore[misc]
        texts.append(fault.traceback)
    assert "raise ValueError('second')" in (texts[1] or "")


def test_frames_of_a_folder_named_like_rotas_are_kept(tmp_path: Path) -> None:
    file = tmp_path / "rota" / "worker" / "mine.py"
    code = compile("raise ValueError('mine')", str(file), "exec")
    assert str(file) in (error_record(caught(lambda: exec(code)), same).traceback or "")
