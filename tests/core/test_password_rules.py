"""Which passwords are refused."""

from __future__ import annotations

import pytest

from rota.core.password_rules import weakness


@pytest.mark.parametrize(
    ("password", "reason"),
    [
        ("short", "too short"),
        (" " * 12, "blanks"),
        ("aaaaaaaaaaaa", "repeats a few"),
        ("passwordpassword", "repeats one part"),
        ("abcdabcdabcd", "repeats a few"),
        ("hunter2hunter2", "repeats one part"),
        ("password1234", "easy to guess"),
        ("P@ssw0rd!2024", "easy to guess"),
        ("qwertyuiop123", "easy to guess"),
        ("abcdefghijklm", "easy to guess"),
        ("987654321098", "easy to guess"),
        ("1qaz2wsx3edc", "easy to guess"),
        ("Welcome2026!!", "easy to guess"),
        ("annabel-annabel1", "easy to guess"),
        ("rota-admin-2026", "easy to guess"),
    ],
)
def test_weak_password_is_refused_with_the_reason(password: str, reason: str) -> None:
    assert reason in (weakness(password, "annabel") or "")


@pytest.mark.parametrize(
    "password",
    ["correct horse battery", "a long enough sentence", "canary-password-of-ada", "kX9#mQ2$vL7p", 
     "Tr0ub4dor&3xkcd", "größer als das Meer", "anna liebt grünen Tee"],
)  # fmt: skip
def test_passphrases_and_random_characters_are_accepted(password: str) -> None:
    assert weakness(password, "anna") is None
