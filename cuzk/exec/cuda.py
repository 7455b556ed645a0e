"""The device that proves on GPUs: transforms, MSMs and batch additions by the kernels, the rest by the host library.

Device memory is what the interpreter allocates, buffer by buffer; an operation's temporaries lie in the pipeline's own
`*_temps` buffers and are cut to fit them (chunks, streamed points), so the books and the driver tell the same story. Tables of
the transforms, modules and a resident key are there before the first proof starts.

Work on a stream is queued by that stream's thread on a CUDA stream of its own, which then waits for the work's event: a step has
ended when the GPU has done it. Nothing else synchronises.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from cuzk import native
from cuzk.errors import DeviceLost, InputError, OutOfMemoryError
from cuzk.exec.device import Allocation, Work, timed_ops
from cuzk.exec.proving import HOST_BODIES, ProvingDevice, Real, SetState
from cuzk.gpu.locking import LockedMemory, lock_in_place, locked_copy
from cuzk.gpu.matvec import FR_BYTES
from cuzk.groth16.gpu import assignment
from cuzk.groth16.gpu.proving_gpu import ProvingGpu, lists_of
from cuzk.groth16.gpu.sums import Pending, Sums
from cuzk.groth16.prover import steps
from cuzk.groth16.prover.quotient import NEEDS_C
from cuzk.groth16.prover.steps import G1_QUERIES
from cuzk.model.scenario import Scenario
from cuzk.pipeline import ops
from cuzk.pipeline.fitting import fitted
from cuzk.pipeline.presets import PRESETS
from cuzk.pipeline.program import Program

HOST_SOURCES = ("a", "b", "c", "aux")
"""Host vectors that are copied to a device."""
ON_GPU = ("ntt_h", "msm_h")
"""Steps that have no body on the host here."""
PINNED_FROM = 1 << 20
"""Bytes from which on the pages of an array are locked for its copy; smaller ones may share pages with others."""
OTHERS_FROM = 64 << 20
"""Bytes in use beside our context that are another's: less is how contexts differ."""
TURN_S = 2e-4
"""After this time a thread that computes in Python lets one in that has work to queue on a GPU."""


@dataclass(frozen=True)
class _Block(Real):
    """Device memory of one buffer of a set."""

    memory: Any


class CudaProver(ProvingDevice):
    """Proves with `key` on the GPUs of the scenario's machine, in order of their index."""

    name = "cuda"
    known_steps = (*HOST_BODIES, *ON_GPU)
    in_worker = True

    def __init__(self, *args: Any, open_gpu: Callable[[int], Any] | None = None, **kwargs: Any) -> None:
        """Arguments are those of ProvingDevice; `open_gpu` makes the device of an index (tests put an emulation there)."""
        super().__init__(*args, **kwargs)
        self._open_gpu = open_gpu or open_cuda
        self._gpus: list[ProvingGpu] = []
        self._turn_s: float | None = None
        self._lists: dict[str, Any] = {}
        """The lists of a streamed key, in the host's memory; `_locked` if page-locked there."""
        self._locked: LockedMemory | None = None

    # -- before there is one -----------------------------------------------------------------------------

    @classmethod
    def suit(cls, scenario: Scenario, facts: dict[str, Any]) -> tuple[Scenario, Scenario | None]:
        """The scenario with the VRAM that this process can have of its GPUs, what others hold off; and, where its policy leaves
        open where work and data are, the same with what fits (None: the policy has chosen, or nothing of ours fits).

        `facts`: options that follow from key and witness."""
        machine = scenario.machine
        cards = tuple(
            card.model_copy(update={"vram": min(card.vram, room)}) if (room := cls.room_bytes(i, card.context)) else card
            for i, card in enumerate(machine.gpus)
        )
        scenario = scenario.model_copy(update={"machine": machine.model_copy(update={"gpus": cards})})
        given = scenario.pipeline
        if not isinstance(given, str) or given not in PRESETS:
            return scenario, None
        asked = scenario.with_policy(**facts).model_copy(update={"pipeline": "own"})
        suited = fitted(asked)
        return scenario, None if suited is asked else suited

    @staticmethod
    def room_bytes(index: int, context_bytes: int) -> int | None:
        """VRAM of a GPU less what other processes hold; None where there is none to ask."""
        try:
            import cupy

            with cupy.cuda.Device(index):
                free, total = cupy.cuda.runtime.memGetInfo()
        except Exception:  # whoever opens the device says what is wrong with it
            return None
        others = total - free - context_bytes
        return int(total - others) if others > OTHERS_FROM else int(total)

    # -- life --------------------------------------------------------------------------------------------

    def open(self, program: Program) -> None:
        """Raises HardwareMissing without a usable GPU, InputError for a pipeline that it cannot walk."""
        facts = program.facts
        self._multiplies, self._splits = facts.at("matvec") == "gpu", facts.at("prep_msm") == "gpu"
        self._sums_g2, self._key_lies = facts.at("b_g2_msm") == "gpu", facts.placed("srs")
        self._streams = "key_ring" in program.pipeline.buffers
        for op in timed_ops(program):
            if isinstance(op, ops.Run) and op.at == "cpu" and op.name in ON_GPU:
                raise program.error(op.place, f"the cuda device does {op.name} on the GPU (at: gpu)")
        super().open(program)
        if self._whole:
            raise InputError("the cuda device proves partition by partition; this pipeline hands it whole proofs")
        bits = [assignment.is_bits(witness) for witness in self.assignments.examples()]
        template = getattr(self.key.system, "template", None) is not None
        if self._multiplies and any(each != template for each in bits):
            forms = ("field elements", "bits")
            raise InputError(
                f"{self.key.path}: matvec: gpu multiplies {'a template' if template else 'rows of CSR'} by a witness of "
                f"{forms[template]}, this one is of {forms[not template]}"
            )
        for index in range(max(1, program.gpus)):
            gpu = ProvingGpu(self._open_gpu(index))
            self._gpus.append(gpu)
            _refuse_larger(program, index, gpu.device.multiprocessors)
            if f"vram:{index}" in program.pools:  # the context is there already
                gpu.device.limit_bytes = program.pools[f"vram:{index}"] - program.scenario.machine.gpus[index].context
            gpu.device.compile(_modules(program))
            # rows that the GPU makes from a canonical witness are canonical, all others Montgomery
            gpu.place_quotient(self.key, self.quotient, mont=template or not self._multiplies)
        self._turn_s = sys.getswitchinterval()
        sys.setswitchinterval(TURN_S)

    def close(self) -> None:
        if self._turn_s is not None:
            sys.setswitchinterval(self._turn_s)
        for gpu in self._gpus:
            gpu.device.use()
            gpu.free()
        self._gpus = []
        if self._locked is not None:
            self._locked.free()
            self._locked = None
        super().close()

    def _reside(self, what: str) -> None:
        """Asked once for each pool, so perhaps for every GPU: what is there already stays."""
        if what == "srs" and self._streams:
            self._place_lists(self._key_lies in ("pinned", "split"))
            return
        if what != "srs" or self._key_lies not in ("vram", "pinned"):
            super()._reside(what)
        for gpu in self._gpus:
            gpu.device.use()
            if what == "srs" and not gpu.points:
                sums = self._program.policy.key_tables == "pair-sums"
                gpu.place_key(self.key, self.quotient, self._key_lies, self._sums_g2, self._splits, sums)
            if what == "pce" and self._multiplies and not gpu.has_matrices:
                gpu.place_matrices(self.key, self.quotient, self._splits)

    def _place_lists(self, locked: bool) -> None:
        """The lists of a streamed key, once for all GPUs; page-locked where they lie, or else as a copy."""
        if self._lists:
            return
        lists = lists_of(self.key, self.quotient, True)
        if locked:
            device = self._gpus[0].device
            device.use()
            found = lock_in_place(device, list(lists.values()))
            self._locked = found if found is not None else locked_copy(device, list(lists.values()))
            lists = dict(zip(lists, self._locked.arrays, strict=True))
        self._lists = lists

    # -- memory ------------------------------------------------------------------------------------------

    def allocate(self, request: Allocation) -> Any:
        if request.buffer == "key_ring":
            gpu = self._gpus[request.gpu]
            gpu.device.use()
            if gpu.streamed is None:
                borders = self._locked.borders if self._locked is not None else []
                gpu.stream_key(self.key, self.quotient, self._lists, request.nbytes, self._locked is not None, borders)
        if request.pset is None or not request.pool.startswith("vram"):
            return super().allocate(request)
        gpu = self._gpus[request.gpu]
        gpu.device.use()
        memory = gpu.device.allocate(request.nbytes, f"{request.buffer} of {request.pset}", pooled=True)
        state: SetState = request.pset.state
        state.device[request.buffer] = memory
        return _Block(request.buffer, request.pool, request.pset, memory)

    def free(self, real: Any) -> None:
        if not isinstance(real, _Block):
            state: SetState | None = real.pset.state if real.pset is not None else None
            if state is not None and real.name in HOST_SOURCES:
                self._unpin(state, [real.name])
            super().free(real)
            return
        if real.pset is not None and real.pset.state is not None:
            real.pset.state.device.pop(real.name, None)
        real.memory.free()

    def resident(self) -> dict[str, int]:
        pools = super().resident()
        for index, gpu in enumerate(self._gpus):
            try:
                gpu.device.use()
                free, total = gpu.device.memory_info()
            except DeviceLost:  # whoever works on it says so
                continue
            pools[f"vram:{index}"] = total - free
        return pools

    # -- work --------------------------------------------------------------------------------------------

    def perform(self, work: Work) -> None:
        self._gpus[work.gpu].device.use()
        body = COPY if work.is_copy else self._body_of(work)
        if body is None:
            state: SetState = work.pset.state
            if work.name in HOST_SUMS and state.device_splits and not state.circuits[0].splits:
                steps.prep_msm(state.circuits[0])  # the GPU's split stays there
            super().perform(work)
            return
        gpu = self._gpus[work.gpu]
        try:
            body(self, gpu, work.pset.state, work)
        finally:
            gpu.finish()  # after a failure too: whoever frees the set's buffers must find no work on them

    def _body_of(self, work: Work) -> Body | None:
        """None: the host does it, always or because the pipeline says so."""
        return GPU_BODIES.get(work.name) if work.at == "gpu" or work.name in DRIVER_STEPS else None

    def _copy(self, gpu: ProvingGpu, state: SetState, work: Work) -> None:
        """Rows onto the domain, zeros behind them: a in d_a; b, and c behind it, in d_bc. The witness as it is, into d_w."""
        circuit, device, stream = state.circuits[0], gpu.device, gpu.stream()
        if work.source == ("aux",):
            assignment.upload(gpu, circuit.take("aux"), state.device["d_w"])
            return
        for vector in work.source:
            rows = getattr(circuit, vector)
            if rows is None:  # the quotient needs no c
                continue
            if len(rows) > self.key.domain:
                raise InputError(f"{self.key.path}: {len(rows)} rows do not fit the key's domain of {self.key.domain}")
            target = self._polynomials(state)["abc".index(vector)]
            device.copy(target, rows.ctypes.data, rows.nbytes, stream)
            device.fill(target + rows.nbytes, 0, FR_BYTES * self.key.domain - rows.nbytes, stream)

    def _polynomials(self, state: SetState) -> list[int]:
        """Addresses of a, b and, if the quotient needs it, c on the domain."""
        a, b = (int(state.device[buffer].address) for buffer in ("d_a", "d_bc"))
        return [a, b, b + FR_BYTES * self.key.domain] if NEEDS_C[self.quotient] else [a, b]

    def _pin_pages(self, gpu: ProvingGpu, state: SetState, work: Work) -> None:
        circuit = state.circuits[0]
        for name in ("aux",) if self._multiplies else ("a", "b", "c"):
            vector = getattr(circuit, name)
            if vector is None or name in state.registered:
                continue
            arrays = [array for array in assignment.arrays_of(vector) if array.nbytes >= PINNED_FROM]
            pinned: list[int] = []
            state.registered[name] = (gpu.device, pinned)
            for array in arrays:
                gpu.device.register(array.ctypes.data, array.nbytes)
                pinned.append(array.ctypes.data)

    def _unpin_pages(self, gpu: ProvingGpu, state: SetState, work: Work) -> None:
        self._unpin(state, list(state.registered))

    @staticmethod
    def _unpin(state: SetState, names: Sequence[str]) -> None:
        for name in names:
            device, addresses = state.registered.pop(name, (None, []))
            for address in addresses:
                device.unregister(address)

    def _gpu_matvec(self, gpu: ProvingGpu, state: SetState, work: Work) -> None:
        assignment.multiply(gpu, self.key, state.circuits[0].take("aux"), state.device["d_w"], self._polynomials(state))

    def _prep_msm(self, gpu: ProvingGpu, state: SetState, work: Work) -> None:
        aux = state.circuits[0].take("aux")
        state.device_splits = assignment.prepare(gpu, aux, state.device["d_w"], state.device["d_splits"])
        state.tails_mont = assignment.is_bits(aux)

    def _gpu_ntt_h(self, gpu: ProvingGpu, state: SetState, work: Work) -> None:
        assert gpu.quotient is not None
        a, b, *c = self._polynomials(state)
        if gpu.turns is None:
            gpu.quotient.run(a, b, c[0] if c else 0, gpu.stream())
            return
        with gpu.turns.turn() as turn:
            gpu.quotient.run(a, b, c[0] if c else 0, turn.stream, turn.pause)

    def _gpu_msm_h(self, gpu: ProvingGpu, state: SetState, work: Work) -> None:
        n = self.key.domain - (self.quotient == "bellman")
        scalars = int(state.device["d_a"].address)
        with Sums(gpu, state.device["msm_h_temps"]) as sums:
            if gpu.streamed is not None:
                state.circuits[0].sums["h"] = sums.streamed_h(n, scalars)()
            else:
                points = gpu.points["h"]
                state.circuits[0].sums["h"] = sums.msm("g1", n, points, scalars, on_device=gpu.key_on_device)()

    def _ride(self, gpu: ProvingGpu, state: SetState) -> None:
        """A streamed key passes by: the sums of the ones, and the points of the tails into `d_tails`."""
        assert gpu.streamed is not None and gpu.streamed.key_pass is not None
        block, key_pass = state.device["d_tails"], gpu.streamed.key_pass
        need_bytes = key_pass.ride_bytes(state.device_splits)
        if need_bytes > block.size_bytes:
            raise OutOfMemoryError(f"VRAM: the tails' points need {need_bytes} bytes, {block.size_bytes} are granted")
        state.ride = key_pass.ride(state.device_splits, block.address)
        state.circuits[0].sums.update({f"{name}_ones": state.ride.sums[name] for name in G1_QUERIES})

    def _batch_add(self, gpu: ProvingGpu, state: SetState, work: Work) -> None:
        if gpu.streamed is not None:
            self._ride(gpu, state)
            return
        with Sums(gpu, state.device["batch_add_temps"]) as sums:
            pending = {f"{name}_ones": self._ones(sums, gpu, state, name) for name in G1_QUERIES}
            state.circuits[0].sums.update({name: result() for name, result in pending.items()})

    def _tail_msm(self, gpu: ProvingGpu, state: SetState, work: Work) -> None:
        with Sums(gpu, state.device["tail_temps"]) as sums:
            pending = {f"{name}_tail": self._tail(sums, gpu, state, name) for name in G1_QUERIES}
            state.circuits[0].sums.update({name: result() for name, result in pending.items()})

    def _b_g2_msm(self, gpu: ProvingGpu, state: SetState, work: Work) -> None:
        with Sums(gpu, state.device["b_g2_temps" if state.ride is None else "tail_temps"]) as sums:
            tail = self._tail(sums, gpu, state, "b_g2")
            ones = self._ones(sums, gpu, state, "b_g2")() if state.ride is None else state.ride.sums["b_g2"]
            state.circuits[0].sums["b_g2"] = native.g2_add(ones, tail())

    def _ones(self, sums: Sums, gpu: ProvingGpu, state: SetState, name: str) -> Pending:
        group: Any = "g2" if name == "b_g2" else "g1"
        if state.device_splits:
            return sums.ones(name, group, state.device_splits[name], gpu.rows[name].rows)
        return sums.ones_from_host(name, group, state.circuits[0].split(name), len(self.key.query(name, self.quotient)))

    def _tail(self, sums: Sums, gpu: ProvingGpu, state: SetState, name: str) -> Pending:
        group: Any = "g2" if name == "b_g2" else "g1"
        if state.ride is not None:
            split = state.device_splits[name]
            return sums.msm(
                group, split.n_tail, state.ride.tails[name], split.tail_scalars, on_device=True, mont=state.tails_mont
            )
        if state.device_splits:
            return sums.tail(name, group, state.device_splits[name], gpu.rows[name].rows, state.tails_mont)
        return sums.tail_from_host(group, state.circuits[0].split(name), self.key.query(name, self.quotient))


def _modules(program: Program) -> list[str]:
    """The kernels that a run will need."""
    facts = program.facts
    groups = ["g1", "g2"] if facts.at("b_g2_msm") == "gpu" else ["g1"]
    names = ["ntt/ntt", "msm/index", *(f"msm/{part}_{group}" for group in groups for part in ("points", "tail"))]
    if facts.at("matvec") == "gpu":
        names.append("r1cs/matvec")
    if facts.at("prep_msm") == "gpu":
        names += ["r1cs/split", *(["r1cs/scan"] if program.policy.witness == "field" else [])]
    return names


def open_cuda(index: int) -> Any:
    """The GPU of an index. Raises HardwareMissing."""
    from cuzk.gpu.device import CudaDevice

    return CudaDevice(index)


Body = Callable[[CudaProver, ProvingGpu, SetState, Work], None]
COPY: Body = CudaProver._copy
GPU_BODIES: dict[str, Body] = {
    "pin_pages": CudaProver._pin_pages,
    "unpin_pages": CudaProver._unpin_pages,
    "matvec": CudaProver._gpu_matvec,
    "prep_msm": CudaProver._prep_msm,
    "ntt_h": CudaProver._gpu_ntt_h,
    "msm_h": CudaProver._gpu_msm_h,
    "batch_add": CudaProver._batch_add,
    "tail_msm": CudaProver._tail_msm,
    "b_g2_msm": CudaProver._b_g2_msm,
}
"""Steps whose work the GPU does where the pipeline says so; all others are the host's (ProvingDevice)."""
DRIVER_STEPS = ("pin_pages", "unpin_pages")
"""Work of the GPU's driver, on the host."""
HOST_SUMS = ("batch_add", "tail_msm", "b_g2_msm")
"""Sums that need a split of the witness where they are made."""


def _refuse_larger(program: Program, index: int, multiprocessors: int) -> None:
    """Temporaries of the kernels grow with the multiprocessors: the books of a smaller GPU would grant too little."""
    stated = program.scenario.machine.gpus[index].sms if program.scenario.machine.gpus else multiprocessors
    if stated < multiprocessors:
        raise InputError(
            f"machine.gpus[{index}].sms is {stated}, and the GPU here has {multiprocessors} multiprocessors: describe the "
            f"machine that proves (--set machine.gpus.{index}.sms={multiprocessors})"
        )
