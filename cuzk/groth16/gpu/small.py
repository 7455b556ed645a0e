"""Proofs of small circuits: everything stays on the GPU, and all kernels of a proof are one graph, recorded once.

At 2^14 constraints a proof is some hundred kernels of microseconds; to queue them one by one takes Python longer than the GPU. A
graph is launched as one. Its shape may not depend on the witness, so nothing is split: each list has one MSM over all its
scalars, the five of them side by side. Several lanes, each with buffers and a graph of its own, are proved at the same time.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any

import numpy as np

from cuzk.errors import InputError
from cuzk.gpu.arena import Layout
from cuzk.gpu.matvec import FR_BYTES, CsrMatrix, multiply_elements
from cuzk.gpu.msm import Msm, MsmHandle
from cuzk.gpu.msm_plan import Group, MsmPlan, plan_msm
from cuzk.gpu.quotient import Quotient
from cuzk.gpu.segments import u32
from cuzk.gpu.split import MODULE, UNIT_BYTES
from cuzk.groth16.gpu.proving_gpu import QUERIES, lists_of
from cuzk.groth16.key import ProvingKey
from cuzk.groth16.prover import steps
from cuzk.groth16.prover.blinding import Blinding
from cuzk.groth16.prover.quotient import NEEDS_C
from cuzk.groth16.prover.run import Proved, check
from cuzk.groth16.prover.state import ProofState
from cuzk.groth16.verify import Verifier

LARGEST_LOG_DOMAIN = 22
"""Beyond it a proof is no longer bound by launches."""
MSM_BUDGET = 1 << 30
"""Bytes of temporaries of one MSM, at most."""


@dataclass(frozen=True)
class _List:
    """A list of the key on the device. `wires`: address of its rows' wire numbers, or 0 where they follow each other from
    `first` on."""

    name: str
    points: int
    plan: MsmPlan
    wires: int
    first: int

    @property
    def n(self) -> int:
        return self.plan.n


class SmallProver:
    """A key on one GPU, for proofs of witnesses of field elements. `prove` may be called from several threads."""

    def __init__(self, device: Any, key: ProvingKey, quotient: str | None = None, lanes: int = 1) -> None:
        """InputError for a key whose matrices are a template, or that is larger than 2^22; OutOfMemoryError."""
        self.device, self.key, self.quotient = device, key, key.require_quotient(quotient)
        if not hasattr(key.system, "a"):
            raise InputError(f"{key.path}: the key's matrices are a template; graphs are for matrices in rows")
        if key.log_domain > LARGEST_LOG_DOMAIN:
            raise InputError(f"{key.path}: a domain of 2^{key.log_domain} is no small one (2^{LARGEST_LOG_DOMAIN} at most)")
        self._verifier = Verifier(key.verifying_key(), f"the verifying key in {key.path}")
        self._owned: list[Any] = []
        self._lanes: list[_Lane] = []
        self._free: SimpleQueue[_Lane] = SimpleQueue()
        try:
            self._place(max(1, lanes))
            for _ in range(max(1, lanes)):
                self._lanes.append(_Lane(self))
                self._free.put(self._lanes[-1])
        except BaseException:
            self.free()
            raise

    def _place(self, lanes: int) -> None:
        device, key = self.device, self.key
        system: Any = key.system
        self.h_quotient = Quotient(device, self.quotient, key.log_domain, root=key.root, mont=False)
        self._owned.append(self.h_quotient)
        self.matrices = []
        for name in "abc" if NEEDS_C[self.quotient] and system.c is not None else "ab":
            matrix = getattr(system, name)
            self.matrices.append(CsrMatrix(device, matrix.row_ptr, matrix.col, matrix.coef_id, system.table_mont))
            self._owned.append(self.matrices[-1])
        # MSMs that run side by side get a part of the GPU each; large ones fill it alone
        parts = 1 if key.log_domain > 18 else 2 if key.log_domain > 16 else 4
        sms = max(1, device.multiprocessors // parts)
        self.lists: dict[str, _List] = {}
        for name, points in lists_of(key, self.quotient, True).items():
            if name == "h" and self.quotient == "bellman":
                points = points[: key.domain - 1]
            memory = device.upload(points, f"the key's {name} points")
            self._owned.append(memory)
            group: Group = "g2" if name == "b_g2" else "g1"
            plan = plan_msm(len(points), group, MSM_BUDGET, multiprocessors=sms)
            wires, first = 0, 0
            if name != "h":
                query = key.query(name, self.quotient)
                first = query.first
                if query.wires is not None:
                    numbers = device.upload(
                        np.ascontiguousarray(query.wires, dtype=np.uint32), f"the wires of the key's {name} points"
                    )
                    self._owned.append(numbers)
                    wires = numbers.address
            self.lists[name] = _List(name, memory.address, plan, wires, first)

    def prove(self, values: np.ndarray, blinding: Blinding | None = None) -> Proved:
        """One verified proof of a witness `(n_wires, 4)`, canonical. Raises as cuzk.groth16.prover.prove."""
        state = self.make(values, blinding)
        check(state, self._verifier)
        assert state.proof is not None
        return Proved(state.proof, state.public, state.quotient, state.blinding.private, {})

    def make(self, values: np.ndarray, blinding: Blinding | None = None) -> ProofState:
        """A proof that is not yet verified, on a free lane; waits for one."""
        state = ProofState(self.key, self.quotient, blinding or Blinding.random(), 1)
        steps.witness(state, values)
        with self._lane() as lane:
            lane.launch(values)
            blind = steps.blinded(self.key, state.blinding)  # meanwhile
            sums = lane.sums()
        state.sums["h"] = sums["h"]
        for name in steps.G1_QUERIES:
            state.sums[f"{name}_ones"], state.sums[f"{name}_tail"] = sums[name], np.zeros_like(sums[name])
        state.sums["b_g2"] = sums["b_g2"]
        steps.epilogue(state, blind)
        return state

    def prove_all(self, witnesses: Sequence[np.ndarray], threads: int = 8) -> list[Proved]:
        """Verified proofs of several witnesses, as many at a time as there are lanes; verified together, by one random linear
        combination, and one by one where that fails."""
        with ThreadPoolExecutor(threads) as pool:
            states = list(pool.map(self.make, witnesses))
        if not self._verifier.accepts_all([state.proof for state in states if state.proof], [state.public for state in states]):
            for state in states:
                check(state, self._verifier)
        return [Proved(state.proof, state.public, state.quotient, state.blinding.private, {}) for state in states if state.proof]

    @contextmanager
    def _lane(self) -> Any:
        lane = self._free.get()
        try:
            yield lane
        finally:
            self._free.put(lane)

    def free(self) -> None:
        for lane in self._lanes:
            lane.free()
        for held in self._owned:
            held.free()
        self._lanes, self._owned = [], []


class _Lane:
    """Buffers of one proof and the graph that fills them."""

    def __init__(self, prover: SmallProver) -> None:
        self._prover, device = prover, prover.device
        key, needs_c = prover.key, NEEDS_C[prover.quotient]
        self._witness = device.pinned(FR_BYTES * key.n_wires)
        sizes = [("w", FR_BYTES * key.n_wires), *((name, FR_BYTES * key.domain) for name in ("abc" if needs_c else "ab"))]
        for name, each in prover.lists.items():
            sizes.append((f"work {name}", each.plan.workspace_bytes))
            if name != "h" and each.wires:
                sizes.append((f"scalars {name}", FR_BYTES * each.n))
        layout = Layout(sizes)
        self._memory = device.allocate(layout.total_bytes, "a lane of small proofs")
        self._at = layout.at(self._memory.address)
        self._msms = {n: Msm(device, each.plan, workspace=self._at[f"work {n}"]) for n, each in prover.lists.items()}
        self._handles: dict[str, MsmHandle] = {}
        self._stream, self._done = device.stream(), device.event()
        self._branches = {name: (device.stream(), device.event()) for name in QUERIES}
        self._forked = device.event()
        self._witness.array[:] = 0
        self._queue()  # once as it is: kernels are loaded, and a graph cannot do that
        device.record(self._done, self._stream)
        device.wait(self._done)
        self._graph = device.capture(self._stream, self._queue)

    def _queue(self) -> None:
        """All work of a proof: the quotient and its MSM on one branch, each other list on one of its own."""
        prover, device, at, main = self._prover, self._prover.device, self._at, self._stream
        key = prover.key
        device.copy(at["w"], self._witness.address, FR_BYTES * key.n_wires, main)
        device.record(self._forked, main)
        for name in QUERIES:
            stream, ended = self._branches[name]
            device.stream_wait(stream, self._forked)
            self._sum(name, stream)
            device.record(ended, stream)
        polynomials = [at[name] for name in "abc" if name in at]
        for matrix, out in zip(prover.matrices, polynomials, strict=False):
            matrix.multiply(at["w"], out, main)
            device.fill(out + FR_BYTES * matrix.rows, 0, FR_BYTES * (key.domain - matrix.rows), main)
        if len(prover.matrices) < len(polynomials):  # a key without C: what a satisfied circuit has
            a, b, c = polynomials
            multiply_elements(device, a, b, key.domain, c, main, mont=False)
        prover.h_quotient.run(polynomials[0], polynomials[1], polynomials[2] if len(polynomials) > 2 else 0, main)
        self._handles["h"] = self._msms["h"].run(prover.lists["h"].points, at["a"], main)
        for _, ended in self._branches.values():
            device.stream_wait(main, ended)

    def _sum(self, name: str, stream: Any) -> None:
        each, device, at = self._prover.lists[name], self._prover.device, self._at
        scalars = at["w"] + FR_BYTES * each.first
        if each.wires:
            scalars = at[f"scalars {name}"]
            device.launch(
                device.kernel(MODULE, "gather_rows"), min(8 * device.multiprocessors, -(-2 * each.n // 256)), 256,
                (each.wires, u32(each.n), u32(FR_BYTES // UNIT_BYTES), at["w"], scalars), stream,
            )  # fmt: skip
        self._handles[name] = self._msms[name].run(each.points, scalars, stream)

    def launch(self, values: np.ndarray) -> None:
        """Begins the sums of the lists for a witness."""
        device = self._prover.device
        device.use()
        self._witness.array[:] = np.ascontiguousarray(values).view(np.uint8).reshape(-1)
        device.launch_graph(self._graph, self._stream)
        device.record(self._done, self._stream)

    def sums(self) -> dict[str, np.ndarray]:
        """Those sums; waits."""
        self._prover.device.wait(self._done)
        return {name: handle.join() for name, handle in self._handles.items()}

    def free(self) -> None:
        for msm in self._msms.values():
            msm.free()
        self._memory.free()
        self._witness.free()
