"""The cuda device's orchestration on an emulated GPU: the same kernels, run on the CPU, in the real pipeline."""

from pathlib import Path

import pytest

from tests.unit.kernels.emulated import EmulatedDevice
from tests.unit.kernels.queued import QueuedDevice

FIXTURES = Path(__file__).parents[2] / "fixtures"
SCENARIO = """
version: 1
machine:
  name: emulated
  ram: 8GiB
  cores: 2
  gpus:
    - {{name: emulated GPU, vram: {vram}, context: 16MiB, sms: 1, pcie_h2d: 10GB/s, pcie_d2h: 10GB/s}}
circuit: circuits/porep-32g.yaml
pipeline: {phase}
policy: {policy}
workload: {{proofs: {proofs}}}
"""
ALL_ON_GPU = "{pw: 1, gw: 1, j: 1, srs: vram, pce: vram, matvec: gpu, prep_msm: gpu, b_g2_msm: gpu}"


@pytest.fixture(scope="module")
def kernels(tmp_path_factory):
    return tmp_path_factory.mktemp("kernels")


def c_free_key(tmp_path) -> str:
    from cuzk.cli.main import main

    key = tmp_path / "mul.ckey"
    assert main(["setup", str(FIXTURES / "mul" / "mul.r1cs"), "-o", str(key), "--quotients", "c-free"]) == 0
    return str(key)


def prove(kernels, tmp_path, phase="phase12", policy="{pw: 2, gw: 2, j: 2}", proofs=1, partitions=2, vram="1GiB",
          fixture="mul", quotient=None, key=None):  # fmt: skip
    from cuzk.exec.run import Proving, prepare, prove_with

    scenario = scenario_of(tmp_path, phase, policy, proofs, partitions, vram, quotient)
    folder = FIXTURES / fixture
    proving = Proving(key or str(folder / f"{fixture}.zkey"), (str(folder / f"{fixture}.wtns"),))
    gpu, device = device_of(kernels)
    return prove_with(prepare(scenario, proving, make_device=device), tmp_path / "out"), gpu


def scenario_of(tmp_path, phase, policy, proofs=1, partitions=1, vram="1GiB", quotient=None):
    from cuzk.model import load_scenario

    path = tmp_path / "s.yaml"
    path.write_text(SCENARIO.format(vram=vram, phase=phase, policy=policy, proofs=proofs))
    scenario = load_scenario(path, [f"policy.quotient={quotient}"] if quotient else [])
    return scenario.model_copy(update={"circuit": scenario.circuit.model_copy(update={"partitions": partitions})})


def device_of(kernels):
    from cuzk.exec.cuda import CudaProver

    gpu = EmulatedDevice(kernels)
    return gpu, lambda *args: CudaProver(*args, open_gpu=lambda index: gpu)


def test_a_proof_on_the_gpu(kernels, tmp_path):
    result, gpu = prove(kernels, tmp_path, policy="{pw: 1, gw: 1, j: 1}", partitions=1)
    assert result.exit_code == 0, result.error
    assert result.document["measured"]["verified_partitions"] == 1
    assert gpu.launches > 0 and not gpu.registered


@pytest.mark.slow
@pytest.mark.parametrize("phase", ["phase8", "phase9", "phase10", "phase11", "phase12", "phase12-prefix"])
def test_every_phase_proves_on_the_gpu(kernels, tmp_path, phase):
    result, gpu = prove(kernels, tmp_path, phase)
    assert result.exit_code == 0, result.error
    assert result.document["measured"]["verified_partitions"] == 2
    assert gpu.launches > 0 and not gpu.registered and gpu.live_bytes() == 0


@pytest.mark.slow
def test_everything_on_the_gpu(kernels, tmp_path):
    result, gpu = prove(kernels, tmp_path, policy=ALL_ON_GPU, partitions=1, key=c_free_key(tmp_path))
    assert result.exit_code == 0, result.error
    assert result.document["measured"]["verified_partitions"] == 1
    assert not gpu.registered and gpu.live_bytes() == 0


@pytest.mark.slow
@pytest.mark.parametrize("split", ["cpu", "gpu"])
def test_sums_of_neighbours_behind_the_key(kernels, tmp_path, split):
    policy = ALL_ON_GPU.replace("prep_msm: gpu", f"prep_msm: {split}, key_tables: pair-sums")
    result, gpu = prove(kernels, tmp_path, policy=policy, partitions=1, key=c_free_key(tmp_path))
    assert result.exit_code == 0, result.error
    assert result.document["measured"]["verified_partitions"] == 1
    assert gpu.live_bytes() == 0


def test_a_key_without_matrix_c_is_multiplied_on_the_gpu_too(kernels, tmp_path):
    """As snarkjs writes them: the rows of C are those of A times those of B."""
    result, gpu = prove(kernels, tmp_path, policy="{pw: 1, gw: 1, j: 1, pce: vram, matvec: gpu}", partitions=1)
    assert result.exit_code == 0, result.error
    assert result.document["measured"]["verified_partitions"] == 1
    assert not gpu.registered and gpu.live_bytes() == 0


@pytest.mark.slow
@pytest.mark.parametrize("srs", ["vram", "pinned", "pageable"])
@pytest.mark.parametrize("b_g2", ["cpu", "gpu"])
def test_wherever_the_key_lies(kernels, tmp_path, srs, b_g2):
    policy = f"{{pw: 1, gw: 1, j: 1, srs: {srs}, b_g2_msm: {b_g2}}}"
    result, _ = prove(kernels, tmp_path, policy=policy, partitions=1)
    assert result.exit_code == 0, result.error


def test_too_little_vram_fails_the_proof_and_nothing_else(kernels, tmp_path):
    result, gpu = prove(kernels, tmp_path, vram="17MiB")
    assert result.exit_code == 3
    assert result.document["oom"]["pool"] == "vram:0"
    assert not gpu.registered and gpu.live_bytes() == 0
    assert list((tmp_path / "out").glob("*.bin")) == []


@pytest.mark.slow
def test_a_thousand_constraints(kernels, tmp_path):
    result, _ = prove(kernels, tmp_path, fixture="chain1k", partitions=1)
    assert result.exit_code == 0, result.error


# ----------------------------------------------------------------- a template, witnesses of bits


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    """(path of a c-free key, witness) of the small template."""
    from cuzk.groth16.setup.development import setup_development
    from cuzk.groth16.template.system import TemplateSystem
    from tests.small_template import small_case

    system, witness = small_case()
    path = tmp_path_factory.mktemp("template") / "small.ckey"
    setup_development(TemplateSystem(system), path)
    return str(path), witness


def prove_template(kernels, tmp_path, template, policy=ALL_ON_GPU, witnesses=None, partitions=1, **changes):
    from cuzk.exec.run import Proving, bind_key, prove_with
    from cuzk.groth16.load import load_key

    key, witness = template
    scenario = scenario_of(tmp_path, "phase12", policy, partitions=partitions, **changes)
    gpu, device = device_of(kernels)
    proving = Proving(key, (), threads=2)
    bound = bind_key(scenario, load_key(key), witnesses or [witness], proving, idle_bytes=0, make_device=device)
    return prove_with(bound, tmp_path / "out"), gpu, bound


@pytest.mark.slow
@pytest.mark.parametrize("quotient", ["c-free", "bellman"])
def test_a_template_all_on_the_gpu(kernels, tmp_path, template, quotient):
    result, gpu, bound = prove_template(kernels, tmp_path, template, quotient=quotient)
    assert result.exit_code == 0, result.error
    assert result.document["measured"]["verified_partitions"] == 1
    policy = bound.scenario.policy
    assert (policy.matrices, policy.witness) == ("template", "bits")
    assert not gpu.registered and gpu.live_bytes() == 0
    assert "native" not in result.document["counts"]["deallocations"]  # nothing was split on the host


@pytest.mark.slow
def test_field_elements_for_a_template_become_bits_and_two_sets_share_a_gpu(kernels, tmp_path, template):
    values = template[1].expand_std()
    policy = ALL_ON_GPU.replace("pw: 1, gw: 1, j: 1", "pw: 2, gw: 2, j: 2, prestage: before-mutex")
    result, gpu, bound = prove_template(kernels, tmp_path, template, policy, [template[1], values], partitions=2)
    assert result.exit_code == 0, result.error
    assert result.document["measured"]["verified_partitions"] == 2
    assert bound.scenario.policy.witness == "bits"
    assert not gpu.registered and gpu.live_bytes() == 0


@pytest.mark.slow
@pytest.mark.parametrize("srs", ["pinned", "split", "mmap"])
def test_a_key_that_passes_by(kernels, tmp_path, template, srs):
    policy = ALL_ON_GPU.replace("pw: 1, gw: 1, j: 1", "pw: 2, gw: 2, j: 2").replace("srs: vram", f"srs: {srs}")
    result, gpu, _ = prove_template(kernels, tmp_path, template, policy, partitions=3, vram="60MiB")
    assert result.exit_code == 0, result.error
    assert result.document["measured"]["verified_partitions"] == 3
    assert not gpu.registered and gpu.live_bytes() == 0


@pytest.mark.slow
def test_the_same_blinding_gives_the_same_bytes_wherever_the_key_lies(kernels, tmp_path, template):
    from cuzk.exec.run import Proving, bind_key, prove_with
    from cuzk.groth16.load import load_key

    made = {}
    for srs in ("vram", "pinned", "split", "mmap"):
        scenario = scenario_of(tmp_path, "phase12", ALL_ON_GPU.replace("srs: vram", f"srs: {srs}"), vram="60MiB")
        proving = Proving(template[0], (), threads=2, insecure_seed=7)
        bound = bind_key(scenario, load_key(template[0]), [template[1]], proving, idle_bytes=0, make_device=device_of(kernels)[1])
        result = prove_with(bound, tmp_path / srs)
        assert result.exit_code == 0, result.error
        made[srs] = (tmp_path / srs / "proof-000.bin").read_bytes()
    assert len(set(made.values())) == 1


@pytest.mark.slow
@pytest.mark.parametrize("fails_at", [3, 40, 90])
def test_a_copy_that_fails_fails_its_proof_and_leaves_nothing(kernels, tmp_path, template, fails_at):
    """The key passes by, and the copy with that number (of the witness, of the key, of a sum) is refused."""
    from cuzk.exec.cuda import CudaProver
    from cuzk.exec.run import Proving, bind_key, prove_with
    from cuzk.gpu.faults import CudaError
    from cuzk.groth16.load import load_key

    gpu = QueuedDevice(kernels, fails_at, fails_at=fails_at, fault=CudaError("a test"))
    scenario = scenario_of(tmp_path, "phase12", ALL_ON_GPU.replace("srs: vram", "srs: pinned"), vram="60MiB")
    bound = bind_key(scenario, load_key(template[0]), [template[1]], Proving(template[0], (), threads=2), idle_bytes=0,
                 make_device=lambda *args: CudaProver(*args, open_gpu=lambda index: gpu))  # fmt: skip
    result = prove_with(bound, tmp_path / "out")
    assert (result.exit_code == 0) == (gpu.copies < fails_at)
    assert not gpu.registered and gpu.live_bytes() == 0


@pytest.mark.slow
def test_a_template_multiplied_on_the_gpu_and_split_on_the_host(kernels, tmp_path, template):
    policy = ALL_ON_GPU.replace("prep_msm: gpu", "prep_msm: cpu")
    result, gpu, _ = prove_template(kernels, tmp_path, template, policy)
    assert result.exit_code == 0, result.error
    assert gpu.live_bytes() == 0


def test_a_template_that_does_not_fit_fails_its_proof_and_leaves_nothing(kernels, tmp_path, template):
    result, gpu, _ = prove_template(kernels, tmp_path, template, vram="19MiB")
    assert result.exit_code == 3
    assert result.document["oom"]["pool"] == "vram:0"
    assert not gpu.registered and gpu.live_bytes() == 0


def test_a_template_wants_its_own_witness_on_the_gpu(kernels, tmp_path, template):
    from cuzk.errors import InputError
    from cuzk.exec.cuda import CudaProver
    from cuzk.groth16.assignments import Ready
    from cuzk.groth16.load import load_key

    device = CudaProver(load_key(template[0]), Ready([template[1].expand_std()]), "c-free", 0, open_gpu=EmulatedDevice)
    from cuzk.pipeline.program import bind as bind_scenario

    scenario = scenario_of(tmp_path, "phase12", ALL_ON_GPU)
    with pytest.raises(InputError, match="a template by a witness of bits, this one is of field elements"):
        device.open(bind_scenario(scenario))


@pytest.mark.parametrize("missing", ["matvec: gpu", "b_g2_msm: gpu"])
def test_a_split_on_the_gpu_needs_what_it_works_for_there(kernels, tmp_path, template, missing):
    from cuzk.errors import InputError

    policy = ALL_ON_GPU.replace(missing + ", ", "").replace(", " + missing, "")
    with pytest.raises(InputError, match="prep_msm: gpu needs all that it works for there too"):
        prove_template(kernels, tmp_path, template, policy)


def test_the_cpu_device_walks_the_same_pipeline(tmp_path, template):
    from cuzk.exec.run import Proving, bind_key, prove_with
    from cuzk.groth16.load import load_key

    policy = ALL_ON_GPU.replace("pw: 1, gw: 1", "pw: 2, gw: 2")
    scenario = scenario_of(tmp_path, "phase12", policy, partitions=2)
    bound = bind_key(scenario, load_key(template[0]), [template[1]], Proving("", (), threads=2), idle_bytes=0)
    result = prove_with(bound, tmp_path / "out")
    assert result.exit_code == 0, result.error
    assert result.document["measured"]["verified_partitions"] == 2


@pytest.mark.parametrize("tables", ["none", "pair-sums"])
def test_two_gpus_hold_the_key_once_each(kernels, tmp_path, template, tables):
    from cuzk.exec.cuda import CudaProver
    from cuzk.exec.run import Proving, bind_key
    from cuzk.groth16.load import load_key
    from cuzk.pipeline.program import bind as bind_scenario

    scenario = scenario_of(tmp_path, "phase12", ALL_ON_GPU.replace("}", f", key_tables: {tables}}}"))
    two = scenario.machine.model_copy(update={"gpus": scenario.machine.gpus * 2})
    scenario = scenario.model_copy(update={"machine": two})
    gpus = [EmulatedDevice(kernels), EmulatedDevice(kernels)]
    make = lambda *args: CudaProver(*args, open_gpu=gpus.__getitem__)  # noqa: E731
    bound = bind_key(scenario, load_key(template[0]), [template[1]], Proving("", ()), idle_bytes=0, make_device=make)
    bound.device.open(bind_scenario(bound.scenario))
    held = []
    for _ in gpus:  # a pool each asks for its residents
        for what in ("srs", "pce"):
            bound.device._reside(what)
        held.append([gpu.live_bytes() for gpu in gpus])
    assert held[0] == held[1] and held[0][0] == held[0][1]
    booked = bind_scenario(bound.scenario).residents
    bases = 2**17  # of the transforms
    assert held[0][0] <= sum(r.nbytes for r in booked if r.pool == "vram:0" and r.buffer != "context") + bases
    gpu = bound.device._gpus[0]
    lists = {name: bound.device.key.query(name, "c-free") for name in ("l", "a", "b_g1", "b_g2")}
    assert gpu.first_sum == ({name: len(query) for name, query in lists.items()} if tables == "pair-sums" else {})
    bound.device.close()
    assert [gpu.live_bytes() for gpu in gpus] == [0, 0]
