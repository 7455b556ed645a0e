"""A measured point as a scenario: its words and numbers, over the preset of its phase.

The words of a point's `config` are those of the measured system's documents; the policy's own spellings are taken too.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from pydantic import ValidationError

from cuzk.accuracy.measured_points import Point
from cuzk.errors import InputError
from cuzk.model.calibration import Calibration
from cuzk.model.circuit import Circuit
from cuzk.model.files import library
from cuzk.model.machine import Machine
from cuzk.model.policy import Policy
from cuzk.model.scenario import Scenario, load_part
from cuzk.model.workload import Workload
from cuzk.pipeline.presets.reference_prover.phases import PHASES

GIB = 1 << 30
PROOFS = {7: 5, 8: 5, 9: 20, 11: 20, 12: 20}
"""Proofs in the batch where a point does not say: as in that phase's other runs."""
IN_FLIGHT = {7: 3, 8: 3}
"""Proofs in flight where a point does not say (phases 7 and 8); else as many as there are, up to 15."""
MOST_IN_FLIGHT = 15
PEOPLE_SAY = {
    "permit": (
        "permit_returns",
        {
            "released before send": "after-synthesis",
            "held through send": "after-send",
            "held through pickup": "after-pickup",
            "held until pickup": "after-pickup",
            "held until gpu start": "after-gpu-start",
        },
    ),
    "permit_returns": ("permit_returns", {}),
    "prestage": (
        "prestage",
        {
            "before GPU mutex": "before-mutex",
            "before mutex": "before-mutex",
            "in mutex": "inside-mutex",
            "inside mutex": "inside-mutex",
            "none": "off",
        },
    ),
    "free_d_bc": ("free_d_bc", {"after unlock": "after-unlock", "before unlock": "before-unlock", "after ntt": "after-ntt"}),
    "free_abc": ("free_abc", {"after finish": "after-finish", "after prove_start": "after-start", "after start": "after-start"}),
    "locks": ("gpu_locks", {"compute_mtx + mem_mtx": "compute+memory", "one": "one"}),
    "dealloc_mtx": ("dealloc", {"true": "async-serialised", "false": "async"}),
}
WITHOUT_EFFECT = {"membw_throttle", "conventions", "gt_note", "note", "notes", "tool", "system"}
NUMBERS = {
    "pw": "pw",
    "gw": "gw",
    "workers": "gw",
    "gpu_workers": "gw",
    "gpu_workers_per_device": "gw",
    "j": "j",
    "gt": "gt",
    "gpu_threads": "gt",
    "partition_workers": "pw",
}
CIRCUITS = {
    "porep": "porep-32g",
    "porep c2": "porep-32g",
    "porep-32g": "porep-32g",
    "windowpost": "window-32g",
    "wpost": "window-32g",
    "winningpost": "winning-32g",
    "winning": "winning-32g",
    "snapdeals": "snap-32g",
    "snap": "snap-32g",
}


class Unscored(Exception):
    """This point cannot be predicted; the text says why."""


@dataclass(frozen=True)
class Case:
    """A point, ready to be simulated."""

    point: Point
    scenario: Scenario
    warnings: tuple[str, ...]
    batch: int = 1
    """Proofs that the pipeline treats as one."""


@lru_cache(maxsize=32)
def circuit(name: str) -> Circuit:
    """A circuit of the library by its file's name."""
    return load_part(_file("circuits", name), "circuit", Circuit)


@lru_cache(maxsize=8)
def machine(name: str) -> Machine:
    return load_part(_file("machines", name), "machine", Machine)


def _file(folder: str, name: str) -> str:
    root = library()
    path = root / folder / f"{name}.yaml" if root else None
    if path is None or not path.is_file():
        raise InputError(f"the library has no {folder}/{name}.yaml")
    return str(path)


def case(point: Point, calibration: Calibration, systems: dict[str, dict[str, Any]]) -> Case:
    """Raises Unscored for a run that no pipeline describes; InputError for values that cannot be."""
    config = dict(point.config)
    warnings: list[str] = []
    phase = _phase(point, config.pop("phase", None))
    preset, options = _options(point, phase, config, warnings)
    proofs, batch = _proofs(point, phase, config, options)
    named = _circuit(point, config, systems)
    warnings += [
        f"{point.pos}: {point.id}: unknown key '{key}' in config{_near(str(key))}: ignored"
        for key in config
        if key not in WITHOUT_EFFECT
    ]
    if batch > 1:
        named = named.model_copy(update={"partitions": named.partitions * batch, "name": f"{named.name} x {batch}"})
    try:
        policy = Policy.model_validate(options)
        workload = Workload(proofs=max(1, proofs // batch))
    except ValidationError as error:
        faults = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
        raise InputError(f"{point.pos}: {point.id}: config: {faults}") from None
    scenario = Scenario(
        name=point.id,
        machine=_machine(point, systems),
        circuit=named,
        pipeline=preset,
        policy=policy,
        workload=workload,
        calibration=calibration,
        seed=1,
    )
    return Case(point, scenario, tuple(warnings), batch)


def _near(key: str) -> str:
    near = difflib.get_close_matches(key, _known(), n=1)
    return f"; did you mean '{near[0]}'?" if near else ""


def _known() -> set[str]:
    return {*PEOPLE_SAY, *NUMBERS, *Policy.model_fields, "phase", "c", "circuit"}


def _phase(point: Point, value: Any) -> str:
    text = str(value).strip().lower().removeprefix("phase").strip() if value is not None else ""
    if not text:
        raise InputError(f"{point.pos}: {point.id}: config: 'phase' is missing")
    return text


def _options(point: Point, phase: str, config: dict[str, Any], warnings: list[str]) -> tuple[str, dict[str, Any]]:
    """The preset, and the policy's options that the point gives. Takes what it understands out of `config`."""
    options: dict[str, Any] = {}
    for key in list(config):
        if key in NUMBERS:
            value = config.pop(key)
            if value is None:
                continue
            option = NUMBERS[key]
            if options.get(option, value) != value:
                raise InputError(f"{point.pos}: {point.id}: config: '{key}: {value}' contradicts {option} = {options[option]}")
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise InputError(f"{point.pos}: {point.id}: config: {key} must be a whole number above zero, not {value!r}")
            options[option] = value
        elif key == "channel_capacity":
            value = config.pop(key)
            if value is not None:
                options[key] = value if isinstance(value, int) else "pw"
        elif key in PEOPLE_SAY:
            option, words = PEOPLE_SAY[key]
            value = config.pop(key)
            if value is not None:
                options[option] = _word(point, key, value, option, words)
        elif key in Policy.model_fields and config[key] is not None and key != "batch_size":
            options[key] = config.pop(key)
    if phase == "12" and options.get("permit_returns") == "after-synthesis":
        return "phase12-prefix", options
    if phase == "3":
        return "phase2", options
    preset = f"phase{phase}"
    if preset not in PHASES:
        raise Unscored(f"no pipeline describes phase {phase} ({point.config.get('tool') or 'its runs are of single steps'})")
    return preset, options


def _word(point: Point, key: str, value: Any, option: str, words: dict[str, str]) -> str:
    text = " ".join(str(value).lower().split())
    known = {k.lower(): v for k, v in words.items()} | {v: v for v in _choices(option)}
    if text in known:
        return known[text]
    for phrase in sorted(known, key=len, reverse=True):
        if text.startswith(phrase):
            return known[phrase]
    if option == "free_d_bc" and "ntt" in text:
        return "after-ntt"
    if option == "gpu_locks" and "+" in text:
        return "compute+memory"
    raise InputError(f"{point.pos}: {point.id}: config: {key}: {value!r} is none of {', '.join(sorted(known))}")


def _choices(option: str) -> list[str]:
    from typing import get_args

    annotation = Policy.model_fields[option].annotation
    return [value for arg in get_args(annotation) for value in get_args(arg)]


def _proofs(point: Point, phase: str, config: dict[str, Any], options: dict[str, Any]) -> tuple[int, int]:
    """(proofs, proofs that go as one); fills in j."""
    number = int(phase.partition("-")[0]) if phase.partition("-")[0].isdigit() else 0
    batch = config.pop("batch_size", None) or 1
    given = config.pop("c", None)
    for name, value in (("c", given), ("batch_size", batch)):
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
            raise InputError(f"{point.pos}: {point.id}: config: {name} must be a whole number above zero, not {value!r}")
    in_flight = options.get("j")
    if in_flight is None:
        in_flight = min(given or PROOFS.get(number, 3), IN_FLIGHT.get(number, MOST_IN_FLIGHT))
        options["j"] = in_flight
    proofs = given or max(PROOFS.get(number, 1), in_flight)
    if batch > 1:
        options["j"] = max(1, in_flight // batch)
    return proofs, batch


def _circuit(point: Point, config: dict[str, Any], systems: dict[str, dict[str, Any]]) -> Circuit:
    value = config.pop("circuit", None) or config.pop("proof", None)
    if value is None:
        return circuit("porep-32g")
    text = str(value).strip().lower()
    if text in CIRCUITS:
        return circuit(CIRCUITS[text])
    for word, name in CIRCUITS.items():
        if text.startswith(word):
            return circuit(name)
    try:
        return circuit(text)
    except InputError as error:
        raise InputError(f"{point.pos}: {point.id}: config: circuit: {error}") from None


def _machine(point: Point, systems: dict[str, dict[str, Any]]) -> Machine:
    """The reference machine; with less RAM where the point's system has less."""
    known = machine("zen4-96c-755g-5070ti")
    ram = systems.get(point.system or "", {}).get("ram_gib")
    if isinstance(ram, (int, float)) and 0 < ram * GIB < known.ram - known.reserved:
        return known.model_copy(update={"ram": int(ram * GIB), "reserved": 0, "name": known.name})
    return known
