"""``rota config``: listing, getting and setting; files keep what they had, and passwords stay unseen."""

from __future__ import annotations

import os
import stat
import tomllib
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner, Result
from hypothesis import HealthCheck, example, given
from hypothesis import settings as effort
from hypothesis import strategies as st

from cli.command import rota_command
from rota import config
from rota.cli.root import root
from rota.config import sources
from rota.config.settings import FIELDS, to_text

CANARY = "canary-7c1e"
SECRET_URL = f"postgresql://shop:{CANARY}@db/shop"
COMMENTED = """\
# Settings of the shop.

[rota]
# Where the jobs are.
url = 'sqlite:///shop.db'   # beside the program
max_attempts = 4            # four is enough

lease_duration_s = 30.0
secret_fields = [
    "*pin*",  # of cards
    "dob",    # of people
]

[rota.retention_days]
failed = 90  # until the yearly review
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, the current one; warnings that are given once are given again."""
    monkeypatch.chdir(tmp_path)
    sources._warn_once.cache_clear()
    return tmp_path


def invoke(*args: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(root, ("config", *args), input=stdin)


def done(*args: str, stdin: str | None = None) -> str:
    result = invoke(*args, stdin=stdin)
    assert result.exit_code == 0, result.output
    return result.stdout


def refused(*args: str) -> str:
    """What the command says when it must do nothing."""
    before = {path: path.read_bytes() for path in Path().iterdir()}
    result = invoke(*args)
    assert result.exit_code == 2, result.output
    assert {path: path.read_bytes() for path in Path().iterdir()} == before
    return result.stderr


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


# --- list and get --------------------------------------------------------------------------------


def test_list_shows_every_setting_with_value_source_and_range(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "rota.toml").write_text("[rota]\nmax_attempts = 4\n")
    monkeypatch.setenv("ROTA_LOG_LEVEL", "debug")
    header, *rows = done("list").splitlines()
    assert header.split() == ["SETTING", "VALUE", "SOURCE", "RANGE"]
    found = {row.split()[0]: row.split()[1:] for row in rows}
    assert list(found) == list(FIELDS)
    assert found["max_attempts"] == ["4", "rota.toml", "1", "to", "100"]
    assert found["log_level"][:3] == ["debug", "environment", "ROTA_LOG_LEVEL"]
    assert found["tls_cert"] == ["–", "default"]


def test_list_as_json_matches_explain(folder: Path) -> None:
    told = msgspec.json.decode(done("list", "--json"))
    assert told["next"] is None
    assert msgspec.json.encode(told["items"]) == msgspec.json.encode(config.explain(config.load()))


def test_list_shows_settings_of_the_app_and_of_options(folder: Path) -> None:
    (folder / "shop_of_config.py").write_text("from rota import Rota\napp = Rota(max_attempts=9)\n")
    told = rota_command("config", "list", "--json", "--app", "shop_of_config:app", cwd=folder)
    found = {one["name"]: one for one in msgspec.json.decode(told.stdout)["items"]}
    assert (found["max_attempts"]["value"], found["max_attempts"]["source"]) == (9, "given")
    told = rota_command("config", "list", "--json", "--url", "sqlite:///f.db", cwd=folder)
    [url, *_] = msgspec.json.decode(told.stdout)["items"]
    assert (url["value"], url["source"]) == ("sqlite:///f.db", "given")


@pytest.mark.parametrize(
    ("key", "text"),
    [("max_attempts", "3"), ("lease_duration_s", "30"), ("behind_proxy", "false"), ("tls_cert", "")],
)
def test_get_prints_the_bare_value(folder: Path, key: str, text: str) -> None:
    assert done("get", key) == f"{text}\n"


def test_get_of_an_unknown_setting_suggests_the_nearest(folder: Path) -> None:
    said = refused("get", "max_atempts")
    assert said == "rota: rota config: there is no setting 'max_atempts'; did you mean max_attempts?\n"


def test_control_characters_in_a_value_do_not_reach_the_terminal(folder: Path) -> None:
    (folder / "rota.toml").write_text('[rota]\nadmin_host = "\\u001b]0;owned\\u0007"\n')
    for args in (["list"], ["list", "--json"], ["get", "admin_host"]):
        assert "\x1b" not in done(*args)


# --- set -----------------------------------------------------------------------------------------


def values(name: str) -> st.SearchStrategy[Any]:
    """Any value that the setting may have."""
    kind = FIELDS[name].type
    words = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)
    if name == "url":
        return st.from_regex(r"sqlite:///[a-z]{1,9}( [a-z]+)?\.db", fullmatch=True)
    if name == "unknown_task_after":
        return st.sampled_from(("off", "90s", "2d", "1h30m"))
    if name in config.RANGES:
        low, high = config.RANGES[name]
        return st.integers(int(low), int(high)) if kind is int else st.floats(low, high)
    if kind is bool:
        return st.booleans()
    if kind == tuple[str, ...]:
        return st.lists(words).map(tuple)
    if name.startswith("log_"):
        return st.sampled_from(("debug", "error") if name == "log_level" else ("text", "json"))
    return words.filter(lambda text: text.strip() not in ("", "-"))


@pytest.mark.parametrize("name", FIELDS)
@pytest.mark.parametrize("before", ["", COMMENTED], ids=["new", "commented"])
def test_a_value_that_is_set_is_loaded_again(folder: Path, name: str, before: str) -> None:
    @effort(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
    @given(values(name))
    @example(FIELDS[name].default)
    def check(value: Any) -> None:
        (folder / "rota.toml").write_text(before)
        text = msgspec.json.encode(value).decode() if isinstance(value, tuple) else to_text(value)
        done("set", "--", name, text)
        assert getattr(config.load(), name) == value
        if value is not None:
            assert config.sources_of(config.load())[name] == "rota.toml"

    check()


def test_set_keeps_comments_and_layout(folder: Path) -> None:
    file = folder / "rota.toml"
    file.write_text(COMMENTED)
    done("set", "max_attempts", "5")
    done("set", "lease_duration_s", "40")
    done("set", "retention_failed_days", "120")
    done("set", "secret_fields", "*pin*,iban")
    assert file.read_text() == (
        COMMENTED.replace("max_attempts = 4 ", "max_attempts = 5 ")
        .replace("30.0", "40.0")
        .replace("failed = 90 ", "failed = 120 ")
        .replace('"dob",    # of people', '"iban",')
    )


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("max_attempts", "5", 5),
        ("lease_duration_s", "40", 40),
        ("retention_failed_days", "0.5", 0.5),
        ("behind_proxy", "TRUE", True),
        ("allowed_hosts", "a.example, b.example", ["a.example", "b.example"]),
        ("allowed_hosts", '["a.example"]', ["a.example"]),
        ("admin_host", "0.0.0.0", "0.0.0.0"),
    ],
)
def test_a_value_is_written_in_its_own_type(folder: Path, key: str, text: str, value: Any) -> None:
    done("set", key, text)
    written = tomllib.loads((folder / "rota.toml").read_text())["rota"][key]
    assert (type(written), written) == (type(value), value)


@pytest.mark.parametrize(
    ("key", "text", "words"),
    [
        ("max_attempts", "0", "max_attempts=0 is out of range: 1 to 100"),
        ("max_attempts", "-5", "max_attempts=-5 is out of range: 1 to 100"),
        ("max_attempts", "many", "max_attempts='many' cannot be used"),
        ("lease_duration_s", "nan", "is out of range: 5 to 3600"),
        ("behind_proxy", "perhaps", "use true or false"),
        ("log_level", "loud", "use debug, info, warning or error"),
        ("allowed_hosts", "[1, 2]", "allowed_hosts='[1, 2]' cannot be used"),
        ("max_atempts", "3", "did you mean max_attempts?"),
        ("url", "rota.db", "is not a store URL"),
        ("url", f"mysql://root:{CANARY}@db/shop", "no store for MySQL"),
    ],
)
def test_an_invalid_value_is_rejected_and_nothing_is_written(
    folder: Path, key: str, text: str, words: str
) -> None:
    for before in (None, COMMENTED):
        if before is not None:
            (folder / "rota.toml").write_text(before)
        said = refused("set", key, text)
        assert words in said
        assert CANARY not in said


def test_a_new_file_is_private_and_an_existing_one_keeps_its_mode(folder: Path) -> None:
    before = os.umask(0)
    try:
        done("set", "max_attempts", "5")
        assert mode(folder / "rota.toml") == 0o600
        (folder / "rota.toml").chmod(0o644)
        done("set", "max_attempts", "6")
        assert mode(folder / "rota.toml") == 0o644
    finally:
        os.umask(before)
    assert [path.name for path in folder.iterdir()] == ["rota.toml"]


def test_a_link_to_the_file_stays_a_link(folder: Path) -> None:
    (folder / "etc").mkdir()
    (folder / "etc" / "real.toml").write_text("[rota]\n")
    (folder / "rota.toml").symlink_to(folder / "etc" / "real.toml")
    done("set", "max_attempts", "5")
    assert (folder / "rota.toml").is_symlink()
    assert config.load().max_attempts == 5


def test_set_reports_the_change_and_when_it_applies(folder: Path) -> None:
    assert done("set", "max_attempts", "5") == (
        "max_attempts = 5  written to rota.toml; restart running workers and servers to apply it\n"
    )
    done("set", "tls_cert", "cert.pem")
    assert done("set", "tls_cert", "").startswith("tls_cert  removed from rota.toml; ")
    assert (folder / "rota.toml").read_text() == "[rota]\nmax_attempts = 5\n"


def test_set_changes_the_table_in_use(folder: Path) -> None:
    (folder / "pyproject.toml").write_text("[project]\nname = 'shop'\n\n[tool.rota]\nmax_attempts = 4\n")
    done("set", "max_attempts", "5")
    assert [path.name for path in folder.iterdir()] == ["pyproject.toml"]
    assert config.load().max_attempts == 5
    done("set", "max_attempts", "6", "--file", "rota.toml")
    assert config.load().max_attempts == 6
    result = invoke("set", "max_attempts", "7", "--file", "pyproject.toml")
    assert (result.exit_code, result.stderr) == (0, "rota: not in effect: rota.toml overrides it\n")


def test_a_pyproject_without_a_rota_table_gets_one(folder: Path) -> None:
    before = "[project]\nname = 'shop'\n\n[tool.other]\nx = 1\n"
    (folder / "pyproject.toml").write_text(before)
    done("set", "max_attempts", "5", "--file", "pyproject.toml")
    assert (folder / "pyproject.toml").read_text() == f"{before}\n[tool.rota]\nmax_attempts = 5\n"


def test_set_warns_if_the_environment_overrides_the_file(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROTA_MAX_ATTEMPTS", "9")
    result = invoke("set", "max_attempts", "5")
    assert result.exit_code == 0
    assert result.stderr == "rota: not in effect: environment ROTA_MAX_ATTEMPTS overrides it\n"


def test_only_configuration_files_are_written(folder: Path) -> None:
    assert "rota reads rota.toml and pyproject.toml only" in refused(
        "set", "max_attempts", "5", "--file", "settings.toml"
    )


def test_an_invalid_value_in_the_file_can_be_corrected(folder: Path) -> None:
    (folder / "rota.toml").write_text("[rota]\nmax_attempts = 0\nlease_duration_s = 1\n")
    result = invoke("set", "max_attempts", "5")
    assert result.exit_code == 0
    assert "not valid yet: rota.toml: lease_duration_s=1 is out of range: 5 to 3600" in result.stderr
    assert invoke("set", "lease_duration_s", "5").stderr == ""
    assert config.load().max_attempts == 5


@pytest.mark.parametrize("text", ["[rota\n", "rota = 3\n", "[rota]\nx = 1\nx = 2\n"])
def test_an_unreadable_file_is_not_changed(folder: Path, text: str) -> None:
    (folder / "rota.toml").write_text(text)
    assert "rota.toml" in refused("set", "max_attempts", "5")


# --- passwords -----------------------------------------------------------------------------------


def test_a_password_is_shown_only_with_show_secrets(folder: Path) -> None:
    result = invoke("set", "url", "-", stdin=f"{SECRET_URL}\n")
    assert result.stdout.startswith("url = postgresql://shop:***@db/shop  written to rota.toml; ")
    assert config.load().url == SECRET_URL
    for args in (["list"], ["list", "--json"], ["get", "url"]):
        quiet, loud = invoke(*args), invoke(*args, "--show-secrets")
        assert (quiet.exit_code, loud.exit_code) == (0, 0)
        assert CANARY not in quiet.output + result.output
        assert "shop:***@db" in quiet.stdout
        assert SECRET_URL in loud.stdout


def test_a_password_in_a_world_readable_file_causes_a_warning(folder: Path) -> None:
    (folder / "rota.toml").write_text("[rota]\n")
    (folder / "rota.toml").chmod(0o644)
    for args in (["set", "url", SECRET_URL], ["list"]):
        told = rota_command("config", *args, cwd=folder)
        assert told.returncode == 0
        assert "rota.toml holds a password and others on this machine can read it" in told.stderr
        assert CANARY not in told.stdout + told.stderr
