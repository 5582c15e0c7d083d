"""Which passwords are too easy to guess. Pure.

What remains after the predictable parts (common words, names, runs, repetitions) must still be long enough.
"""

from __future__ import annotations

import re

SHORTEST = 12
LEAST_LEFT = 6  # characters that are part of nothing predictable
LEAST_DISTINCT = 5
RUNS = ("abcdefghijklmnopqrstuvwxyz", "01234567890", "qwertyuiop", "asdfghjkl", "zxcvbnm", "qwertzuiop",
        "azertyuiop", "1qaz2wsx3edc4rfv5tgb6yhn", "qazwsxedcrfvtgbyhnujm")  # fmt: skip
SHORTEST_RUN = 4
WORDS = ("password", "passwort", "passphrase", "welcome", "letmein", "changeme", "iloveyou", "trustno",
         "dragon", "monkey", "football", "baseball", "sunshine", "princess", "superman", "master", "shadow",
         "secret", "admin", "administrator", "operator", "viewer", "login", "user", "test", "demo", "default",
         "guest", "root", "rota", "hello", "summer", "winter", "spring", "autumn", "company")  # fmt: skip
LOOKALIKES = str.maketrans("@431!05$7", "aaeiiosst")


def weakness(password: str, *names: str) -> str | None:
    """Why the password is too weak, to be read after "the password"; None: it will do."""
    if len(password) < SHORTEST:
        return f"is too short: at least {SHORTEST} characters"
    if not password.strip():
        return "consists of blanks"
    if len(set(password.lower())) < LEAST_DISTINCT:
        return f"repeats a few characters: use at least {LEAST_DISTINCT} different ones"
    unit = re.fullmatch(r"(.+?)\1+", password, re.DOTALL)
    if unit is not None and len(unit[1]) < SHORTEST:
        return "repeats one part"
    if min(len(_left(form, names)) for form in (password.lower(), _plain(password))) < LEAST_LEFT:
        return "is easy to guess: use several unrelated words, or more of your own characters"
    return None


def _plain(password: str) -> str:
    return password.lower().translate(LOOKALIKES)


def _left(text: str, names: tuple[str, ...]) -> str:
    """The text without what a guesser tries first."""
    for word in sorted({*WORDS, *(name.lower() for name in names if len(name) > 2)}, key=len, reverse=True):
        text = text.replace(word, "")
    text = re.sub(r"(19|20)\d\d", "", text)
    text = re.sub(r"(.)\1{2,}", r"\1", text, flags=re.DOTALL)
    return re.sub(r"[\W_]+", "", _without_runs(text))


def _without_runs(text: str) -> str:
    """The text without stretches of the alphabet, of digits or of a keyboard, in either direction."""
    lines = [line for run in RUNS for line in (run, run[::-1])]
    left, at = list[str](), 0
    while at < len(text):
        length = _run_at(text, at, lines)
        if length < SHORTEST_RUN:
            left.append(text[at])
            length = 1
        at += length
    return "".join(left)


def _run_at(text: str, at: int, lines: list[str]) -> int:
    length = SHORTEST_RUN
    while at + length <= len(text) and any(text[at : at + length] in line for line in lines):
        length += 1
    return length - 1
