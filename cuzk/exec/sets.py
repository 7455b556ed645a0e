"""What belongs to one set on its way: its token in the Arbiter's books, real buffers, events, handles of spawned workers.

Several actors can hold a set at once: the task that handed it over and still has a permit to release, the worker that took it,
the workers it spawned, work queued on streams, or a channel. `attached` counts them. The last one to leave ends the set: a
failed set is unwound then, when nobody can use its buffers any more.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any

from cuzk.exec.device import Event
from cuzk.model.circuit import Circuit
from cuzk.pipeline.arbiter import Token


@dataclass(eq=False)
class Proof:
    """One proof in flight."""

    number: int
    circuit: Circuit
    sets: int
    """Sets that it consists of: its partitions, or one for the whole proof."""
    admitted_s: float = 0.0
    open_sets: int = 0
    completed: int = 0
    completed_s: float | None = None
    failure: BaseException | None = None
    gpu_call_s: float = 0.0
    """Time that pool workers held its sets, waits included."""
    left: bool = False
    """It no longer counts as in flight."""
    members: list[Set] = field(default_factory=list)


@dataclass(eq=False)
class Handle:
    """A spawned worker, for whoever joins it."""

    ended: bool = False


@dataclass(eq=False)
class Set:
    token: Token
    proof: Proof
    circuit: Circuit
    condition: threading.Condition
    """On the engine's mutex: notified when a handle appears or ends, and when the set fails."""
    attached: int = 0
    real: dict[str, Any] = field(default_factory=dict)
    """Buffer -> what the device returned for it."""
    events: dict[str, Event] = field(default_factory=dict)
    handles: dict[str, Handle] = field(default_factory=dict)
    state: Any = None
    """The device's own."""
