"""From a run to its log, and from the log to a calibration and a comparison of that run."""

import json

import pytest

from cuzk.accuracy.log_loop import fit_log_in_scenario
from cuzk.cli.main import main
from cuzk.errors import InputError
from cuzk.model.formula import Formula
from cuzk.model.scenario import load_scenario
from cuzk.sim import simulate
from cuzk.trace.daemon_log import events_of, read_log

from .logs import write_log

SETTINGS = ["machine.cores=32", "policy.pw=6", "policy.j=3", "workload.proofs=4", "machine.name=other-32c"]


def scenario(*more):
    return load_scenario("scenarios/phase12-pw10.yaml", [*SETTINGS, *more])


def slower(given, **factors):
    """The scenario with some laws scaled: a machine that the base calibration does not know."""
    costs = dict(given.calibration.costs)
    for law, factor in factors.items():
        costs[law] = costs[law].model_copy(update={"seconds": Formula(f"{factor} * ({costs[law].seconds})")})
    return given.model_copy(update={"calibration": given.calibration.model_copy(update={"costs": costs})})


def test_a_log_of_a_loaded_machine_predicts_its_own_run(tmp_path):
    true = slower(scenario(), witness=1.3, matvec=1.3, ntt_h=0.8, msm_h=0.8, batch_add=1.2, prep_msm=0.9)
    measured = write_log(tmp_path / "daemon.log", true, colours=True)
    found = fit_log_in_scenario(read_log(tmp_path / "daemon.log"), scenario().calibration, scenario())
    again = simulate(scenario().model_copy(update={"calibration": found.calibration}))
    assert again.s_per_proof == pytest.approx(measured, rel=0.03)
    assert found.calibration.machine == "other-32c"
    assert found.calibration.law("batch_add").seconds.text.startswith("1.")


def test_import_and_compare_find_steps_in_common(tmp_path, capsys):
    write_log(tmp_path / "daemon.log", scenario())
    assert main(["import", str(tmp_path / "daemon.log"), "-o", str(tmp_path / "measured.jsonl")]) == 0
    sets = [part for setting in SETTINGS for part in ("--set", setting)]
    assert main(["sim", "scenarios/phase12-pw10.yaml", *sets, "--trace", str(tmp_path / "predicted.jsonl")]) == 0
    capsys.readouterr()
    assert main(["compare", str(tmp_path / "predicted.jsonl"), str(tmp_path / "measured.jsonl"), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    errors = {row["name"]: row["error"] for row in document["steps"] if row["error"] is not None}
    assert {"synthesis", "gpu_call", "ntt_msm_h", "batch_add", "tail_msm", "prep_msm", "b_g2_msm"} <= errors.keys()
    assert all(abs(error) < 0.01 for error in errors.values()), errors
    assert document["throughput"]["s_per_proof"]["error"] == pytest.approx(0, abs=0.05)


def test_jobs_with_blanks_and_proofs_that_never_end(tmp_path):
    path = tmp_path / "daemon.log"
    path.write_text(
        "TIMELINE,0,SYNTH_START,wdpost-1-2-[1 2 3],kind=window-post\nTIMELINE,9,GPU_START,wdpost-1-2-[1 2 3],worker=0\n"
        "TIMELINE,20,GPU_END,wdpost-1-2-[1 2 3],worker=0,gpu_ms=11\nTIMELINE,1,SYNTH_START,other,partition=0\n"
        "TIMELINE,2,GPU_START,other,worker=0,partition=0\nTIMELINE,3,GPU_END,other,worker=0,partition=0,gpu_ms=1\n"
        "TIMELINE,4,SYNTH_START,other,partition=1\n"
    )
    done = [(e.proof, e.t) for e in events_of(read_log(path)) if e.kind == "complete" and e.partition == -1]
    assert done == [(0, 0.02)]


def test_the_structured_log_alone_gives_times(tmp_path):
    stamp = "\x1b[2m2026-01-02T03:04:{:06.3f}Z\x1b[0m \x1b[32m INFO\x1b[0m cuzk_core::engine:"
    path = tmp_path / "daemon.log"
    path.write_text(
        f"{stamp.format(40)} partition synthesis complete, pushing to GPU queue job_id=a partition=0 synth_ms=30000\n"
        f"{stamp.format(44)} partition GPU prove complete job_id=a partition=Some(0) gpu_ms=3000 filled=1\n"
        f"{stamp.format(45)} SRS loaded successfully circuit_id=porep-32g elapsed_ms=24100 budget_used_gib=44\n"
        f"{stamp.format(46)} memory budget initialized total_budget_gib=250\n"
    )
    log = read_log(path)
    assert [(round(m.t_s, 3), m.event, m.partition) for m in log.moments] == [
        (0.0, "SYNTH_START", 0), (30.0, "SYNTH_END", 0), (31.0, "GPU_START", 0), (34.0, "GPU_END", 0)]  # fmt: skip
    assert log.messages.seconds == {"load_srs": [24.1]} and log.messages.budget_gib == 250


def test_a_log_of_another_circuit_is_refused(tmp_path):
    path = tmp_path / "daemon.log"
    path.write_text("".join(f"CUZK_TIMING: batch_add_ms={ms}\n" for ms in (1, 1, 1, 1)))
    with pytest.raises(InputError, match="a log of another circuit"):
        fit_log_in_scenario(read_log(path), scenario().calibration, scenario())


def test_a_misspelt_option_is_an_error_with_its_name(tmp_path, capsys):
    path = tmp_path / "daemon.log"
    path.write_text("CUZK_TIMING: prep_msm_ms=1900\n" * 4)
    assert main(["calibrate", "--log", str(path), "--set", "gtt=32"]) == 2
    assert "--set gtt=32: policy.gtt: unknown key; did you mean 'gt'?" in capsys.readouterr().err
