"""A sector's proof by the service's prover without a service: what a run leaves open, the next one makes."""

from __future__ import annotations

import pytest

from cuzk.errors import DeviceLost, InputError, ProofInvalid
from cuzk.porep.job import PartitionFailed
from cuzk.service import once
from cuzk.service.prover import Made
from tests.unit.porep.c1_files import small_c1

C1 = small_c1("non-interactive")  # 13 partitions


class Proof:
    def __init__(self, data: bytes) -> None:
        self.data = data

    @staticmethod
    def from_bytes(data: bytes) -> Proof:
        return Proof(data)

    def to_bytes(self) -> bytes:
        return self.data


class Key:
    path = "k"

    def verifying_key(self) -> None:
        return None

    def require_quotient(self, quotient: str | None) -> str:
        return "c-free"


@pytest.fixture(autouse=True)
def without_pairings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(once, "Proof", Proof)
    monkeypatch.setattr(once, "Verifier", lambda *_: None)
    monkeypatch.setattr(once, "require_valid", lambda *_: None)


class Prover:
    """Makes partitions in order until one is spoiled, as often as `spoil` says."""

    def __init__(self, spoil: dict[int, list[BaseException]]) -> None:
        self.spoil, self.runs = spoil, []

    def prove(self, task) -> None:
        self.runs.append(list(task.partitions))
        for number in task.partitions:
            if self.spoil.get(number):
                raise self.spoil[number].pop(0)
            task.on_made(Made(number, bytes([number]) * 192, 0.5, 1.0))


def test_all_at_once() -> None:
    prover = Prover({})
    made = once.prove_sector(C1, prover, Key())
    assert prover.runs == [list(range(13))] and made.attempts == [1] * 13
    assert made.to_bytes() == b"".join(bytes([n]) * 192 for n in range(13)) and len(made.publics) == 13


@pytest.mark.parametrize("error", [ProofInvalid("spoiled"), DeviceLost(0, "gone")])
def test_a_bad_partition_is_made_again_and_the_others_are_kept(error: BaseException) -> None:
    said: list[str] = []
    prover = Prover({4: [error], 7: [error]})
    made = once.prove_sector(C1, prover, Key(), progress=said.append)
    assert prover.runs == [list(range(13)), list(range(4, 13)), list(range(7, 13))]
    assert made.attempts == [1] * 4 + [2] * 3 + [3] * 6
    assert any("again: partitions 4, 5" in line for line in said)


def test_a_partition_that_stays_bad_is_named() -> None:
    prover = Prover({5: [ProofInvalid("bad point")] * 9})
    with pytest.raises(PartitionFailed, match=r"partition 5 \(of 13, from 0\) .* 3 attempts: bad point"):
        once.prove_sector(C1, prover, Key())
    assert len(prover.runs) == 3


def test_what_another_try_does_not_mend_ends_it_at_once() -> None:
    prover = Prover({0: [InputError("a fault of the file")]})
    with pytest.raises(InputError, match="a fault of the file"):
        once.prove_sector(C1, prover, Key())
    assert len(prover.runs) == 1
