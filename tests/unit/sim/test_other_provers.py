"""Pipelines that a user wrote: those that work run, those that do not end with one line that names the place."""

import pytest

from cuzk.cli.main import main
from cuzk.errors import InputError
from cuzk.model.scenario import load_scenario
from cuzk.sim import simulate

CALIBRATION = """\
calibration:
  name: mine
  software: another prover
  machine: zen4-96c-755g-5070ti
  costs:
    solve: {seconds: 2s, provenance: "assumed: a test"}
    fft: {seconds: 1s, gpu: 1, provenance: "assumed: a test"}
"""
SCENARIO = """\
version: 1
machine: machines/zen4-96c-755g-5070ti.yaml
circuit: circuits/porep-32g.yaml
calibration: c.yaml
policy: {pw: 3, gw: 2, j: 4}
workload: {proofs: 3}
pipeline: p.yaml
"""
TASK = "{start: partition, steps: [%s]}"
POOL = "{start: pool, steps: [%s]}"
SPAWNED = "{start: spawned, steps: [%s]}"


def scenario(tmp_path, pipeline, *settings):
    (tmp_path / "c.yaml").write_text(CALIBRATION)
    (tmp_path / "s.yaml").write_text(SCENARIO)
    (tmp_path / "p.yaml").write_text("name: mine\n" + pipeline)
    return load_scenario(tmp_path / "s.yaml", settings)


def workers(shared="", **steps):
    return f"buffers: {{}}\n{shared}\nworkers:\n" + "".join(f"  {name}: {text}\n" for name, text in steps.items())


@pytest.mark.parametrize("gpus", [1, 2, 8])
def test_own_names_streams_locks_and_devices(tmp_path, gpus):
    pipeline = """\
buffers:
  wit: {pool: ram, size: 32*aux}
  dev: {pool: "vram:$gpu", size: 1GiB}
locks: {card: {}}
channels: {q: {capacity: 2}}
permits: {slots: {count: pw}}
workers:
  solver: {start: partition, steps: [{acquire: slots}, {alloc: wit}, {run: solve}, {put: q}, {release: slots}]}
  card_worker:
    start: pool
    per: gpu
    count: gw
    steps:
      [{get: q}, {acquire: card}, {alloc: dev}, {run: fft, on: s1}, {record: e1, on: s1}, {stream_wait: e1, on: s2},
       {run: fft, on: s2}, {record: e2, on: s2}, {wait: e2}, {free: dev}, {release: card}, {free: wit}, {complete: partition}]
"""
    result = simulate(scenario(tmp_path, pipeline, f"machine.gpus.0.count={gpus}"))
    assert (result.verdict, result.completions) == ("fits", 30)
    assert all(result.peaks[f"vram:{gpu}"].live_bytes == 1 << 30 for gpu in range(gpus))


def test_a_prover_without_any_gpu(tmp_path):
    result = simulate(scenario(tmp_path, workers(a=TASK % "{run: solve}, {complete: partition}"), "machine.gpus=[]"))
    assert result.verdict == "fits" and result.completions == 30


@pytest.mark.parametrize(
    ("pipeline", "message"),
    [
        (workers("locks: {l: {per: host}, m: {per: host}}",
                 a=TASK % "{acquire: l}, {run: solve}, {acquire: m}, {release: m}, {release: l}, {complete: partition}",
                 b=TASK % "{acquire: m}, {run: solve}, {acquire: l}, {release: l}, {release: m}, {complete: partition}"),
         r"deadlocks at 2\.000 s: a waits for l \(29 sets\); b waits for l; b waits for m \(29 sets\); a waits for m$"),
        (workers("channels: {q: {capacity: 2}}", a=TASK % "{run: solve}, {put: q}"),
         r"deadlocks .* a waits for q \(28 sets\); 2 sets lie in q, and nobody takes them$"),
        (workers("channels: {q: {}}", a=TASK % "{run: solve}, {put: q}"), r"deadlocks .*: 30 sets lie in q, and nobody"),
        (workers(a=TASK % "{join: ghost}, {complete: partition}"), r"deadlocks .* a waits for ghost \(30 sets\)"),
        (workers(a=TASK % "{spawn: b, as: h}, {join: h}, {complete: partition}",
                 b="{start: spawned, limit: 1, steps: [{join: k}]}"), r"deadlocks .* b waits for limit:b"),
        (workers(a=TASK % "{spawn: b}, {complete: partition}", b=SPAWNED % "{spawn: b}"),
         r"p\.yaml:\d+:\d+: pipeline\.workers\.b: .* in a circle, so a set never ends: b → b$"),
        (workers("channels: {q: {}}", a=TASK % "{put: q}", b=POOL % "{get: q}, {run: solve}, {put: q}"), r"circle.*b → b$"),
        (workers(**{f"w{i}": SPAWNED % f"{{spawn: w{i + 1}}}, {{spawn: w{i + 1}}}" for i in range(40)},
                 w40=SPAWNED % "{run: solve}", a=TASK % "{spawn: w0}, {complete: partition}"), r"more than 10,000 walks"),
        (workers(a=TASK % "{run: solve}"), r"3 of 3 proofs never come out: 30 sets end without `complete`$"),
        (workers(a=TASK % "{complete: partition}, {complete: partition}"), r"p\.yaml:\d+:\d+: .* completes a second time"),
        ("buffers: {}\nworkers: {}\n", r"never come out: no worker starts with a partition or a proof$"),
        (workers("channels: {q: {capacity: 0}}", a=TASK % "{put: q}"),
         r"p\.yaml:3:\d+: pipeline\.channels\.q\.capacity: must be 1"),
        (workers("channels: {q: {}}", a=TASK % "{put: q}", b="{start: pool, count: 10**12, steps: [{get: q}]}"),
         r"p\.yaml:\d+:\d+: pipeline\.workers\.b\.count: must be 0 to 65,536, not 1,000,000,000,000"),
        (workers(a=TASK % "{run: sovle}, {complete: partition}"),
         r"p\.yaml:\d+:\d+: pipeline\.workers\.a\.steps\.0: .* no cost of 'sovle'; did you mean 'solve'"),
        (workers(a=TASK % "{trim: nopool}, {complete: partition}"), r"p\.yaml:\d+:\d+: .*steps\.0: there is no pool 'nopool'"),
    ],
)  # fmt: skip
def test_what_cannot_run_ends_with_one_line(tmp_path, pipeline, message):
    with pytest.raises(InputError, match=message) as error:
        simulate(scenario(tmp_path, pipeline))
    assert "\n" not in str(error.value)


def test_a_lock_of_each_gpu_on_a_machine_without_one(tmp_path):
    pipeline = workers("locks: {m: {per: gpu}}", a=TASK % "{acquire: m}, {run: solve}, {release: m}, {complete: partition}")
    assert simulate(scenario(tmp_path, pipeline)).verdict == "fits"
    with pytest.raises(InputError, match=r"p\.yaml:3:\d+: pipeline\.locks\.m: a lock of each GPU, and the machine has none"):
        simulate(scenario(tmp_path, pipeline, "machine.gpus=[]"))


def test_check_reports_faults_of_names_and_sim_notes_what_check_says(tmp_path, capsys):
    scenario(tmp_path, workers(a=TASK % "{alloc: ww}, {complete: partition}"))
    assert main(["check", str(tmp_path / "s.yaml")]) == 2
    assert "there is no buffer 'ww'" in capsys.readouterr().err
    pipeline = 'buffers: {d: {pool: "vram:$gpu", size: 1GiB}}\nworkers:\n  a: ' + TASK % (
        "{alloc: d}, {run: fft, on: s, uses: [d]}, {free: d}, {record: e, on: s}, {wait: e}, {complete: partition}")  # fmt: skip
    scenario(tmp_path, pipeline, "policy.j=1")
    main(["sim", str(tmp_path / "s.yaml"), "--no-fix", "--set", "circuit.partitions=1", "--set", "policy.j=1"])
    assert "cuzk check:" in capsys.readouterr().out
