"""The public door to the conformance suite; how to use it: see ``StoreConformance``'s package."""

from __future__ import annotations

from .conformance import StoreConformance

__all__ = ["StoreConformance"]
