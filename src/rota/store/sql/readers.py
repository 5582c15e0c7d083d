"""Readers of rows, compiled once from the fields of a job: as fast as if they were written by hand.

Owns the making of such functions. Must never be given text that is not the program's own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...model import Job


def job_reader(
    columns: Sequence[str], values: Mapping[str, str], scope: Mapping[str, Any], known: str = ""
) -> Callable[..., Job]:
    """A function of a row with these columns, and of what is ``known`` besides, that makes a Job.

    ``values`` has an expression for each field that is not simply the column of its name.
    """
    made = ", ".join(values.get(name, name) for name in Job.__struct_fields__)
    source = f"def read(row, {known}):\n    ({', '.join(columns)},) = row\n    return Job({made})"
    names: dict[str, Any] = {"Job": Job, **scope}
    exec(compile(source, f"<{__name__}>", "exec"), names)
    read: Callable[..., Job] = names["read"]
    return read
