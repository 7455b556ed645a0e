"""The seam between what is proved and the run: values are made in the step `witness`, each partition's when its turn comes."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from cuzk.errors import FormatError, InputError, ProofInvalid
from cuzk.exec.run import Proving, bind_key, prove_with
from cuzk.groth16.assignments import Ready
from cuzk.groth16.load import load_key, open_witness
from cuzk.groth16.prover.products import Witness
from cuzk.model import load_scenario
from cuzk.trace.spans import spans
from tests.unit.exec.playing import ROOT

MUL = ROOT / "tests" / "fixtures" / "mul"


class Counted:
    """The fixture's witness for every partition, with what was asked."""

    def __init__(self, key, partitions: int | None = 3) -> None:
        self.values = open_witness(MUL / "mul.wtns")(key)
        self.partitions = partitions
        self.asked: list[tuple[int, int]] = []
        self.told: list[int] = []
        self.threads: set[str] = set()
        self.public: dict[tuple[int, int], list[int]] = {}

    def witness(self, proof: int, partition: int) -> Witness:
        self.asked.append((proof, partition))
        self.threads.add(threading.current_thread().name)
        return self.values.copy()

    def public_inputs(self, proof: int, partition: int) -> list[int] | None:
        return self.public.get((proof, partition))

    def examples(self):
        return [self.values]

    def done(self, proof: int) -> None:
        self.told.append(proof)


def run(assignments_of, tmp_path: Path, proofs: int = 2, partitions: int = 7):
    scenario = load_scenario(ROOT / "scenarios" / "demo-proofs.yaml")
    scenario = scenario.model_copy(
        update={
            "circuit": scenario.circuit.model_copy(update={"partitions": partitions}),
            "workload": scenario.workload.model_copy(update={"proofs": proofs}),
        }
    )
    key = load_key(MUL / "mul.zkey")
    assignments = assignments_of(key)
    return assignments, prove_with(bind_key(scenario, key, assignments, Proving("k", ()), idle_bytes=0), tmp_path / "out")


def test_each_partition_is_made_once_in_its_own_step(tmp_path: Path) -> None:
    assignments, result = run(Counted, tmp_path)
    assert result.exit_code == 0
    assert sorted(assignments.asked) == [(proof, part) for proof in range(2) for part in range(3)]
    assert sorted(assignments.told) == [0, 1]
    made = [span for span in spans(result.events) if span.name == "witness"]
    assert sorted((span.proof, span.partition) for span in made) == sorted(assignments.asked)
    assert (tmp_path / "out" / "proof-001.bin").stat().st_size == 3 * 192


def test_the_scenario_says_how_many_where_the_assignments_do_not(tmp_path: Path) -> None:
    assignments, result = run(lambda key: Counted(key, None), tmp_path, partitions=2)
    assert result.exit_code == 0 and len(assignments.asked) == 4


def test_other_public_inputs_than_the_statement_fail_the_proof_and_no_other(tmp_path: Path) -> None:
    def wrong(key):
        made = Counted(key)
        made.public[1, 2] = [1, 2]
        return made

    _, result = run(wrong, tmp_path)
    assert isinstance(result.error, ProofInvalid) and "partition 2" in str(result.error)
    assert [row["proof"] for row in result.document["failures"]] == [1]
    assert (tmp_path / "out" / "proof-000.bin").exists() and not (tmp_path / "out" / "proof-001.bin").exists()


def test_a_source_that_is_wrong_fails_its_proof_with_the_place(tmp_path: Path) -> None:
    class Broken(Counted):
        def witness(self, proof: int, partition: int) -> Witness:
            if proof == 0:
                raise FormatError("c1.json", "vanilla_proofs: gone")
            return super().witness(proof, partition)

    _, result = run(Broken, tmp_path)
    assert isinstance(result.error, InputError) and "c1.json: vanilla_proofs: gone" in str(result.error)
    assert (tmp_path / "out" / "proof-001.bin").exists()


def test_ready_witnesses_go_round_and_are_copies() -> None:
    key = load_key(MUL / "mul.zkey")
    values = open_witness(MUL / "mul.wtns")(key)
    ready = Ready([values, values + 0])
    made = ready.witness(3, 5)
    made[:] = 0
    assert ready.examples()[1].any() and ready.witness(3, 5).any() and ready.public_inputs(0, 0) is None


@pytest.mark.parametrize("name", ["SectorFiles", "SectorAssignments"])
def test_sectors_are_assignments(name: str, tmp_path: Path) -> None:
    """C1 outputs behind the same seam; those from files are read again for each proof."""
    from cuzk.porep import job
    from cuzk.porep.c1.write import write_c1
    from tests.unit.porep.c1_files import small_c1

    path = tmp_path / "c1.json"
    write_c1(small_c1(), path)
    made = job.SectorFiles([path]) if name == "SectorFiles" else job.SectorAssignments([small_c1()])
    assert made.partitions == 1 and len(made.examples()) == 1
    values = made.witness(4, 0)
    assert made.public_inputs(4, 0) == small_c1().public_inputs(0)
    assert (values.body_bits == made.examples()[0].body_bits).all()
    made.done(4)
    made.done(4)
    if name == "SectorFiles":
        data = bytearray(path.read_bytes())
        data[5] ^= 1
        path.write_bytes(data)
        with pytest.raises(FormatError, match=r"c1\.json"):
            made.witness(5, 0)
