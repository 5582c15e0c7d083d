"""Secrets are found by the names of their fields, and struck out of values and texts."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from effort import examples
from hypothesis import given
from hypothesis import strategies as st

from rota.config import SECRET_FIELDS
from rota.core.payload.masking import MASK, is_secret, masked, secrets_in, struck
from rota.worker.redaction import Redactor


@pytest.mark.parametrize(
    "name",
    [
        "password",
        "userPassword",
        "DB_PASSWORD",
        "api-key",
        "apiKey",
        "access_token",
        "client_secret",
        "Cookie",
        *("pwd", "userPwd", "passphrase", "access_key", "AWS_ACCESS_KEY_ID", "tokens", "accessTokens", "jwt"),
        *("pin", "card-pin", "cardPIN", "otp", "auth", "basicAuth", "session_id", "sessionID", "cookies"),
        *("Set-Cookie", "Proxy-Authorization", "dsn", "DATABASE_DSN", "connectionString", "card.cvv", "IBAN"),
    ],
)
def test_a_name_is_secret_whatever_its_spelling(name: str) -> None:
    assert is_secret(name, SECRET_FIELDS)


@pytest.mark.parametrize(
    "name",
    [
        *("to", "order_id", "tokens_used", "max_tokens", "key", "primary_key", "author", "passage"),
        *(
            "shipping",
            "spin",
            "pinned",
            "pin_count",
            "opinion",
            "auth_method",
            "session",
            "cookie_policy",
            "jwtx",
            "",
        ),
    ],
)
def test_ordinary_names_are_not_secret(name: str) -> None:
    assert not is_secret(name, SECRET_FIELDS)


def test_a_pattern_of_whole_words_finds_no_part_of_a_word() -> None:
    names = ("pin", "cardPin", "card-pin", "shipping", "ship_ping")
    assert [is_secret(name, ("*_pin",)) for name in names] == [True, True, True, False, False]
    assert is_secret("api_key", ("apikey",)) and is_secret("apiKey", ("API-KEY",))


def test_a_value_is_masked_at_any_depth_and_keeps_its_shape() -> None:
    value = {"to": "ada", "smtp": [{"password": "hunter2", "port": 25}], "token": None, "secret": {"a": 1}}
    assert masked(value, SECRET_FIELDS) == {
        "to": "ada", "smtp": [{"password": MASK, "port": 25}], "token": None, "secret": MASK,
    }  # fmt: skip


def test_secrets_are_the_texts_and_numbers_inside_secret_fields() -> None:
    value = {"to": "ada", "secret": {"a": ["alpha", 12345, True]}, "list": [{"pin_password": "beta"}]}
    assert secrets_in(value, SECRET_FIELDS) == ["alpha", "12345", "beta"]


def test_a_secret_inside_a_longer_one_leaves_no_remains() -> None:
    assert struck("it is hunter2000", ["hunter2", "hunter2000"]) == f"it is {MASK}"


def nested(depth: int) -> Any:
    value: Any = "deep-secret"
    for _ in range(depth):
        value = {"password": value}
    return value


def test_a_value_that_is_nested_too_deeply_is_masked_whole() -> None:
    value: Any = "deep-secret"
    for _ in range(500):
        value = [value]
    assert "deep-secret" not in str(masked(value, SECRET_FIELDS))
    assert masked(nested(500), SECRET_FIELDS) == {"password": MASK}


# --- the secrecy of one job ----------------------------------------------------------------------


def secrecy(**payload: Any) -> Redactor:
    return Redactor(msgspec.json.encode(payload).decode(), SECRET_FIELDS)


@examples()
@given(st.text(min_size=4).filter(lambda text: text not in MASK and MASK not in text))
def test_a_secret_is_struck_out_as_it_is_and_as_repr_and_json_write_it(secret: str) -> None:
    keeps = secrecy(password=secret)
    spellings = [secret, repr(secret)[1:-1], msgspec.json.encode(secret).decode()[1:-1]]
    for spelling in spellings:
        assert keeps.text(f"<{spelling}>") == f"<{MASK}>"


def test_details_lose_secret_fields_and_secrets_in_other_fields() -> None:
    told = secrecy(api_key="canary", pin_password=987654).value(
        {"note": "used canary", "token": "x", "pin": 987654, "list": ["canary", 1, None], "ok": True}
    )
    assert told == {"note": f"used {MASK}", "token": MASK, "pin": MASK, "list": [MASK, 1, None], "ok": True}


@pytest.mark.parametrize("payload_json", ["", "{", "[" * 5000, '"text"', "null"])
def test_a_payload_that_cannot_be_read_names_no_secrets(payload_json: str) -> None:
    assert Redactor(payload_json, SECRET_FIELDS).text("hello") == "hello"


def test_without_declared_fields_nothing_is_struck_out() -> None:
    assert Redactor('{"password": "hunter2"}', ()).text("hunter2") == "hunter2"
