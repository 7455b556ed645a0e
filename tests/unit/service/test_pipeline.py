"""The prover of this process: real proofs of a small circuit through the pipeline, as the service asks for them."""

from __future__ import annotations

import asyncio
import os
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cuzk.errors import InputError, OutOfMemoryError, ProofInvalid
from cuzk.groth16.formats.proof import Proof
from cuzk.groth16.formats.wtns import WtnsFile
from cuzk.groth16.load import load_key
from cuzk.groth16.verify import Verifier
from cuzk.service.config import Settings
from cuzk.service.failures import Cancelled
from cuzk.service.forecast import Forecaster, Load
from cuzk.service.keys import KeyStore, Loaded
from cuzk.service.kinds import Kind, Kinds
from cuzk.service.pipeline import PipelineProver
from cuzk.service.prover import Task
from cuzk.service.request import Priority, ProofRequest
from cuzk.service.standard import host_scenario, measured_calibration

from .support import running
from .test_service import ended

FIXTURE = Path(__file__).parents[2] / "fixtures" / "chain1k"
PARTITIONS = 3


@dataclass(frozen=True)
class ChainStatement:
    values: np.ndarray
    wrong: tuple[int, ...] = ()
    partitions: int = PARTITIONS
    circuit_id: str = "chain1k"

    def witness(self, partition: int, circuit: Any) -> np.ndarray:
        values = self.values.copy()
        if partition in self.wrong:
            values[5] ^= np.uint64(1)
        return values

    def public_inputs(self, partition: int) -> list[int]:
        return [int.from_bytes(row.tobytes(), "little") for row in self.values[1:3]]


def statement(**others: Any) -> ChainStatement:
    return ChainStatement(WtnsFile(FIXTURE / "chain1k.wtns").values, **others)


def load(name: str) -> Loaded:
    if name != "chain1k":
        raise InputError(f"unknown circuit ID: {name}")
    return Loaded.of(name, load_key(FIXTURE / "chain1k.zkey"), None)


@pytest.fixture
def observed():
    return []


@pytest.fixture
def prover(observed):
    settings = Settings(ram_bytes=1 << 30, pw=2, threads=2)
    scenario = host_scenario(settings, "cpu")
    return PipelineProver(KeyStore(load), scenario, threads=2, observe=lambda *run: observed.append(run))


def test_partitions_come_one_by_one_and_verify(prover, observed):
    made, events = {}, []
    task = Task("a", statement(), [2, 0], lambda one: made.setdefault(one.partition, one), emit=events.append)
    prover.prove(task)
    assert set(made) == {0, 2}
    verifier = Verifier(load_key(FIXTURE / "chain1k.zkey").verifying_key())
    for one in made.values():
        assert len(one.proof) == 192 and verifier.accepts(Proof.from_bytes(one.proof), statement().public_inputs(0))
        assert one.synth_s > 0 and one.gpu_s > 0
    assert made[0].proof != made[2].proof  # fresh blinding
    assert {event.partition for event in events if event.kind == "complete"} == {0, 2, -1}
    proofs = [made[0].proof, made[2].proof, made[0].proof]
    assert prover.bad_partitions(statement(), proofs) == []
    proofs[1] = proofs[1][:191] + bytes([proofs[1][191] ^ 1])
    assert prover.bad_partitions(statement(), proofs) == [1]
    assert len(observed) == 1


def test_a_wrong_witness_is_said_and_the_good_partitions_are_kept(prover):
    made = []
    with pytest.raises(ProofInvalid):
        prover.prove(Task("a", statement(wrong=(1,)), [0, 1, 2], made.append))
    assert 1 not in {one.partition for one in made}


def test_public_inputs_are_those_of_the_statement_not_of_the_witness(prover):
    class Other(ChainStatement):
        def public_inputs(self, partition: int) -> list[int]:
            return [1]

    with pytest.raises(ProofInvalid, match="other public inputs"):
        prover.prove(Task("a", Other(statement().values), [0], lambda one: None))


def test_cancel_ends_the_run(prover):
    with pytest.raises(Cancelled):
        prover.prove(Task("a", statement(), [0], lambda one: None, cancelled=lambda: True))
    asked = []

    def cancelled() -> bool:
        asked.append(1)
        return len(asked) > 1

    with pytest.raises(Cancelled):
        prover.prove(Task("a", statement(), list(range(3)) * 1, lambda one: None, cancelled=cancelled))


def in_thread(prover: PipelineProver, task: Task) -> list[BaseException | None]:
    """Proves beside; the list has how it ended."""
    out: list[BaseException | None] = []

    def run() -> None:
        try:
            prover.prove(task)
        except BaseException as error:
            out.append(error)
        else:
            out.append(None)

    thread = threading.Thread(target=run)
    thread.start()
    out_thread[id(out)] = thread
    return out


out_thread: dict[int, threading.Thread] = {}


def join(out: list[BaseException | None]) -> BaseException | None:
    out_thread.pop(id(out)).join(60)
    return out[0]


def test_jobs_share_one_run_and_fail_or_are_cancelled_alone(prover):
    made: dict[str, list[int]] = {name: [] for name in ("good", "bad", "gone", "later")}

    def task(name: str, **others: Any) -> Task:
        wanted = statement(wrong=(1,) if name == "bad" else ())
        return Task(name, wanted, [0, 1, 2], lambda one: made[name].append(one.partition), **others)

    calls = []

    def cancelled() -> bool:
        calls.append(1)
        return len(calls) > 1

    beside = [
        in_thread(prover, task("good")),
        in_thread(prover, task("bad")),
        in_thread(prover, task("gone", cancelled=cancelled)),
    ]
    good, bad, gone = map(join, beside)
    assert good is None and sorted(made["good"]) == [0, 1, 2]
    assert isinstance(bad, ProofInvalid) and 1 not in made["bad"]
    assert isinstance(gone, Cancelled)
    lane = prover._lane
    assert lane is not None and lane.active == 0
    prover.prove(task("later"))  # the same run goes on
    assert prover._lane is lane and sorted(made["later"]) == [0, 1, 2]
    assert not lane._of_proof and lane._engine.core.in_flight == 0
    assert prover.evict("chain1k") and prover._lane is None and lane.is_over
    prover.prove(Task("again", statement(), [0], lambda one: None))
    assert prover._lane is not None and prover._lane is not lane
    prover.close()


def test_a_run_that_ends_for_want_of_memory_is_replaced_by_the_next(prover):
    prover.prove(Task("a", statement(), [0], lambda one: None))
    lane = prover._lane
    whole, prover._scenario = (
        prover._scenario,
        prover._scenario.model_copy(update={"machine": prover._scenario.machine.model_copy(update={"ram": 700_000})}),
    )
    prover.evict("chain1k")
    with pytest.raises(OutOfMemoryError):
        prover.prove(Task("b", statement(), [0, 1, 2], lambda one: None))
    assert prover._lane is None
    prover._scenario = whole
    prover.prove(Task("c", statement(), [0], lambda one: None))
    assert prover._lane is not lane
    prover.close()


def test_another_circuit_waits_until_the_run_is_empty(observed):
    def either(name: str) -> Loaded:
        return Loaded.of(name, load_key(FIXTURE / "chain1k.zkey"), None)

    prover = PipelineProver(KeyStore(either), host_scenario(Settings(ram_bytes=1 << 30, pw=2), "cpu"), threads=1)
    made: list[str] = []
    tasks = [Task(name, statement(circuit_id=name[0]), [0, 1], lambda one, name=name: made.append(name[0]))
             for name in ("a1", "b1", "a2", "b2")]  # fmt: skip
    ended_ = [in_thread(prover, task) for task in tasks]
    assert [join(one) for one in ended_] == [None] * 4
    assert sorted(made) == ["a"] * 4 + ["b"] * 4
    prover.close()


def test_forecast_from_what_was_measured_and_refusal_from_the_books(prover, observed):
    forecaster = Forecaster()
    scenario = prover.scenario_of(statement())
    assert scenario.circuit.partitions == PARTITIONS
    first = forecaster.fits(Load("a", scenario, 3, circuit_id="chain1k"), [])
    assert first.now and first.predicted["p50_s"] is None and first.predicted["peaks"]["ram"] > 0
    prover.prove(Task("a", statement(), [0, 1, 2], lambda one: None))
    forecaster.learn(measured_calibration([events for _, events in observed], observed[0][0], "cpu"))
    fit = forecaster.fits(Load("a", scenario, 3, circuit_id="chain1k"), [])
    assert fit.now and 0 < fit.predicted["p50_s"] <= fit.predicted["p95_s"] and fit.events
    ahead = forecaster.when([Load(name, None, 3, circuit_id="chain1k") for name in "abc"])
    assert ahead["a"][0] < ahead["b"][0] < ahead["c"][0]
    small = scenario.model_copy(update={"machine": scenario.machine.model_copy(update={"ram": 1 << 20})})
    never = forecaster.fits(Load("x", small, 3, circuit_id="small"), [])
    assert never.never is not None and "can never run here: ram needs" in str(never.never)


def test_through_the_service_and_nothing_secret_on_disk(prover, tmp_path):
    def read(request: ProofRequest) -> ChainStatement:
        return statement()

    async def main():
        kinds = Kinds([Kind(1, "porep-c2", "POREP_SEAL_COMMIT", Priority.NORMAL, read)])
        async with running(prover, tmp_path, kinds=kinds) as service:  # type: ignore[arg-type]
            await service.submit(ProofRequest("a", 1, vanilla=(b"the input",)))
            end = await ended(service, "a", 60.0)
            assert end.state == "completed" and len(end.proof) == 192 * PARTITIONS
            proofs = [end.proof[192 * n : 192 * (n + 1)] for n in range(PARTITIONS)]
            assert prover.bad_partitions(statement(), proofs) == []
            live = service.live.document()
            assert {row[1] for row in live["spans"]} >= {"witness", "matvec", "ntt_h", "msm_h", "epilogue"}
            assert "ram live" in live["levels"]

    asyncio.run(main())
    values = {row.tobytes() for row in statement().values[3:] if row.any()}
    kept = b"".join(Path(folder, name).read_bytes() for folder, _, names in os.walk(tmp_path) for name in names)
    assert kept and not any(value in kept for value in list(values)[:300] if len(value.strip(b"\0")) > 8)
