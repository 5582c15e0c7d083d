"""The public door to the conformance suite; how to use it: see the package ``rota.testing.conformance``."""

from __future__ import annotations

from .conformance import StoreConformance, StoreCrashConformance, StoreHost

__all__ = ["StoreConformance", "StoreCrashConformance", "StoreHost"]
