"""The keys of each kind of event: every trace is held to them, and docs/trace.md's table is written from them."""

from __future__ import annotations

from dataclasses import dataclass

from cuzk.trace.event import Event, Kind


@dataclass(frozen=True)
class Keys:
    """The keys that a kind of event has beside `t` and `kind`: always, and where they apply."""

    means: str
    always: tuple[str, ...]
    may: tuple[str, ...] = ()


_SET = ("proof", "partition")
_LEVELS = ("name", "worker", "pool", "bytes", "live", "reserved", "capacity")

SCHEMA: dict[Kind, Keys] = {
    "admit": Keys("a proof enters the pipeline; `name`: its circuit", ("name", "proof")),
    "begin": Keys(
        "a step (`run` or `copy`) starts; `name`: the step (of a copy: its cost law); `gpu` where a device or its link does it",
        ("name", "worker", *_SET),
        ("gpu", "stream", "cost", "bytes", "cpu_s"),
    ),
    "end": Keys("… and ends", ("name", "worker", *_SET), ("gpu", "stream", "cost", "bytes", "cpu_s")),
    "wait": Keys(
        "a claim could not be granted at once; `name`: the lock, permit, channel or handle (a `get` has no set yet)",
        ("name", "worker"),
        _SET,
    ),
    "grant": Keys("the claim that waited is granted; its worker may wake later", ("name", "worker"), _SET),
    "alloc": Keys("a buffer was granted by the books; the real allocation follows", _LEVELS, (*_SET, "resident")),
    "free": Keys("a buffer is off the books; its memory was given back before", _LEVELS, (*_SET, "resident")),
    "trim": Keys("an allocator's cache went back to the device", ("worker", *_SET, "pool", "bytes", "live", "reserved")),
    "sample": Keys(
        "the system's (or the driver's) report for a pool: every 25 ms in a run; where the slope changes in a simulation",
        ("pool", "resident"),
    ),
    "oom": Keys(
        "memory that did not fit; `name`: the buffer (or the worker whose body was refused), `bytes`: the request, "
        "`live`: of the pool, `reserved`: the level that it met",
        (*_LEVELS, "holders", "reason"),
        _SET,
    ),
    "complete": Keys("a partition's proof is out, or the whole proof (`partition` = −1)", _SET, ("worker", "gpu")),
    "dealloc": Keys("a deallocation path has ended for one set; `name`: `native` or `host`", ("name", "worker", *_SET)),
    "fail": Keys("something has failed; `name` is its scope: `proof`, `device` or `run`", ("name", "reason"), ("proof", "gpu")),
    "restart": Keys(
        "a fresh worker process takes over, for the proofs that were not yet admitted; `name`: `worker`", ("name", "reason")
    ),
    "unwind": Keys(
        "a failed set has given back what it held: a `free` for each buffer, then its locks and permits", ("worker", *_SET)
    ),
}


def faults_of(event: Event) -> list[str]:
    """The keys that an event lacks, or has and must not have; empty: it is as the schema says."""
    keys = SCHEMA[event.kind]
    there = set(event.to_json()) - {"t", "kind"}
    lacking = [f"{event.kind} without {key}" for key in keys.always if key not in there]
    return lacking + [f"{event.kind} with {key}" for key in sorted(there - {*keys.always, *keys.may})]


def table() -> str:
    """The schema as docs/trace.md shows it."""
    rows = ["| kind | means | always, beside `t` and `kind` | where it applies |", "|---|---|---|---|"]
    for kind, keys in SCHEMA.items():
        always, may = (", ".join(f"`{key}`" for key in some) for some in (keys.always, keys.may))
        rows.append(f"| `{kind}` | {keys.means} | {always} | {may} |")
    return "\n".join(rows)
