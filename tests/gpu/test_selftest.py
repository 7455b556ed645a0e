"""`cuzk doctor --selftest` on a card."""

from __future__ import annotations

import pytest

from cuzk.groth16.gpu.selftest import run_device

pytestmark = pytest.mark.gpu


def test_this_card_is_right(device):
    assert run_device(device, 1_000_000).wrong == []
