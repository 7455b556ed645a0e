"""The files that ship with cuzk."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from ruamel.yaml import YAML

from cuzk.model import Calibration, Circuit, Machine, Policy, Scenario, load_part
from cuzk.model.files import library
from cuzk.model.schema import scenario_schema
from cuzk.model.units import GIB
from cuzk.pipeline import ops
from cuzk.pipeline.presets.reference_prover.phases import PHASES
from cuzk.pipeline.program import bind as bind_scenario
from cuzk.pipeline.program import every_op

ROOT = Path(__file__).parents[3]
LIBRARY = library()
assert LIBRARY is not None
FILES = sorted(p.relative_to(LIBRARY).as_posix() for p in LIBRARY.rglob("*.yaml") if "data" not in p.relative_to(LIBRARY).parts)


@pytest.mark.parametrize("name", [name for name in FILES if name.startswith("machines/")])
def test_machines(name: str) -> None:
    machine = load_part(LIBRARY / name, "machine", Machine)
    assert machine.name == Path(name).stem and machine.provenance


@pytest.mark.parametrize("name", [name for name in FILES if name.startswith("circuits/")])
def test_circuits(name: str) -> None:
    circuit = load_part(LIBRARY / name, "circuit", Circuit)
    assert circuit.name == Path(name).stem and circuit.provenance
    # Where a size is typed in, the counts must not contradict it.
    counted = circuit.model_copy(update={"srs": None, "pce": None})
    assert circuit.srs_bytes == pytest.approx(counted.srs_bytes, rel=0.02)
    assert circuit.pce_bytes == pytest.approx(counted.pce_bytes, rel=0.02)


@pytest.mark.parametrize("name", [name for name in FILES if name.startswith("calibrations/")])
def test_calibrations(name: str) -> None:
    calibration = load_part(LIBRARY / name, "calibration", Calibration)
    assert calibration.name == Path(name).stem and calibration.costs


def test_the_reference_machine_keeps_what_the_verdicts_assume() -> None:
    machine = load_part(LIBRARY / "machines/zen4-96c-755g-5070ti.yaml", "machine", Machine)
    assert machine.usable_ram == 660 * GIB and "660 GiB" in machine.provenance["reserved"]


def test_the_committed_schema_is_current() -> None:
    committed = json.loads((ROOT / "schemas" / "scenario.schema.json").read_text(encoding="utf-8"))
    assert committed == scenario_schema(), "run: cuzk schema -o schemas/scenario.schema.json"


def test_the_schema_accepts_the_library_and_refuses_a_typo() -> None:
    jsonschema.Draft202012Validator.check_schema(scenario_schema())
    validator = jsonschema.Draft202012Validator(scenario_schema())
    yaml = YAML(typ="safe", pure=True)
    for name in (name for name in FILES if not name.startswith("catalogue/")):
        data = yaml.load((LIBRARY / name).read_text(encoding="utf-8"))
        if set(data) - {"pipeline"} or isinstance(data["pipeline"], str):
            assert [error.message for error in validator.iter_errors(data)] == [], name
    for wrong in ({"polcy": {}}, {"policy": {"pww": 1}}, {"policy": {"pw": 0}}, {"machine": {"ram": 16}}, {"seed": -1}):
        assert not validator.is_valid(wrong), wrong


@pytest.mark.parametrize("phase", [name for name in PHASES if name.startswith("phase")])
@pytest.mark.parametrize(
    "change",
    [{}, {"matvec": "gpu"}, {"b_g2_msm": "gpu"}, {"prep_msm": "gpu"}, {"prestage": "before-mutex"}, {"quotient": "c-free"}],
)
def test_the_documents_have_a_cost_for_every_step(phase: str, change: dict[str, Any]) -> None:
    scenario = Scenario(
        machine=load_part(LIBRARY / "machines/zen4-96c-755g-5070ti.yaml", "machine", Machine),
        circuit=load_part(LIBRARY / "circuits/porep-32g.yaml", "circuit", Circuit),
        calibration=load_part(LIBRARY / "calibrations/reference-documents.yaml", "calibration", Calibration),
        pipeline=phase,
        policy=Policy.model_validate(change),
    )
    program = bind_scenario(scenario)
    program.require_prices()
    names = program.names(scenario.circuit)
    assert scenario.calibration is not None
    code = [op for worker in program.pipeline.workers for op in every_op(program.code(worker, scenario.circuit.name))]
    laws = {op.law for op in code if isinstance(op, (ops.Run, ops.Copy))}
    prep = "prep_msm_gpu" if change.get("prep_msm") == "gpu" else "prep_msm"
    assert {"ntt_h", "batch_add", "tail_msm", prep, "epilogue"} <= laws
    for name in laws:
        law = scenario.calibration.law(name)
        assert law.seconds.evaluate(names) > 0 or law.link is not None
        assert law.cores.evaluate(names) >= 0 and 0 <= law.dram_demand.evaluate(names) <= 1
