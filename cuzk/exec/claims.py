"""The part of a worker that waits its turn: it puts claims to the Arbiter and sleeps until the answer comes."""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING, Any

from cuzk.errors import InputError
from cuzk.exec.sets import Set
from cuzk.pipeline.arbiter import FAILED, RETRY
from cuzk.pipeline.steps import Acquire, Get, Put, Step
from cuzk.trace.event import Event

if TYPE_CHECKING:
    from cuzk.exec.engine import Engine

_EMPTY: Any = object()
_CLAIMS = (Acquire, Put, Get)


class SetFailed(Exception):
    """Leave the set: its proof or the run has failed."""


class Stopped(Exception):
    """A pool worker has nothing more to take."""


class Claimant:
    """Has one condition, on the engine's mutex, and one place for the Arbiter's answer."""

    def __init__(self, engine: Engine, kind: str, gpu: int, set_: Set | None, label: str, steps: tuple[Step, ...]) -> None:
        self.engine, self.kind, self.gpu, self.set, self.name, self.steps = engine, kind, gpu, set_, label, steps
        self.claimed_first = False
        """The first claim has been put already, and is not yet taken up."""
        self._turns: deque[Claimant] | None = None
        """The queue for the first claim, until it is made."""
        self._waits_turn = False
        self.joins: str | None = None
        """The handle that it waits for."""
        self._condition = threading.Condition(engine.mutex)
        self._mail: Any = _EMPTY
        self._waits_for: tuple[str, Any] | None = None
        self._thread: threading.Thread | None = None

    def begin_thread(self) -> None:
        """Give it a thread, once (mutex held)."""
        if self._thread is None:
            self._thread = threading.Thread(target=self.live, name=self.name, daemon=True)
            self._thread.start()

    def live(self) -> None:
        """What the thread does."""
        raise NotImplementedError

    def stuck_on(self) -> str | None:
        """What it sleeps for, if nobody has answered yet (mutex held)."""
        if self.joins is not None:
            handle = self.own().handles.get(self.joins)
            return None if self.own().token.failed or (handle is not None and handle.ended) else self.joins
        if self._turns is not None and self._turns[0] is not self and self._waits_turn:
            return "its turn"
        return self._waits_for[0] if self._waits_for is not None and self._mail is _EMPTY else None

    @property
    def has_mail(self) -> bool:
        return self._mail is not _EMPTY

    def claim_first(self, turns: deque[Claimant]) -> None:
        """Make the first claim, so that claims queue up in the order in which actors are started (mutex held).

        What has something else to do before it stands in `turns`: its claim waits for those of its kind started earlier.
        """
        if self.steps and isinstance(self.steps[0], _CLAIMS):
            self.claimed_first = True
            self._mail = self._ask(self.steps[0])
        elif any(isinstance(step, _CLAIMS) for step in self.steps):
            self._turns = turns
            turns.append(self)

    def _leave_turns(self) -> None:
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
            name, place = self._waits_for
            self.engine.emit(Event(self.engine.now(), "grant", name=name, worker=self.name, **place))
            self._waits_for = None

    def _ask(self, step: Any) -> Any:
        """Put the claim to the Arbiter: its value, or _EMPTY if it has to wait (mutex held)."""
        engine, arbiter = self.engine, self.engine.arbiter
        if isinstance(step, Get):
            value: Any = arbiter.get(self, step.get, self.gpu)
            name = step.get
        elif isinstance(step, Put):
            name = step.put
            self.own().attached += 1  # for the channel, and whoever takes the set from it
            value = arbiter.put(self, self.own().token, name)
        else:
            token = self.own().token
            name = engine.plan.claim_instance(step.acquire, token.gpu)
            try:
                value = arbiter.acquire(self, token, name, engine.books.units(step, self.own()))
            except ValueError as error:
                engine.fail_run(InputError(str(error)))
                value = FAILED
        engine.deliver()
        if value is None or value is False:
            if self._waits_for is None:
                place = {} if self.set is None else {"proof": self.set.token.proof, "partition": self.set.token.partition}
                self._waits_for = (name, place)
                engine.emit(Event(engine.now(), "wait", name=name, worker=self.name, **place))
            return self._mail  # delivering may have brought the answer already
        return value

    def claim(self, step: Acquire | Put | Get) -> Any:
        """The value of a granted claim. Raises SetFailed, or Stopped for a `get`, when the scope has failed."""
        asked, self.claimed_first = self.claimed_first, False
        with self.engine.mutex:
            self._waits_turn = True
            while self._turns is not None and self._turns[0] is not self:
                self._condition.wait()
            self._waits_turn = False
            value = self._mail if asked else self._ask(step)
            self._leave_turns()
            while value is _EMPTY or value is RETRY:
                if value is RETRY:
                    self._mail = _EMPTY
                    value = self._ask(step)
                    continue
                self._condition.wait()
                value = self._mail
            self._mail = _EMPTY
            if value is not FAILED:
                self._granted()  # by a second try: the first answer was only that it may try again
                return value
            self._waits_for = None
            if isinstance(step, Put):
                self.own().attached -= 1
        raise Stopped if isinstance(step, Get) else SetFailed

    def own(self) -> Set:
        if self.set is None:
            raise InputError(f"worker {self.kind} has no set here: it needs a `get` first")
        return self.set
