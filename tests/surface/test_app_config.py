"""Settings: where they come from, which comes first, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rota import ConfigError, MissingDriver, Rota, config


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_without_any_setting_jobs_go_to_a_file_beside_the_program(folder: Path) -> None:
    assert Rota().settings == config.Settings(url="sqlite:///rota.db")
    assert list(folder.iterdir()) == []


def test_arguments_come_before_the_environment_before_the_file_before_the_default(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "rota.toml").write_text(
        '[rota]\nurl = "sqlite:///file.db"\nmax_attempts = 4\npoll_interval_ms = 50\n'
    )
    assert (Rota().settings.url, Rota().settings.max_attempts) == ("sqlite:///file.db", 4)
    monkeypatch.setenv("DATABASE_URL", "sqlite:///database.db")
    assert Rota().settings.url == "sqlite:///database.db"
    monkeypatch.setenv("ROTA_URL", "sqlite:///rota-url.db")
    monkeypatch.setenv("ROTA_MAX_ATTEMPTS", "5")
    assert (Rota().settings.url, Rota().settings.max_attempts) == ("sqlite:///rota-url.db", 5)
    given = Rota("sqlite:///given.db", max_attempts=6).settings
    assert (given.url, given.max_attempts, given.poll_interval_ms) == ("sqlite:///given.db", 6, 50)


def test_pyproject_serves_where_there_is_no_file_of_our_own(folder: Path) -> None:
    (folder / "pyproject.toml").write_text('[project]\nname = "shop"\n[tool.rota]\nworker_concurrency = 3\n')
    assert Rota().settings.worker_concurrency == 3
    (folder / "rota.toml").write_text("[rota]\nworker_concurrency = 4\n")
    assert Rota().settings.worker_concurrency == 4


def test_a_file_that_is_no_toml_is_named(folder: Path) -> None:
    (folder / "rota.toml").write_text("[rota\n")
    with pytest.raises(ConfigError, match=r"rota\.toml cannot be read"):
        Rota()


def test_somebody_elses_broken_pyproject_is_not_ours_to_judge(folder: Path) -> None:
    (folder / "pyproject.toml").write_text("[project\n")
    assert Rota().settings == config.Settings()


@pytest.mark.parametrize(("name", "bounds"), config.RANGES.items(), ids=list(config.RANGES))
def test_every_range_is_checked_at_both_ends(name: str, bounds: tuple[float, float]) -> None:
    kind = float if name.endswith(("_s", "_days")) else int
    for good in map(kind, bounds):
        assert getattr(config.load({name: good}, {}), name) == good
    for bad in (kind(bounds[0] - 1), kind(bounds[1] + 1)):
        with pytest.raises(ConfigError) as caught:
            config.load({name: bad}, {})
        assert f"{name}={bad!r} is out of range: {bounds[0]:g} to {bounds[1]:g}" in str(caught.value)


@pytest.mark.parametrize(
    ("given", "environ", "words"),
    [
        ({"max_attempts": "three"}, {}, "Rota(…): max_attempts='three' cannot be used"),
        ({"max_attempts": True}, {}, "max_attempts=True"),
        ({"lease_duration_s": float("nan")}, {}, "lease_duration_s=nan is out of range: 5 to 3600"),
        ({"max_atempts": 3}, {}, "no setting 'max_atempts'; did you mean max_attempts?"),
        ({"zzz": 3}, {}, "known settings: url"),
        (
            {},
            {"ROTA_MAX_ATTEMPTS": "many"},
            "variable ROTA_MAX_ATTEMPTS: max_attempts='many'",
        ),
        ({}, {"ROTA_MAX_ATTEMPTS": "0"}, "out of range: 1 to 100"),
    ],
)
def test_a_setting_that_cannot_be_used_is_named_with_its_source(
    folder: Path, given: dict[str, Any], environ: dict[str, str], words: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        config.load(given, environ, folder)
    assert words in str(caught.value)


def test_an_unknown_key_in_the_file_is_named(folder: Path) -> None:
    (folder / "rota.toml").write_text("[rota]\nworker_concurency = 3\n")
    with pytest.raises(ConfigError, match=r"configuration file.*did you mean worker_concurrency\?"):
        Rota()


@pytest.mark.parametrize("text", ["true", "1", "false", "0"])
def test_a_switch_in_the_environment_is_read_as_one(text: str) -> None:
    settings = config.load({}, {"ROTA_SCHEDULER_ENABLED": text})
    assert settings.scheduler_enabled is (text in ("true", "1"))


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("", "is not a store URL"),
        ("rota.db", "is not a store URL"),
        ("mysql://root:secret@db/shop", "no store for MySQL"),
        ("postgresql+psycopg://u:secret@db/shop", "did you mean 'postgresql'?"),
        ("oracle://u:secret@db/shop", "unknown store scheme 'oracle'"),
    ],
)
async def test_a_url_that_cannot_be_used_is_named_without_its_password(url: str, words: str) -> None:
    app = Rota(url)
    with pytest.raises(ConfigError) as caught:
        await app.enqueue("work")
    with pytest.raises(ConfigError):
        app.enqueue_sync("work")
    await app.close()
    assert words in str(caught.value)
    assert "secret" not in str(caught.value)
    assert not isinstance(caught.value, MissingDriver)
