"""The part of a worker that waits its turn: it puts claims to the Arbiter and sleeps until the answer comes."""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING, Any

from cuzk.errors import InputError
from cuzk.exec.sets import RealSet
from cuzk.pipeline import ops
from cuzk.pipeline.arbiter import FAILED, RETRY
from cuzk.pipeline.sets import PartitionSet

if TYPE_CHECKING:
    from cuzk.exec.engine import Engine

_EMPTY: Any = object()
_CLAIMS = (ops.Acquire, ops.Put, ops.Get)
Claim = ops.Acquire | ops.Put | ops.Get


class SetFailed(Exception):
    """Leave the set: its proof or the run has failed."""


class Stopped(Exception):
    """A pool worker has nothing more to take."""


class Claimant:
    """Has one condition, on the engine's mutex, and one place for the Arbiter's answer."""

    def __init__(self, engine: Engine, kind: str, gpu: int, pset: RealSet | None, label: str, code: tuple[ops.Op, ...]) -> None:
        self.engine, self.kind, self.gpu, self.pset, self.name, self.code = engine, kind, gpu, pset, label, code
        self.claimed_first = False
        """The first claim has been put already, and is not yet taken up."""
        self._turns: deque[Claimant] | None = None
        """The queue for the first claim, until it is made."""
        self._waits_turn = False
        self.joins: str | None = None
        """The handle that it waits for."""
        self._condition = threading.Condition(engine.mutex)
        self._mail: Any = _EMPTY
        self._waits_for: tuple[str, PartitionSet | None] | None = None
        self._thread: threading.Thread | None = None

    def begin_thread(self) -> None:
        """Give it a thread, once (mutex held). Where the system has none to give, the engine lays the actor to rest."""
        if self._thread is None:
            self._thread = threading.Thread(target=self.live, name=self.name, daemon=True)
            try:
                self._thread.start()
            except RuntimeError as error:
                self.engine.stillborn(self, error)

    def live(self) -> None:
        """The life of the thread."""
        raise NotImplementedError

    def stuck_on(self) -> str | None:
        """The claim or handle that it sleeps for, if nobody has answered yet (mutex held)."""
        if self.joins is not None:
            handle = self.own().handles.get(self.joins)
            return None if self.own().failed or (handle is not None and handle.ended) else self.joins
        if self._turns is not None and self._turns[0] is not self and self._waits_turn:
            return "its turn"
        return self._waits_for[0] if self._waits_for is not None and self._mail is _EMPTY else None

    @property
    def has_mail(self) -> bool:
        return self._mail is not _EMPTY

    def take_mail(self) -> PartitionSet | None:
        """A set that a `get` was answered with and that nobody has taken up (mutex held)."""
        mail, self._mail = self._mail, _EMPTY
        return mail if isinstance(mail, PartitionSet) else None

    def claim_first(self, turns: deque[Claimant]) -> None:
        """Make the first claim, so that claims queue up in the order in which actors are started (mutex held).

        An actor that has something else to do before it stands in `turns`: its claim waits for those of its kind started earlier.
        """
        if self.code and isinstance(self.code[0], _CLAIMS):
            self.claimed_first = True
            self._mail = self._ask(self.code[0])
        elif any(isinstance(op, _CLAIMS) for op in self.code):
            self._turns = turns
            turns.append(self)

    def leave_turns(self) -> None:
        """Its first claim is made, or will not be: the next one's turn (mutex held)."""
        turns, self._turns = self._turns, None
        if turns is not None:
            turns.remove(self)
            if turns:
                turns[0]._condition.notify()

    def wake(self, value: Any) -> None:
        """The Arbiter's answer to a claim that had to wait (mutex held)."""
        self._mail = value
        if value is not RETRY and value is not FAILED:
            self._granted()
        if self._thread is None:
            self.begin_thread()
        else:
            self._condition.notify()

    def _granted(self) -> None:
        if self._waits_for is not None:
            name, pset = self._waits_for
            self.engine.core.journal.grant(name, self.name, pset)
            self._waits_for = None

    def _ask(self, op: Claim) -> Any:
        """Put the claim to the Arbiter: its value, or _EMPTY if it has to wait (mutex held)."""
        engine, arbiter = self.engine, self.engine.core.arbiter
        value: Any
        if isinstance(op, ops.Get):
            name, value = op.channel, arbiter.get(self, op.channel, self.gpu)
        elif isinstance(op, ops.Put):
            self.own().attached += 1  # for the channel, and whoever takes the set from it
            name, value = op.channel, arbiter.put(self, self.own(), op.channel)
        else:
            name, value = op.instance, arbiter.acquire(self, self.own(), op.instance, op.units)
        engine.deliver()
        if value is None or value is False:
            if self._waits_for is None:
                self._waits_for = (name, self.pset)
                engine.core.journal.wait(name, self.name, self.pset)
            return self._mail  # delivering may have brought the answer already
        return value

    def claim(self, op: Claim) -> Any:
        """The value of a granted claim. Raises SetFailed, or Stopped for a `get`, when the scope has failed."""
        asked, self.claimed_first = self.claimed_first, False
        with self.engine.mutex:
            self._waits_turn = True
            while self._turns is not None and self._turns[0] is not self:
                self._condition.wait()
            self._waits_turn = False
            value = self._mail if asked else self._ask(op)
            self.leave_turns()
            while value is _EMPTY or value is RETRY:
                if value is RETRY:
                    self._mail = _EMPTY
                    value = self._ask(op)
                    continue
                self._condition.wait()
                value = self._mail
            self._mail = _EMPTY
            if value is not FAILED:
                self._granted()  # by a second try: the first answer was only that it may try again
                return value
            self._waits_for = None
            if isinstance(op, ops.Put):
                self.own().attached -= 1
        raise Stopped if isinstance(op, ops.Get) else SetFailed

    def own(self) -> RealSet:
        if self.pset is None:
            raise InputError(f"worker {self.kind} has no set here: it needs a `get` first")
        return self.pset
