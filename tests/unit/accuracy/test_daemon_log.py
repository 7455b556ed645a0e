"""A daemon's log: what its lines say, in any order, cut or run together."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from cuzk.accuracy.library import load_calibration
from cuzk.accuracy.log_laws import fit_log
from cuzk.errors import InputError
from cuzk.trace.daemon_log import events_of, intervals, mean_overlap, read_log
from cuzk.trace.spans import spans

LINES = [
    "2026-05-01T10:00:00Z INFO CUZK_TIMING: prep_msm_ms=1900",
    "CUZK_TIMING: prep_msm_ms=1950",
    "CUZK_TIMING: prep_msm_ms: 2000",
    "CUZK_TIMING: gpu_tid=0 ntt_msm_h_ms=690 barrier_wait_ms=1100 batch_add_ms=640 tail_msm_ms=80 gpu_total_ms=2600",
    "CUZK_TIMING: gpu_tid=1 ntt_msm_h_ms=700 barrier_wait_ms=1200 batch_add_ms=650 tail_msm_ms=84 gpu_total_ms=2700",
    "CUZK_TIMING: gpu_tid=0 ntt_msm_h_ms=710 barrier_wait_ms=1150 batch_add_ms=660 tail_msm_ms=88 gpu_total_ms=2650",
    "CUZK_TIMING: b_g2_msm_ms=4000 num_circuits=10",
    "TIMELINE,1000,SYNTH_START,job-a,partition=0",
    "TIMELINE,1500,SYNTH_START,job-a,partition=1",
    "TIMELINE,31000,SYNTH_END,job-a,partition=0",
    "TIMELINE,31500,SYNTH_END,job-a,partition=1",
    "TIMELINE,32000,GPU_START,job-a,partition=0",
    "TIMELINE,35000,GPU_END,job-a,partition=0",
]


def log(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "daemon.log"
    file.write_text(text, encoding="utf-8")
    return file


def test_order_and_other_lines_do_not_matter(tmp_path: Path) -> None:
    shuffled = [*LINES, "a line of something else", ""]
    random.Random(7).shuffle(shuffled)
    plain = read_log(log(tmp_path, "\n".join(LINES) + "\n"))
    mixed = read_log(log(tmp_path, "\n".join(shuffled) + "\n"))
    assert {k: sorted(v) for k, v in plain.seconds.items()} == {k: sorted(v) for k, v in mixed.seconds.items()}
    assert plain.moments == mixed.moments and mixed.dropped["line of something else"] == 1
    assert sorted(plain.seconds["prep_msm"]) == [1.9, 1.95, 2.0] and plain.seconds["b_g2_msm"] == [0.4]


def test_records_run_together_and_cut(tmp_path: Path) -> None:
    together = "xCUZK_TIMING: prep_msm_ms=1900CUZK_TIMING: batch_add_ms=650 TIMELINE,5,SYNTH_START,j,0\n"
    cut = "CUZK_TIMING: tail_msm_\nTIMELINE,12\nCUZK_TIMING: prep_msm_ms=-3\nCUZK_TIMING: prep_msm_ms=19"
    found = read_log(log(tmp_path, together + cut))
    assert found.seconds == {"prep_msm": [1.9], "batch_add": [0.65]}, "the last number of a file may lack digits"
    assert [(m.t_s, m.event, m.partition) for m in found.moments] == [(0.005, "SYNTH_START", 0)]
    assert sum(found.dropped.values()) == 4


def test_nothing_usable(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no usable CUZK_TIMING or TIMELINE line in 2 lines"):
        read_log(log(tmp_path, "hello\nCUZK_TIMING: \n"))


def test_overlap_counts_from_inside(tmp_path: Path) -> None:
    spans_ = intervals(read_log(log(tmp_path, "\n".join(LINES) + "\n")).moments, "SYNTH_START", "SYNTH_END")
    assert [end - start for *_, start, end in spans_] == [30.0, 30.0]
    assert mean_overlap(spans_) == pytest.approx((30 + 29.5) / 30)
    assert mean_overlap([("a", 0, 0.0, 1.0)]) == 1.0


def test_the_calibration_takes_the_medians(tmp_path: Path) -> None:
    found = fit_log(read_log(log(tmp_path, "\n".join(LINES) + "\n")), load_calibration("reference-documents"))
    assert found.taken["prep_msm"][1] == pytest.approx(1.95) and found.taken["batch_add"][1] == pytest.approx(0.65)
    assert found.taken["ntt_h"][1] + found.taken["msm_h"][1] == pytest.approx(0.70)
    assert found.calibration.law("prep_msm").origin("seconds").source == "measured"
    assert found.calibration.law("epilogue") == load_calibration("reference-documents").law("epilogue")


def test_a_number_that_lost_digits_is_left_out(tmp_path: Path) -> None:
    text = "".join(f"CUZK_TIMING: prep_msm_ms={v}\n" for v in (1900, 1950, 19, 2000, 19001950))
    found = fit_log(read_log(log(tmp_path, text)), load_calibration("reference-documents"))
    assert found.taken["prep_msm"][:2] == (3, pytest.approx(1.95)) and "2 of 5" in found.notes[0]


def test_the_timeline_is_a_trace(tmp_path: Path) -> None:
    events = events_of(read_log(log(tmp_path, "\n".join(LINES) + "\n")))
    found = {(s.name, s.partition): (s.start, s.end) for s in spans(events)}
    assert found == {("synthesis", 0): (0.0, 30.0), ("synthesis", 1): (0.5, 30.5), ("gpu_call", 0): (31.0, 34.0)}
