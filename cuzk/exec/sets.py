"""A set in a real run: beside what the books say, its real buffers, events, and handles of spawned workers."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any

from cuzk.exec.device import Event
from cuzk.pipeline.sets import PartitionSet


@dataclass(eq=False)
class Handle:
    """A spawned worker, for whoever joins it."""

    ended: bool = False


@dataclass(eq=False, slots=True, repr=False)
class RealSet(PartitionSet):
    """The last actor to leave a failed set gives back what it holds, when nobody can use its buffers any more."""

    condition: threading.Condition = field(default_factory=threading.Condition)
    """On the engine's mutex: notified when a handle appears or ends, and when the set fails."""
    real: dict[str, Any] = field(default_factory=dict)
    """Buffer -> what the device returned for it."""
    events: dict[str, Event] = field(default_factory=dict)
    handles: dict[str, Handle] = field(default_factory=dict)
    state: Any = None
    """The device's own."""
