"""Hashes of passwords: scrypt, with its parameters stored beside each hash. Slow on purpose.

Runs in threads, few at a time: each takes 32 MiB of memory.
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from typing import NamedTuple
from weakref import WeakKeyDictionary

AT_ONCE = 2


class Parameters(NamedTuple):
    """Cost of a hash: ``n`` and ``r`` set the memory (128·n·r bytes), ``p`` multiplies the time."""

    n: int
    r: int
    p: int


FIRST = Parameters(2**14, 8, 1)  # of hashes that were stored without parameters
CURRENT = Parameters(2**15, 8, 3)  # OWASP counts it equal to n=2**17, p=1, which takes 128 MiB

_turns: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()


class PasswordHash(NamedTuple):
    salt: str
    hash: str
    scrypt: Parameters


async def new_hash(password: str) -> PasswordHash:
    salt = secrets.token_hex(16)
    return PasswordHash(salt, await hashed(password, salt, CURRENT), CURRENT)


def is_outdated(parameters: Parameters) -> bool:
    return parameters != CURRENT


async def hashed(password: str, salt: str, parameters: Parameters) -> str:
    turns = _turns.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(AT_ONCE))
    async with turns:
        return await asyncio.to_thread(_scrypt, password, salt, parameters)


def _scrypt(password: str, salt: str, parameters: Parameters) -> str:
    n, r, p = parameters
    memory = 2 * 128 * n * r + 1024 * 1024
    found = hashlib.scrypt(
        password.encode(), salt=bytes.fromhex(salt), n=n, r=r, p=p, maxmem=memory, dklen=32
    )
    return found.hex()
