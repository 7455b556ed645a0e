"""The device without work: it takes the memory and the time that a pipeline would take, and computes nothing.

Buffers are real: mapped, and their pages touched when the pipeline says so (at once, or spread over the step that fills them).
Steps take the time of the calibration, scaled, in one of two ways:

    emulate   they sleep; concurrent steps slow each other by the calibration's laws: any machine, played on any other
              what real allocations take is taken off the next step, for the laws know nothing of it
    spin      steps of the host burn that much processor time, so that contention is the real one of this machine; steps of a
              GPU and of PCIe sleep, as they leave the cores alone

Spinning is done in calls that release the interpreter lock, and is measured in the thread's own processor time.
"""

from __future__ import annotations

import hashlib
import random
import threading
import time
from collections.abc import Callable
from typing import Any, Literal

from cuzk.exec.device import Allocation, Fence, HostStream, Stream, Work
from cuzk.exec.sets import RealSet
from cuzk.exec.shared_time import Resource, SharedTime
from cuzk.model.calibration import Contention
from cuzk.native.memory import CHUNK, HostBuffer, process_anonymous_bytes
from cuzk.pipeline.prices import Price
from cuzk.pipeline.program import Program

Burn = Literal["emulate", "spin"]
_ITERATIONS = 4000
"""Rounds of a key derivation: about a millisecond of pure arithmetic without the interpreter lock. Much shorter calls would take
the lock so often that its holder is at times one whom the system has put to sleep; much longer ones would be late to end."""


class NullDevice:
    """`scale`: bytes here for one of the scenario's; `time_scale`: seconds. The trace stays in the scenario's own."""

    name = "null"

    def __init__(self, scale: float = 1.0, time_scale: float = 1.0, burn: Burn = "emulate") -> None:
        self.scale, self.time_scale, self.burn = scale, time_scale, burn
        self.one_thread = burn == "spin"
        self._mutex = threading.Lock()
        self._counted: dict[str, set[HostBuffer]] = {}
        """By pool: buffers whose pages the kernel counts one by one."""
        self._cache: dict[str, list[HostBuffer]] = {}
        self._idle_bytes = 0
        self._own = threading.local()
        """State of each worker's thread: `debt_s`, scenario seconds that its allocations took and no step has paid for yet."""

    # -- life --------------------------------------------------------------------------------------------

    def open(self, program: Program) -> None:
        self._calibration = program.scenario.calibration
        self._seed = program.scenario.seed
        contention = self._calibration.contention if self._calibration else Contention(provenance={})
        self._shared = SharedTime(contention, self.time_scale)
        machine = program.scenario.machine
        cores = machine.cores * (1 + contention.smt_yield * (machine.smt - 1))
        self._cores = Resource(cores, contention.cores_exponent)
        self._gpus = [Resource(1.0, contention.gpu_exponent) for _ in machine.gpus] or [Resource(1.0)]
        self._fences = [Fence() for _ in self._gpus]
        self._links = {(gpu, way): Resource(1.0) for gpu in range(len(self._gpus)) for way in ("h2d", "d2h")}
        if self._calibration:
            program.require_prices()  # a step without a cost is reported before anything starts
        self._idle_bytes = process_anonymous_bytes()

    def close(self) -> None:
        with self._mutex:
            for buffers in self._cache.values():
                for buffer in buffers:
                    buffer.close()
            self._cache.clear()

    def begin(self, pset: RealSet) -> None:
        pass

    def open_stream(self, gpu: int, name: str) -> Stream:
        return HostStream(self.perform, name, self._fences[gpu])

    # -- memory ------------------------------------------------------------------------------------------

    def allocate(self, request: Allocation) -> Any:
        start = time.perf_counter()
        try:
            return self._allocate(request)
        finally:
            self._owe(time.perf_counter() - start)

    def _owe(self, real_s: float) -> None:
        if self.burn == "emulate":
            self._own.debt_s = getattr(self._own, "debt_s", 0.0) + real_s / self.time_scale

    def _paid(self, seconds: float) -> float:
        """The rest of a step's time after the thread's allocations have taken theirs of it."""
        paid = min(seconds, getattr(self._own, "debt_s", 0.0))
        if paid:
            self._own.debt_s -= paid
        return seconds - paid

    def _allocate(self, request: Allocation) -> Any:
        device_like = request.pool.startswith("vram") or self.scale < 1
        self._shrink_cache(request.pool, round(request.cache_bytes * self.scale))
        buffer = HostBuffer(round(request.nbytes * self.scale), device_like)
        if device_like:
            pool = "ram" if request.pool == "pinned" else request.pool
            with self._mutex:
                self._counted.setdefault(pool, set()).add(buffer)
        if not request.deferred:
            cancelled = request.pset
            for upto in range(CHUNK, buffer.nbytes + CHUNK, CHUNK):
                if cancelled is not None and cancelled.failed:
                    break
                buffer.touch(upto)
        return request.pool, request.cached, buffer

    def free(self, real: Any) -> None:
        pool, cached, buffer = real
        if cached:
            with self._mutex:
                self._cache.setdefault(pool, []).append(buffer)
            return
        self._close(pool, buffer)

    def trim(self, pool: str) -> None:
        if pool.startswith("vram:"):
            self._fences[int(pool.partition(":")[2])].wait()
        with self._mutex:
            buffers = self._cache.pop(pool, [])
        for buffer in buffers:
            self._close(pool, buffer)

    def _close(self, pool: str, buffer: HostBuffer) -> None:
        start = time.perf_counter()
        with self._mutex:
            self._counted.get("ram" if pool == "pinned" else pool, set()).discard(buffer)
        buffer.close()
        self._owe(time.perf_counter() - start)

    def _shrink_cache(self, pool: str, keep_bytes: int) -> None:
        """A caching allocator serves a request from what it keeps, or must give way to it."""
        with self._mutex:
            cache = self._cache.get(pool, [])
            excess = sum(buffer.touched for buffer in cache) - keep_bytes
            while cache and excess > 0:
                last = cache[-1]
                if last.touched > excess:
                    last.shrink(last.touched - excess)
                    return
                excess -= last.touched
                cache.pop()
                self._counted.get(pool, set()).discard(last)
                last.close()

    def resident(self) -> dict[str, int]:
        """In the scenario's bytes: what the kernel reports, divided by the scale.

        Of the host it is the process's memory above its idle state. At a scale that would blow up the interpreter's own
        few megabytes: there it is the pages of the buffers.
        """
        with self._mutex:
            pools = {pool: sum(b.resident() for b in buffers) for pool, buffers in self._counted.items()}
        if self.scale == 1:
            pools["ram"] = max(0, process_anonymous_bytes() - self._idle_bytes)
        return {pool: round(nbytes / self.scale) for pool, nbytes in pools.items()}

    # -- time --------------------------------------------------------------------------------------------

    def perform(self, work: Work) -> None:
        price = work.op.price
        if self._calibration is None or price is None:
            self._touch(work, 1.0)
            return
        seconds = price.seconds * self._jitter(price, work)
        if work.op.stream is None and (price.gpu > 0 or price.link is not None):  # launched on the device, and waited for
            ticket = self._fences[work.gpu].begin()
            try:
                self._pass_time(work, price, seconds)
            finally:
                self._fences[work.gpu].end(ticket)
        else:
            self._pass_time(work, price, seconds)

    def _pass_time(self, work: Work, price: Price, seconds: float) -> None:
        if price.link is not None:
            link = self._links[work.gpu, price.link]
            self._shared.spend(seconds, link, price.link_share, price.dram, price.demand, work.cancelled)
        elif self.burn == "spin" and price.gpu == 0:
            self._spin(work, seconds * self.time_scale, price.cores)
        else:
            resource, load = (self._gpus[work.gpu], price.gpu) if price.gpu > 0 else (self._cores, price.cores)
            touch = (lambda share: self._touch(work, share)) if work.touches else None
            self._shared.spend(self._paid(seconds), resource, load, price.dram, price.demand, work.cancelled, touch)
            self._touch(work, 1.0)

    def _spin(self, work: Work, seconds: float, cores: float) -> None:
        others = [threading.Thread(target=_burn, args=(seconds, work.cancelled), daemon=True)
                  for _ in range(max(1, round(cores)) - 1)]  # fmt: skip
        for thread in others:
            thread.start()
        _burn(seconds, work.cancelled, lambda share: self._touch(work, share))
        for thread in others:
            thread.join()

    def _touch(self, work: Work, share: float) -> None:
        """Make the first `share` of what the step fills resident, told to the books before it is done."""
        for name in work.touches:
            _, _, buffer = work.pset.real[name]
            whole = work.pset.buffers[name][1]
            target = round(buffer.nbytes * share)
            while buffer.touched < target and not work.cancelled():
                upto = min(target, buffer.touched + CHUNK)
                if work.touching is not None:
                    work.touching(work.pset, name, min(whole, round(upto / self.scale)))
                buffer.touch(upto)

    def _jitter(self, price: Price, work: Work) -> float:
        law = self._calibration.costs.get(price.law) if self._calibration else None
        if law is None or not (law.jitter or law.group_jitter):
            return 1.0
        pset = work.pset
        own = random.Random(f"{self._seed} {pset.proof} {pset.partition} {price.law}").gauss(0, law.jitter)
        group = random.Random(f"{self._seed} {pset.proof} {price.law}").gauss(0, law.group_jitter)
        return max(0.1, 1 + own + group)


def _burn(seconds: float, cancelled: Callable[[], bool], progress: Callable[[float], None] | None = None) -> None:
    """Use `seconds` of this thread's processor time, in calls that release the interpreter lock."""
    start = time.thread_time()
    while (used := time.thread_time() - start) < seconds and not cancelled():
        if progress is not None:
            progress(used / seconds)
        hashlib.pbkdf2_hmac("sha256", b"cuzk", b"spin", _ITERATIONS)
    if progress is not None:
        progress(1.0)
