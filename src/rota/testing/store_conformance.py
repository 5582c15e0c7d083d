"""The public module of the conformance suite; ``rota.testing.conformance`` describes how to use it."""

from __future__ import annotations

from .conformance import StoreConformance, StoreCrashConformance, StoreHost

__all__ = ["StoreConformance", "StoreCrashConformance", "StoreHost"]
