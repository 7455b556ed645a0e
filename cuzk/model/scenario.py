"""Scenario: machine, circuit, pipeline, policy, workload, calibration and checks; how it is loaded from files."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import BaseModel, BeforeValidator, Field, PrivateAttr, model_validator

from cuzk.errors import ScenarioError
from cuzk.model.base import Count, Model, Share
from cuzk.model.calibration import Calibration
from cuzk.model.circuit import Circuit
from cuzk.model.files import Loader, override
from cuzk.model.formula import Formula, suggestion
from cuzk.model.machine import Machine
from cuzk.model.policy import Policy
from cuzk.model.units import Bytes, Seconds
from cuzk.model.validate import validate
from cuzk.model.workload import Workload
from cuzk.model.yamlpos import BROKEN, Loc, Node, Pos, Problems, describe

P = TypeVar("P", bound=BaseModel)
Verdict = Literal["fits", "risky", "oom"]


class Within(Model):
    """The expectation of a duration: between two, or about one."""

    at_least: Seconds | None = None
    at_most: Seconds | None = None
    about: Seconds | None = None
    within: Share = 0.05
    """Relative tolerance of `about`."""

    def holds(self, value_s: float) -> bool:
        low = self.at_least if self.at_least is not None else 0.0
        high = self.at_most if self.at_most is not None else float("inf")
        near = self.about is None or abs(value_s - self.about) <= self.within * self.about
        return low <= value_s <= high and near


class SizeWithin(Model):
    at_least: Bytes = 0
    at_most: Bytes | None = None

    def holds(self, size_bytes: int) -> bool:
        return self.at_least <= size_bytes and (self.at_most is None or size_bytes <= self.at_most)


class Checks(Model):
    """The outcome that the scenario claims. Judged by `cuzk sim --check` and the tests only."""

    verdict: Verdict | None = None
    pool: str | None = None
    """The pool of the predicted OOM, such as `ram` or `vram:0`."""
    explore: Verdict | None = None
    """The worst verdict over legal wake orders."""
    s_per_proof: Within | None = None
    steady_s_per_proof: Within | None = None
    prove_s: Within | None = None
    peaks: Annotated[dict[str, SizeWithin], Field(default_factory=dict)]
    """By pool, resident."""
    bottleneck: str | None = None
    holder: str | None = None
    """The buffer that holds most at the peak."""
    completions: Count | None = None
    deallocations: Count | None = None
    """On each path."""
    admitted: Count | None = None
    """Most partitions that were in synthesis at once."""
    idle_gpus: Count | None = None


def _pipeline(value: Any) -> Any:
    if isinstance(value, (str, dict)) and value:
        return value
    raise ValueError(f"must be a preset's name, a file or the pipeline itself, not {describe(value)}")


class Scenario(Model):
    version: Literal[1] = 1
    name: str = ""
    description: str = ""
    machine: Machine
    circuit: Circuit
    pipeline: Annotated[str | dict[str, Any], BeforeValidator(_pipeline)]
    """A preset's name, or the steps themselves as data: `parse('pipeline', Pipeline)` reads those."""
    policy: Policy = Field(default_factory=Policy)
    workload: Workload = Field(default_factory=Workload)
    calibration: Calibration | None = None
    seed: Annotated[int, Field(strict=True, ge=0, le=2**63 - 1)] = 0
    checks: Checks = Field(default_factory=lambda: Checks(peaks={}))

    _tree: Node | None = PrivateAttr(default=None)

    @model_validator(mode="before")
    @classmethod
    def _circuit_of_mix(cls, data: Any) -> Any:
        """A mix says which circuits there are: a circuit beside it (of an extended file) that is not in it counts for nothing."""
        if isinstance(data, dict) and isinstance(data.get("workload"), dict):
            entries = data["workload"].get("circuits")
            if isinstance(entries, list) and entries and all(isinstance(e, dict) and "circuit" in e for e in entries):
                mixed = [entry["circuit"] for entry in entries]
                if "circuit" not in data or data["circuit"] not in mixed:
                    return data | {"circuit": mixed[0]}
        return data

    def circuits(self) -> list[Circuit]:
        """Every circuit of the workload, each once."""
        mixed = {entry.circuit.name: entry.circuit for entry in self.workload.circuits}
        return list(mixed.values()) or [self.circuit]

    def with_policy(self, **changes: Any) -> Self:
        """A copy with some options of the policy changed; cheap. Raises pydantic.ValidationError."""
        return self.model_copy(update={"policy": self.policy.with_(**changes)})

    def with_pipeline(self, pipeline: str | dict[str, Any]) -> Self:
        """A copy with another preset, or with steps of its own as data, which no file has positions for."""
        copy = self.model_copy(update={"pipeline": pipeline})
        if isinstance(pipeline, dict):
            copy._tree = None
        return copy

    def where(self, *loc: str | int) -> Pos:
        """The place where the value at `loc` was written, or the nearest above it; prints as file:line:col."""
        node = self._tree
        if node is None:
            return Pos(self.name or "scenario")
        pos = node.pos
        for key in loc:
            node = node.child(key) if node is not None else None
            if node is None:
                break
            pos = node.pos
        return pos

    def error(self, loc: Loc, message: str) -> ScenarioError:
        """An error about the value at `loc`, for the caller to raise."""
        problems = Problems()
        problems.add(self.where(*loc), loc, message)
        return ScenarioError(list(problems.found))

    def parse(self, key: str, model: type[P]) -> P:
        """The data under `key` as `model`. Raises ScenarioError with positions."""
        node = self._tree.child(key) if self._tree is not None else None
        if node is None:
            node = _as_node(getattr(self, key), Pos(self.name or "scenario"))
        problems = Problems()
        parsed = validate(model, node, problems, at=(key,))
        problems.raise_if_any()
        assert parsed is not None
        return parsed

    def hash(self) -> str:
        """SHA-256 of all that decides the result: the same for equal scenarios, however their files are cut."""
        data = self.model_dump(mode="json", exclude={"name", "description", "checks"})
        return hashlib.sha256(json.dumps(data, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def _as_node(value: Any, pos: Pos) -> Node:
    if isinstance(value, dict):
        return Node({key: _as_node(child, pos) for key, child in value.items()}, pos, pos)
    if isinstance(value, (list, tuple)):
        return Node([_as_node(child, pos) for child in value], pos, pos)
    return Node(value, pos, pos)


class ScenarioFile:
    """A scenario file, read once, to be laid under many sets of overrides."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = path
        self._problems = Problems()
        loader = Loader(self._problems)
        self._tree = loader.scenario(path)
        self._incomplete = loader.incomplete

    def scenario(self, overrides: Iterable[str] = ()) -> Scenario:
        """The scenario with `--set` overrides such as 'policy.pw=12'.

        Raises ScenarioError with all faults at once, each `file:line:col: path: message`.
        """
        problems = Problems()
        problems.found |= self._problems.found
        tree = self._tree
        if tree is None:
            problems.raise_if_any()
            raise ScenarioError([f"{os.fspath(self.path)}: cannot be read"])
        loader = Loader(problems)
        loader.incomplete = self._incomplete
        base = Path(self.path).parent
        for setting in overrides:
            tree = override(tree, setting, loader, base)
        scenario = validate(Scenario, tree, problems, incomplete=loader.incomplete)
        if scenario is not None and not problems:
            _check_formulas(scenario, tree, problems)
        problems.raise_if_any()
        assert scenario is not None
        if not scenario.name:
            scenario = scenario.model_copy(update={"name": Path(self.path).stem})
        scenario._tree = tree
        return scenario


def load_scenario(path: str | os.PathLike[str], overrides: Iterable[str] = ()) -> Scenario:
    """The scenario in a YAML file, with `--set` overrides such as 'policy.pw=12'.

    Raises ScenarioError with all faults at once, each `file:line:col: path: message`.
    """
    return ScenarioFile(path).scenario(overrides)


def load_part(path: str | os.PathLike[str], kind: str, model: type[P]) -> P:
    """A part file on its own, such as a calibration. Raises ScenarioError."""
    problems = Problems()
    loader = Loader(problems)
    node = loader.part(kind, Node(os.fspath(path), Pos(os.fspath(path))), Path(), (kind,))
    parsed = None if node.value is BROKEN else validate(model, node, problems, at=(kind,), incomplete=loader.incomplete)
    problems.raise_if_any()
    assert parsed is not None
    return parsed


def formula_names(scenario: Scenario) -> set[str]:
    """Every name that the formulas of a cost law may use."""
    names = set(scenario.circuit.names()) | set(scenario.machine.names()) | Policy.number_names() | {"circuits"}
    return names | set(scenario.calibration.parameters if scenario.calibration else ())


def _check_formulas(scenario: Scenario, tree: Node, problems: Problems) -> None:
    """Unknown names in cost laws, at the formula that uses them."""
    known = formula_names(scenario)
    for step, law in scenario.calibration.costs.items() if scenario.calibration else ():
        for field in type(law).model_fields:
            formula = getattr(law, field)
            for name in sorted(formula.names - known) if isinstance(formula, Formula) else ():
                loc = ("calibration", "costs", step, field)
                node = tree.find(loc)
                problems.add(node.pos if node else tree.pos, loc, f"unknown name '{name}'{suggestion(name, known)}")
