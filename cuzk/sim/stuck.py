"""A run in which nothing can go on, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cuzk.sim.actors import Actor, SimSet

if TYPE_CHECKING:
    from cuzk.sim.engine import Engine


def deadlock(engine: Engine) -> str:
    """Who waits for what, and which sets nobody takes."""
    stuck = [f"{a.name} waits for {a.waits_for}" for a in _waiting(engine) if a.pset is not None and a.waits_for]
    counted = {text: stuck.count(text) for text in dict.fromkeys(stuck)}
    told = [text + (f" ({n} sets)" if n > 1 else "") for text, n in counted.items()]
    told += [f"{n} sets lie in {name}, and nobody takes them" for name, n in engine.arbiter.lying().items()]
    shown = "; ".join(told) or "nothing can go on"
    return f"the pipeline '{engine.program.pipeline.name}' deadlocks at {engine.now:.3f} s: {shown}"


def _waiting(engine: Engine) -> list[Actor]:
    members = [pset for proof in engine.core.proofs for pset in proof.members]
    handles = [handle for pset in members if isinstance(pset, SimSet) for handle in pset.handles.values()]
    waiting: list[Actor] = engine.arbiter.waiting()
    return waiting + [actor for handle in handles for actor in handle.waiters]
