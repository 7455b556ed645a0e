"""Small runs on the null device, with a watch on time: a run that hangs fails its test."""

from __future__ import annotations

import tempfile
import threading
import time
from functools import cache
from pathlib import Path
from typing import Any

from cuzk.exec.engine import Engine
from cuzk.exec.null import NullDevice
from cuzk.model.scenario import Scenario, load_scenario
from cuzk.pipeline.program import Program, bind
from cuzk.trace.event import Event

ROOT = Path(__file__).resolve().parents[3]
TEXT = """
version: 1
machine: {root}/scenarios/machines/{machine}.yaml
circuit: {root}/scenarios/circuits/porep-32g.yaml
pipeline: {pipeline}
policy: {{gw: 2, j: 3, pw: 6}}
workload: {{proofs: 4}}
calibration: {root}/scenarios/calibrations/reference-documents.yaml
seed: 1
"""
TIMEOUT_S = 60


@cache
def scenario(pipeline: str = "phase12", *overrides: str, machine: str = "zen4-96c-755g-5070ti") -> Scenario:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{pipeline}.yaml"
        path.write_text(TEXT.format(root=ROOT, pipeline=pipeline, machine=machine))
        return load_scenario(path, overrides)


class Played:
    """An engine that has run, and what it left."""

    def __init__(
        self, plan: Program, device: NullDevice, interrupt_after_s: float | None = None, name: str = "played", **engine: Any
    ) -> None:
        self.events: list[Event] = []
        before = set(threading.enumerate())
        device.open(plan)
        self.engine = Engine(plan, device, self.events.append, **engine)
        thread = threading.Thread(target=self.engine.run, name=name, daemon=True)
        thread.start()
        if interrupt_after_s is not None:
            time.sleep(interrupt_after_s)
            self.engine.interrupt()
        thread.join(TIMEOUT_S)
        assert not thread.is_alive(), f"hangs: {self.threads(before)}"
        device.close()
        self.left = self.settled(before)

    @staticmethod
    def threads(before: set[threading.Thread]) -> list[str]:
        return [t.name for t in threading.enumerate() if t not in before]

    def settled(self, before: set[threading.Thread]) -> list[str]:
        """Names of threads that do not end; streams and unwinders may be a moment late."""
        until = time.monotonic() + TIMEOUT_S
        while (names := self.threads(before)) and time.monotonic() < until:
            time.sleep(0.002)
        return names

    def assert_clean(self) -> None:
        """Everything was given back, whatever happened."""
        arbiter, books = self.engine.core.arbiter, self.engine.core.books
        assert self.left == []
        assert {name: pool.live for name, pool in books.pools.items()} == dict.fromkeys(books.pools, 0)
        for pool in books.pools.values():
            assert pool.untouched == 0
            assert all(count == 0 and size == 0 and lazy == 0 for count, size, lazy in pool.held.values())
        for claim in arbiter._claims.values():
            assert claim.free == claim.units, claim.name
            assert not claim.waiters
        for channel in arbiter._channels.values():
            assert not channel.items and not channel.putters and not channel.getters
        assert arbiter.woken == []
        booked: dict[tuple[Any, ...], int] = {}
        for event in self.events:
            if event.kind in ("alloc", "free"):
                key = (event.pool, event.name, event.proof, event.partition)
                booked[key] = booked.get(key, 0) + (1 if event.kind == "alloc" else -1)
                assert booked[key] in (0, 1), event
        assert not any(booked.values())
        times = [event.t for event in self.events]
        assert times == sorted(times)


def play(scene: Scenario, device: NullDevice | None = None, **how: Any) -> Played:
    return Played(bind(scene), device or quick(), **how)


def quick(**how: Any) -> NullDevice:
    """Takes hardly any memory or time; the order of things is the same."""
    return NullDevice(scale=1e-6, time_scale=5e-5, **how)
