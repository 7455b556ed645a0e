"""Proofs through the pipeline on a GPU, every way its work can be placed; each is verified by an independent pairing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.small_template import small_case

pytestmark = pytest.mark.gpu

FIXTURES = Path(__file__).parents[1] / "fixtures"
SCENARIO = """
version: 1
machine: machines/h200-16c-126g.yaml
circuit: circuits/porep-32g.yaml
pipeline: phase12
policy: {{pw: 3, gw: 2, j: 2, {policy}}}
workload: {{proofs: 2}}
"""
ALL = "srs: vram, pce: vram, matvec: gpu, prep_msm: gpu, b_g2_msm: gpu"


def prove(tmp_path, key, witness, policy, partitions=3):
    from cuzk.exec.cuda import CudaProver
    from cuzk.exec.run import Proving, bind_key, prove_with
    from cuzk.model import load_scenario

    path = tmp_path / "s.yaml"
    path.write_text(SCENARIO.format(policy=policy))
    scenario = load_scenario(path)
    scenario = scenario.model_copy(update={"circuit": scenario.circuit.model_copy(update={"partitions": partitions})})
    bound = bind_key(scenario, key, [witness], Proving("", ()), idle_bytes=0, make_device=CudaProver)
    return prove_with(bound, tmp_path / "out")


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    from cuzk.groth16.load import load_key
    from cuzk.groth16.setup.development import setup_development
    from cuzk.groth16.template.system import TemplateSystem

    system, witness = small_case(20)
    path = tmp_path_factory.mktemp("template") / "small.ckey"
    setup_development(TemplateSystem(system), path)
    return load_key(path), witness


@pytest.mark.parametrize("quotient", ["c-free", "odd-coset", "bellman"])
def test_a_template(device, tmp_path, template, quotient):
    before, _ = device.memory_info()
    for split in ("prep_msm: gpu", "prep_msm: gpu, key_tables: pair-sums", "prep_msm: cpu"):
        result = prove(tmp_path, *template, f"quotient: {quotient}, {ALL.replace('prep_msm: gpu', split)}")
        assert result.exit_code == 0, result.error
        assert result.document["measured"]["verified_partitions"] == 6
    after, _ = device.memory_info()
    assert before - after < 256 << 20, "a run leaves its modules and streams, and no buffer"


@pytest.mark.parametrize("policy", [
    "srs: pinned", "srs: pageable", "srs: vram", "srs: vram, b_g2_msm: gpu", "srs: pinned, b_g2_msm: gpu",
])  # fmt: skip
def test_rows_from_the_host(device, tmp_path, policy):
    from cuzk.groth16.load import load_key, open_witness

    folder = FIXTURES / "chain1k"
    key = load_key(folder / "chain1k.zkey")
    result = prove(tmp_path, key, open_witness(folder / "chain1k.wtns")(key), policy)
    assert result.exit_code == 0, result.error
    assert result.document["measured"]["verified_partitions"] == 6
