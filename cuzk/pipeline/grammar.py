"""The events that a program allows: what a worker's journal can be for one set, whoever walks it and at whatever pace.

Simulator and executor write the same kind of trace; here stands what "the same" means. For each set, the events of one worker on
its own lane, and those of each of its streams, are a sentence of that worker's code: steps in order, one arm of each branch, a
wait and its grant before any claim or none. A set that failed breaks off anywhere, and is unwound.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from cuzk.pipeline import ops
from cuzk.pipeline.program import Program, limit_permit
from cuzk.trace.event import Event

Word = tuple[str, str]
"""(kind, name) of an event."""
Lane = tuple[int, int, str, str | None]
"""(proof, partition, kind of worker, stream)."""
_WORDS = ("begin", "end", "alloc", "free", "trim", "wait", "grant", "dealloc", "complete")


def sentences(program: Program, events: Iterable[Event]) -> dict[Lane, list[Word]]:
    """The words of each lane in order. A buffer of a pool that is part of another counts once."""
    pool_of = {name: spec.pool.partition(":")[0] for name, spec in program.pipeline.buffers.items()}
    found: dict[Lane, list[Word]] = defaultdict(list)
    for event in events:
        if event.proof is None or event.partition is None or event.partition < 0 or event.kind not in _WORDS:
            continue
        if event.kind in ("alloc", "free") and (event.pool or "").partition(":")[0] != pool_of.get(event.name):
            continue
        lane = (event.proof, event.partition, event.worker.partition(":")[0], event.stream)
        found[lane].append((event.kind, (event.pool or "") if event.kind == "trim" else event.name))
    return dict(found)


def violations(program: Program, events: Iterable[Event]) -> list[str]:
    """Every lane that is no sentence of the program, in words."""
    events = list(events)
    failed = {event.proof for event in events if event.kind == "fail" and event.proof is not None}
    if any(event.kind == "fail" and event.name != "proof" for event in events):
        failed |= {event.proof for event in events if event.proof is not None}  # any of them may break off
    circuits = {event.proof: event.name for event in events if event.kind == "admit"}
    wrong = []
    for (proof, partition, worker, stream), words in sentences(program, events).items():
        if worker not in program.pipeline.workers:
            if proof not in failed:
                wrong.append(f"p{proof}.{partition}: events of {worker}, which is no worker")
            continue
        code, broken = _code(program, worker, circuits.get(proof, program.scenario.circuit.name)), proof in failed
        ends = _walk(code, stream, words, {0})
        if len(words) in ends or (broken and _prefix(code, stream, words)):
            continue
        wrong.append(f"p{proof}.{partition} {worker}{f'/{stream}' if stream else ''}: {words} is no sentence of its code")
    return wrong


def _code(program: Program, worker: str, circuit: str) -> tuple[ops.Op, ...]:
    code = program.code(worker, circuit)
    if program.pipeline.workers[worker].limit is None:
        return code
    permit = limit_permit(worker)
    return (ops.Acquire((), permit, permit, 1), *code)


def _walk(code: Iterable[ops.Op], stream: str | None, words: list[Word], at: set[int]) -> set[int]:
    """The places in `words` that can be reached from those in `at` by walking the whole code."""
    for op in code:
        if isinstance(op, ops.TryAlloc):
            (fast, _), (slow, _) = _try(op, stream, words, at)
            at = _walk(op.then, stream, words, fast) | _walk(op.otherwise, stream, words, slow)
            continue
        for alternatives in _of(op, stream):
            at = set().union(*(_sequence(words, at, alternative) for alternative in alternatives))
    return at


def _sequence(words: list[Word], at: set[int], alternative: tuple[Word, ...]) -> set[int]:
    for word in alternative:
        at = _step(words, at, word)
    return at


def _step(words: list[Word], at: set[int], word: Word) -> set[int]:
    def same(there: Word) -> bool:
        return there[0] == word[0] and (there[1] == word[1] or _instance(there[1]) == _instance(word[1]))

    return {place + 1 for place in at if place < len(words) and same(words[place])}


def _instance(name: str) -> str:
    """A lock or pool of a device, whichever device."""
    head, _, tail = name.rpartition(":")
    return f"{head}:$gpu" if tail.isdigit() else name


def _of(op: ops.Op, stream: str | None) -> list[tuple[tuple[Word, ...], ...]]:
    """For each event or group of events that a step writes on this lane: the forms that it may take."""
    if stream is not None:
        name = op.name if isinstance(op, ops.Run) else op.law if isinstance(op, ops.Copy) else None
        mine = isinstance(op, (ops.Run, ops.Copy)) and op.stream == stream and name is not None
        return [((("begin", name or ""), ("end", name or "")),)] if mine else []
    match op:
        case ops.Alloc(wants=wants):
            return [((("alloc", want.buffer),),) for want in wants if not want.kept]
        case ops.Free(buffers=buffers, path=path):
            freed: list[tuple[tuple[Word, ...], ...]] = [((("free", name),),) for name in buffers]
            return freed + ([((("dealloc", path),),)] if path is not None else [])
        case ops.Trim(pool=pool):
            return [((("trim", pool),),)]
        case ops.Run(name=name, stream=None) | ops.Copy(law=name, stream=None):
            return [((("begin", name), ("end", name)),)]
        case ops.Acquire(instance=name) | ops.Put(channel=name) | ops.Join(handle=name):
            return [((), (("wait", name), ("grant", name)))]
        case ops.Complete():
            return [((("complete", ""),),)]
    return []


def _try(op: ops.TryAlloc, stream: str | None, words: list[Word], at: set[int]) -> tuple[tuple[set[int], set[int]], ...]:
    """For either arm: where it begins, and all that was reached on the way. Memory that the books granted and the system refused
    is given back before the other arm."""
    buffers = [want.buffer for want in op.wants if stream is None and not want.kept]
    taken, seen = at, set(at)
    for buffer in buffers:
        taken = _step(words, taken, ("alloc", buffer))
        seen |= taken
    given, back = taken, set(seen)
    for buffer in reversed(buffers):
        given = _step(words, given, ("free", buffer))
        back |= given
    return (taken, seen), (at | given, back)


def _prefix(code: tuple[ops.Op, ...], stream: str | None, words: list[Word]) -> bool:
    """Whether the words break off somewhere in the code; what is freed behind that is the unwinding."""
    until = len(words)
    while until and words[until - 1][0] == "free":
        until -= 1
    reached = _reached(code, stream, words, {0})
    return any(end in reached for end in range(until, len(words) + 1))


def _reached(code: Iterable[ops.Op], stream: str | None, words: list[Word], at: set[int]) -> set[int]:
    """The places that can be reached from those in `at` by walking any first part of the code."""
    seen = set(at)
    for op in code:
        if isinstance(op, ops.TryAlloc):
            for (begin, on_the_way), arm in zip(_try(op, stream, words, at), (op.then, op.otherwise), strict=True):
                seen |= on_the_way | _reached(arm, stream, words, begin)
            at = _walk((op,), stream, words, at)
            continue
        for alternatives in _of(op, stream):
            for alternative in alternatives:
                for n in range(len(alternative) + 1):
                    seen |= _sequence(words, at, alternative[:n])
            at = set().union(*(_sequence(words, at, alternative) for alternative in alternatives))
    return seen
