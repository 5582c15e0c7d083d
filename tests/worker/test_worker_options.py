"""Worker options: which are accepted, and how the others are named."""

from __future__ import annotations

import pytest

from rota import ConfigError, Rota

STILL = {"heartbeat_thread": False, "upkeep": False}


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("concurrency", 0, "concurrency=0"),
        ("concurrency", 5000, "1 to 4096"),
        ("queues", "mail", "list of names"),
        ("queues", [], "queues"),
        ("max_jobs", 0, "max_jobs=0"),
        ("lease_s", 0, "lease_s=0"),
        ("poll_s", -1, "poll_s=-1"),
        ("shutdown_timeout", -1, "shutdown_timeout=-1"),
        ("concurency", 3, "did you mean concurrency?"),
    ],
)
async def test_an_invalid_worker_option_is_named(app: Rota, option: str, value: object, words: str) -> None:
    with pytest.raises(ConfigError, match=words.replace("?", r"\?")):
        async with app.worker(**{option: value}):
            pass
    assert not app.is_running
