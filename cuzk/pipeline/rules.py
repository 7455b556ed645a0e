"""Options that go together: every rule on options that a policy, or a pipeline written by hand, can break. Asked once, by `bind`.

A rule speaks of the pipeline: where a step runs, where a resident lies. Its error names the options and their values, at the
place where the first of them was written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from cuzk.errors import ScenarioError
from cuzk.model.policy import Policy, Processor
from cuzk.model.scenario import Scenario
from cuzk.pipeline.presets import PRESETS
from cuzk.pipeline.steps import HOST, Pipeline, Run, StepBase, TryAlloc


@dataclass(frozen=True)
class Facts:
    """A pipeline, as the rules see it."""

    scenario: Scenario
    pipeline: Pipeline
    policy: Policy

    @property
    def own(self) -> bool:
        """Whether cuzk's own executor is described."""
        preset = PRESETS.get(self.pipeline.preset)
        return preset is not None and preset.is_own

    def runs(self) -> Iterator[tuple[tuple[str | int, ...], Run]]:
        """Every `run` with its place in the pipeline."""
        for name, worker in self.pipeline.workers.items():
            yield from _runs(worker.steps, ("workers", name, "steps"))

    def at(self, step: str) -> Processor | None:
        """The processor of a step; None if the pipeline has none of that name."""
        return next((run.processor for _, run in self.runs() if run.run == step), None)

    def placed(self, resident: str) -> str:
        """The place of a resident, as the policy says it, or as its pool says it."""
        given: str | None = getattr(self.policy, resident, None)
        spec = self.pipeline.buffers.get(resident)
        if spec is None:
            return "nowhere"
        kind = "vram" if spec.pool.startswith("vram") else {"ram": "pageable"}.get(spec.pool, spec.pool)
        return str(given) if (given, kind) in (("mmap", "pageable"), ("split", "pinned")) else kind

    def error(self, option: str, message: str) -> ScenarioError:
        """About an option of the policy where the pipeline is a preset, else about the step or buffer of that name."""
        if isinstance(self.scenario.pipeline, str):
            return self.scenario.error(("policy", option), message)
        place = next((at for at, run in self.runs() if run.run == option), ("buffers", option))
        return self.scenario.error(("pipeline", *place), message)


def _runs(steps: tuple[StepBase, ...], at: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], Run]]:
    for index, step in enumerate(steps):
        if isinstance(step, Run):
            yield (*at, index), step
        elif isinstance(step, TryAlloc):
            yield from _runs(step.then, (*at, index, "then"))
            yield from _runs(step.otherwise, (*at, index, "else"))


def _streams_are_the_gpus(facts: Facts) -> None:
    for place, run in facts.runs():
        if run.on != HOST and run.processor == "cpu":
            message = f"{run.run} runs on stream {run.on}, and a stream is the GPU's: at: gpu, or without `on`"
            raise facts.scenario.error(("pipeline", *place), message)


def _matrices_where_they_are_used(facts: Facts) -> None:
    if facts.own and facts.at("matvec") == "gpu" and facts.placed("pce") != "vram":
        raise facts.error("matvec", f"matvec: gpu needs the matrices there too: pce: vram, not pce: {facts.placed('pce')}")


def _splits_where_they_are_used(facts: Facts) -> None:
    if not facts.own or facts.at("prep_msm") != "gpu":
        return
    needed = [("matvec", facts.at("matvec")), ("b_g2_msm", facts.at("b_g2_msm"))]
    wrong = [f"{option}: gpu, not {option}: {found}" for option, found in needed if found != "gpu"]
    if facts.placed("srs") == "pageable":
        wrong.append("srs: vram, pinned, split or mmap, not srs: pageable")
    if wrong:
        raise facts.error("prep_msm", f"prep_msm: gpu needs all that it works for there too: {'; '.join(wrong)}")


def _tables_behind_the_points(facts: Facts) -> None:
    if facts.policy.key_tables == "pair-sums" and facts.placed("srs") != "vram":
        message = f"key_tables: pair-sums lie behind the key's points in VRAM: srs: vram, not srs: {facts.placed('srs')}"
        raise facts.error("key_tables", message)


RULES: tuple[Callable[[Facts], None], ...] = (
    _streams_are_the_gpus,
    _matrices_where_they_are_used,
    _splits_where_they_are_used,
    _tables_behind_the_points,
)


def refuse_contradictions(scenario: Scenario, pipeline: Pipeline, policy: Policy) -> None:
    """Raises ScenarioError for the first rule that is broken."""
    facts = Facts(scenario, pipeline, policy)
    for rule in RULES:
        rule(facts)
