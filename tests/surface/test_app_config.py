"""Settings: where they come from, which comes first, what is refused, and how they are explained."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from pages import DOCS

from rota import ConfigError, MissingDriver, Rota, config
from rota.config import sources
from rota.config.passwords import has_password, without_password
from rota.config.settings import FIELDS, allowed, to_text
from rota.operate.views import Setting

CANARY = "canary-7c1e"
EXAMPLES: dict[str, Any] = {  # a value for each setting that is not its default
    "url": "sqlite:///elsewhere.db",
    **{name: bounds[1] for name, bounds in config.RANGES.items()},
    "scheduler_enabled": False,
    "secret_fields": ("*pin*", "dob"),
    "sql_functions": ("public.*",),
    "admin_host": "0.0.0.0",
    "allowed_hosts": ("jobs.example.org",),
    "behind_proxy": True,
    "tls_cert": "cert.pem",
    "tls_key": "key.pem",
    "log_level": "debug",
    "log_format": "json",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def warnings(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    """What is warned of; each warning is said once per process, so it must be forgotten first."""
    sources._warn_once.cache_clear()
    with caplog.at_level(logging.WARNING, "rota.config"):
        yield caplog


def explained(settings: config.Settings) -> dict[str, dict[str, Any]]:
    return {setting["name"]: setting for setting in config.explain(settings)}


# --- where they come from ------------------------------------------------------------------------


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


def test_a_broken_pyproject_of_another_tool_is_ignored(folder: Path) -> None:
    (folder / "pyproject.toml").write_text("[project\n")
    assert Rota().settings == config.Settings()


def test_every_setting_can_stand_in_a_file_that_a_variable_names(folder: Path) -> None:
    for name, value in EXAMPLES.items():
        (folder / "value").write_text(f"{to_text(value)}\n")
        settings = config.load({}, {f"ROTA_{name.upper()}_FILE": str(folder / "value")}, folder)
        assert getattr(settings, name) == value
        assert explained(settings)[name]["source"] == f"environment ROTA_{name.upper()}_FILE"


def test_the_url_may_stand_in_a_file_under_either_name(folder: Path) -> None:
    (folder / "a").write_text("sqlite:///a.db\n")
    (folder / "b").write_text("sqlite:///b.db\n")
    environ = {"DATABASE_URL_FILE": str(folder / "b")}
    assert config.load({}, environ, folder).url == "sqlite:///b.db"
    environ["ROTA_URL_FILE"] = str(folder / "a")
    assert config.load({}, environ, folder).url == "sqlite:///a.db"


@pytest.mark.parametrize("variable", ["ROTA_URL", "ROTA_MAX_ATTEMPTS", "DATABASE_URL"])
def test_a_variable_and_its_file_together_are_refused(folder: Path, variable: str) -> None:
    with pytest.raises(ConfigError) as caught:
        config.load({}, {variable: "1", f"{variable}_FILE": "somewhere"}, folder)
    assert str(caught.value) == f"{variable} and {variable}_FILE are both set: unset one of them"


def test_a_file_that_cannot_be_read_is_named_and_its_content_is_not(folder: Path) -> None:
    with pytest.raises(ConfigError, match="ROTA_URL_FILE: cannot read 'missing': No such file"):
        config.load({}, {"ROTA_URL_FILE": "missing"}, folder)
    (folder / "raw").write_bytes(CANARY.encode() + b"\xff")
    with pytest.raises(ConfigError) as caught:
        config.load({}, {"ROTA_URL_FILE": str(folder / "raw")}, folder)
    assert "is not UTF-8 text" in str(caught.value)
    assert CANARY not in str(caught.value)


@pytest.mark.parametrize(
    "text", ["a.example,b.example", " a.example , b.example,", '["a.example", "b.example"]']
)
def test_a_list_in_the_environment_is_written_by_commas_or_as_json(folder: Path, text: str) -> None:
    assert config.load({}, {"ROTA_ALLOWED_HOSTS": text}, folder).allowed_hosts == ("a.example", "b.example")


def test_an_empty_text_empties_a_list_and_leaves_out_what_may_be_left_out(folder: Path) -> None:
    settings = config.load({}, {"ROTA_SECRET_FIELDS": "", "ROTA_TLS_CERT": "", "ROTA_LOG_FORMAT": ""}, folder)
    assert (settings.secret_fields, settings.tls_cert, settings.log_format) == ((), None, None)


def test_retention_may_be_a_table_by_state(folder: Path) -> None:
    (folder / "rota.toml").write_text(
        "[rota]\nretention_succeeded_days = 3\n[rota.retention_days]\nfailed = 90\ncancelled = 0.5\n"
    )
    settings = config.load({}, {}, folder)
    days = (
        settings.retention_succeeded_days,
        settings.retention_failed_days,
        settings.retention_cancelled_days,
    )
    assert days == (3, 90, 0.5)
    assert config.load({"retention_days": {"failed": 4}}, {}, folder).retention_failed_days == 4


# --- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "bounds"), config.RANGES.items(), ids=list(config.RANGES))
def test_every_range_is_checked_at_both_ends(name: str, bounds: tuple[float, float]) -> None:
    kind = float if name.endswith(("_s", "_days")) else int
    for good in map(kind, bounds):
        assert getattr(config.load({name: good}, {}), name) == good
    for bad in (kind(bounds[0] - 1), kind(bounds[1] + 1)):
        with pytest.raises(ConfigError) as caught:
            config.load({name: bad}, {})
        assert f"{name}={bad!r} is out of range: {bounds[0]:.0f} to {bounds[1]:.0f}" in str(caught.value)


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
            "environment ROTA_MAX_ATTEMPTS: max_attempts='many'",
        ),
        ({}, {"ROTA_MAX_ATTEMPTS": "0"}, "out of range: 1 to 100"),
        ({}, {"ROTA_BEHIND_PROXY": "perhaps"}, "use true or false"),
        ({}, {"ROTA_LOG_LEVEL": "loud"}, "use debug, info, warning or error"),
        ({}, {"ROTA_ADMIN_HOST": ""}, "admin_host='' names no address"),
        ({}, {"ROTA_LOG_FORMAT": "xml"}, "use text or json"),
        ({}, {"ROTA_ALLOWED_HOSTS": "[1]"}, "allowed_hosts='[1]' cannot be used"),
        ({"allowed_hosts": "a"}, {}, "allowed_hosts='a' cannot be used"),
    ],
)
def test_a_setting_that_cannot_be_used_is_named_with_its_source(
    folder: Path, given: dict[str, Any], environ: dict[str, str], words: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        config.load(given, environ, folder)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "[rota]\nworker_concurency = 3",
            "rota.toml: there is no setting 'worker_concurency'; did you mean worker",
        ),
        ("[rota]\nmax_attempts = 0", "rota.toml: max_attempts=0 is out of range: 1 to 100"),
        ("[rota]\nmax_attempts = '3'", "rota.toml: max_attempts='3' cannot be used"),
        ("max_attempts = 3", "rota.toml: 'max_attempts' is outside the table [rota]"),
        ("rota = 3", "rota.toml: rota must be a table"),
        ("[rota]\nretention_days = 3", "retention_days=3 must be a table such as {failed = 30}"),
        ("[rota]\nretention_days.faild = 3", "did you mean retention_failed_days?"),
        ("[rota]\nretention_days.failed = -1", "retention_failed_days=-1 is out of range: 0 to 36500"),
        (
            "[rota]\nretention_days.failed = 3\nretention_failed_days = 3",
            "retention_days.failed and retention_failed_days are the same: keep one",
        ),
    ],
)
def test_what_is_wrong_in_the_file_is_named(folder: Path, text: str, words: str) -> None:
    (folder / "rota.toml").write_text(text)
    with pytest.raises(ConfigError) as caught:
        Rota()
    assert words in str(caught.value)


def test_a_variable_that_is_not_known_is_warned_of_once_with_the_nearest_name(
    folder: Path, warnings: pytest.LogCaptureFixture
) -> None:
    ours = {"ROTA_APP": "a", "ROTA_TOKEN": "t", "ROTA_API": "http://localhost", "ROTA_DEBUG": "1"}
    for _ in range(2):
        config.load({}, {"ROTA_WORKER_CONCURENCY": "3", "ROTA_ZZZ": "3", "PATH": "/bin", **ours}, folder)
    assert warnings.messages == [
        "the environment variable ROTA_WORKER_CONCURENCY is not a setting of rota; "
        "did you mean ROTA_WORKER_CONCURRENCY?",
        "the environment variable ROTA_ZZZ is not a setting of rota",
    ]


@pytest.mark.parametrize(("name", "table"), [("rota.toml", "rota"), ("pyproject.toml", "tool.rota")])
def test_a_password_in_a_file_that_others_can_read_is_warned_of(
    folder: Path, warnings: pytest.LogCaptureFixture, name: str, table: str
) -> None:
    file = folder / name
    file.write_text(f'[{table}]\nurl = "postgresql://shop:{CANARY}@db/shop"\n')
    file.chmod(0o600)
    config.load({}, {}, folder)
    assert warnings.messages == []
    file.chmod(0o640)
    config.load({}, {}, folder)
    [said] = warnings.messages
    assert f"{name} holds a password" in said
    assert f"chmod 600 {name}" in said
    assert CANARY not in said


def test_a_file_without_a_password_may_be_read_by_all(
    folder: Path, warnings: pytest.LogCaptureFixture
) -> None:
    (folder / "rota.toml").write_text('[rota]\nurl = "postgresql://shop@db/shop"\n')
    (folder / "rota.toml").chmod(0o644)
    config.load({}, {}, folder)
    assert warnings.messages == []


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
        ("postgresql+rust://u:secret@db/shop", "did you mean 'postgresql'?"),
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


def test_a_url_of_the_wrong_type_is_refused_without_being_shown(folder: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        config.load({"url": [f"postgresql://u:{CANARY}@db/shop"]}, {}, folder)
    assert "url cannot be used" in str(caught.value)
    assert CANARY not in str(caught.value)


# --- explain -------------------------------------------------------------------------------------


def test_explain_names_the_source_of_each_value(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "rota.toml").write_text("[rota]\nmax_attempts = 4\npoll_interval_ms = 1000\n")
    monkeypatch.setenv("ROTA_LOG_LEVEL", "debug")
    monkeypatch.setenv("DATABASE_URL", "sqlite:///d.db")
    found = explained(Rota(lease_duration_s=9).settings)
    names = ("max_attempts", "poll_interval_ms", "log_level", "url", "lease_duration_s", "admin_port")
    assert [found[name]["source"] for name in names] == [
        "rota.toml",
        "rota.toml",
        "environment ROTA_LOG_LEVEL",
        "environment DATABASE_URL",
        "given",
        "default",
    ]
    assert found["max_attempts"] == {
        "name": "max_attempts", "value": 4, "default": 3, "source": "rota.toml", "range": (1, 100),
        "help": "attempts per job when its task sets none",
    }  # fmt: skip


def test_the_source_is_from_when_the_program_started_and_no_part_of_the_value(folder: Path) -> None:
    (folder / "pyproject.toml").write_text("[tool.rota]\nmax_attempts = 4\n")
    settings = config.load({}, {}, folder)
    (folder / "pyproject.toml").write_text("[tool.rota]\nmax_attempts = 5\n")
    assert explained(settings)["max_attempts"]["source"] == "pyproject.toml"
    assert settings == config.Settings(max_attempts=4) == config.load({"max_attempts": 4}, {}, folder)


def test_a_setting_that_is_replaced_counts_as_given(folder: Path) -> None:
    settings = config.load({}, {"ROTA_MAX_ATTEMPTS": "4"}, folder)
    found = explained(config.replaced(settings, url="sqlite:///x.db"))
    assert (found["url"]["source"], found["url"]["value"]) == ("given", "sqlite:///x.db")
    assert found["max_attempts"]["source"] == "environment ROTA_MAX_ATTEMPTS"
    with pytest.raises(ConfigError, match="out of range"):
        config.replaced(settings, max_attempts=0)


def test_explain_is_plain_json_and_fits_the_admin_view() -> None:
    found = config.explain(config.Settings())
    assert msgspec.json.decode(msgspec.json.encode(found)) == [
        {**one, "range": one["range"] and list(one["range"])} for one in found
    ]
    assert [Setting(**one).name for one in found] == list(FIELDS)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        (f"postgresql://shop:{CANARY}@db:5432/shop", "postgresql://shop:***@db:5432/shop"),
        (
            f"postgresql://shop:{CANARY}@db/shop?sslmode=require",
            "postgresql://shop:***@db/shop?sslmode=require",
        ),
        (f"postgresql://db/shop?user=a&password={CANARY}", "postgresql://db/shop?user=a&password=***"),
        (f"postgresql://db/shop?sslpassword={CANARY}", "postgresql://db/shop?sslpassword=***"),
        (f"postgresql://db/shop?listen=postgresql://u:{CANARY}@x/s", "postgresql://db/shop?listen=***"),
        (f"postgresql://shop:a@{CANARY}@db/shop", "postgresql://shop:***@db/shop"),
        (f"postgresql://shop:a/{CANARY}@db/shop", "postgresql://***@db/shop"),
        (f"postgresql://shop:a?{CANARY}@db/shop", "postgresql://***@db/shop"),
        (f"postgresql://shop:a#{CANARY}@db/shop", "postgresql://***@db/shop"),
        (f"postgresql://shop:a@b/{CANARY}@db/shop", "postgresql://***@db/shop"),
        (f"postgresql://shop:a@b?{CANARY}@db/shop", "postgresql://***@db/shop"),
        (f"postgresql://shop:{CANARY}@[db/shop", "postgresql://***"),
        (f"redis://:{CANARY}@db/0", "redis://:***@db/0"),
        (f"postgresql://shop:a/{CANARY}@db/shop?password={CANARY}", "postgresql://***@db/shop"),
        (f"postgresql://shop:{CANARY}", "postgresql://***"),
        (f"postgresql:///shop:{CANARY}@db/shop", "postgresql://***@db/shop"),
        (f"postgresql://db/shop?password=a&{CANARY}#b", "postgresql://db/shop?password=***"),
        (f"host=db password={CANARY} dbname=shop", "host=db password=***"),
        (f"host=db PASSWORD = 'it\\'s {CANARY}'", "host=db PASSWORD =***"),
        (f"shop:{CANARY}@db/shop", "***@db/shop"),
    ],
)
def test_a_password_in_a_url_is_never_shown(url: str, shown: str) -> None:
    assert without_password(url) == shown
    assert has_password(url)
    assert CANARY not in str(config.explain(config.Settings(url=url)))
    assert CANARY in str(config.explain(config.Settings(url=url), show_secrets=True))


@pytest.mark.parametrize(
    "url",
    [
        "sqlite:///rota.db",
        "sqlite:///a@b.db",
        "sqlite://:memory:",
        "postgresql://me@db:5432/shop?x=%20y",
        "postgresql://a:5432,[::1]:5433/shop?host=/tmp",
        "postgresql:///shop",
        "host=db dbname=shop",
        "",
        "x",
    ],
)
def test_a_url_without_a_password_is_shown_as_it_is(url: str) -> None:
    assert without_password(url) == url
    assert not has_password(url)


# --- what is documented --------------------------------------------------------------------------


def test_every_setting_is_documented_with_variable_default_range_and_meaning() -> None:
    text = (DOCS / "reference" / "settings.md").read_text(encoding="utf-8")
    plain = re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", text)
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in plain.splitlines()
        if "`ROTA_" in line
    ]
    documented = {row[0].strip("`"): row[1:] for row in rows if len(row) == 5}
    assert list(documented) == list(FIELDS)
    for name, field in FIELDS.items():
        default = to_text(field.default)
        assert documented[name] == [
            f"`ROTA_{name.upper()}`",
            f"`{default}`" if default else "none",
            allowed(name),
            config.HELP[name],
        ]


def test_every_setting_and_nothing_else_has_a_meaning() -> None:
    assert list(config.HELP) == list(FIELDS)
    assert set(config.RANGES) == {name for name, field in FIELDS.items() if field.type in (int, float)}
