"""The numbers of the rules in ``store/protocol.py``, as marks on the tests that check them."""

from __future__ import annotations

import pytest

keeps = pytest.mark.rule  # ``@keeps(7)``: this test checks rule 7
