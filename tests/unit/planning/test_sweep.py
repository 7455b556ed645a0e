"""A sweep: each row the single run's, resumable, interruptible, the same on every backend, in every format."""

import csv
import json
import re
from pathlib import Path

import pytest

from cuzk.cli.main import main
from cuzk.errors import InputError, ScenarioError
from cuzk.model.scenario import ScenarioFile, load_scenario
from cuzk.planning.backends import Fork, backend
from cuzk.planning.cache import Cache
from cuzk.planning.grid import parse_axis
from cuzk.planning.row import FIGURES, invalid, simulated
from cuzk.planning.sweep import sweep

SCENARIO = str(Path(__file__).parents[3] / "scenarios" / "pw12.yaml")
QUICK = ["workload.proofs=2"]
AXES = [parse_axis("policy.pw=2,4"), parse_axis("machine.ram=120GiB,755GiB")]


def run(backend_=None, cache=None, axes=AXES, **more):
    return sweep(ScenarioFile(SCENARIO), axes, backend_ or Fork(2), overrides=QUICK, cache_path=cache, **more)


def test_each_row_is_the_single_run():
    found = run()
    assert [setting["policy.pw"] for setting, _ in found.rows] == ["2", "2", "4", "4"]
    for setting, row in found.rows:
        assert row == simulated(load_scenario(SCENARIO, [*QUICK, *(f"{k}={v}" for k, v in setting.items())]))
    assert [row["verdict"] for _, row in found.rows] == ["oom", "fits", "oom", "fits"]


def test_every_figure_is_named_and_in_some_row():
    rows = [simulated(load_scenario(SCENARIO, [*QUICK, "policy.pw=4"]), seeds=2), invalid("a reason")]
    assert {name for row in rows for name in row} == set(FIGURES)


def test_a_second_run_makes_only_what_is_new(tmp_path):
    cache = tmp_path / "deep" / "rows.jsonl"
    assert run(cache=cache).made == 4
    again = run(cache=cache, axes=[parse_axis("policy.pw=2,4,6"), AXES[1]])
    assert again.made == 2 and len(again.rows) == 6
    assert run(cache=cache, axes=[parse_axis("policy.pw=4")], seeds=2).made == 1, "other seeds are other rows"


def test_an_interrupt_keeps_what_is_done(tmp_path, monkeypatch):
    cache = tmp_path / "rows.jsonl"

    class Interrupted(Fork):
        calls = 0

        def rows(self, scenarios, seeds):
            self.calls += 1
            if self.calls == 2:
                raise KeyboardInterrupt
            return super().rows(scenarios, seeds)

    monkeypatch.setattr("cuzk.planning.sweep.BLOCK", 1)
    with pytest.raises(KeyboardInterrupt):
        run(Interrupted(2), cache)
    assert len(cache.read_text().splitlines()) == 2
    assert run(cache=cache).made == 2


def test_a_line_that_was_cut_costs_one_row(tmp_path):
    cache = tmp_path / "rows.jsonl"
    run(cache=cache)
    cache.write_text(cache.read_text()[:-20])
    assert run(cache=cache).made == 1
    with Cache(cache) as whole:
        assert len(whole.rows) == 4


def test_options_that_do_not_go_together_are_rows_of_their_own():
    found = run(axes=[parse_axis("policy.key_tables=none,pair-sums"), parse_axis("policy.srs=pinned,vram")])
    verdicts = {tuple(setting.values()): row["verdict"] for setting, row in found.rows}
    assert verdicts[("pair-sums", "pinned")] == "invalid" and verdicts[("none", "pinned")] != "invalid"


def test_keys_that_are_none():
    with pytest.raises(ScenarioError, match=r"policy\.pww: unknown key; did you mean 'pw'"):
        run(axes=[parse_axis("policy.pww=1,2")])
    with pytest.raises(InputError, match="no backend 'spark'"), backend("spark"):
        pass


@pytest.mark.parametrize("name", ["loky", "dask", pytest.param("ray", marks=pytest.mark.slow)])
@pytest.mark.filterwarnings("ignore")
def test_every_backend_gives_the_same_rows(name):
    for module in {"loky": ["joblib"], "dask": ["joblib", "distributed"], "ray": ["joblib", "ray"]}[name]:
        pytest.importorskip(module)
    with backend(name, 2) as workers:
        assert run(workers).rows == run().rows


def test_the_command_writes_every_format(tmp_path, capsys):
    common = ["sweep", SCENARIO, "--set", "workload.proofs=2", "--over", "policy.pw=2,4", "--over", "policy.gw=1-2"]
    cache = ["--cache", str(tmp_path / "rows.jsonl")]
    names = [str(tmp_path / f"t.{ending}") for ending in ("csv", "json")]
    assert main([*common, *cache, "-o", names[0], "--html", str(tmp_path / "t.html")]) == 0
    assert main([*common, *cache, "-o", names[1]]) == 0
    assert "4 settings" in capsys.readouterr().out
    with open(names[0]) as file:
        rows = list(csv.DictReader(file))
    document = json.loads(Path(names[1]).read_text())
    assert document["simulated"] == 0 and [str(r["s_per_proof"]) for r in document["rows"]] == [r["s_per_proof"] for r in rows]
    parquet = pytest.importorskip("pyarrow.parquet")
    assert main([*common, *cache, "-o", str(tmp_path / "t.parquet")]) == 0
    assert parquet.read_table(tmp_path / "t.parquet").to_pylist() == document["rows"]


def test_the_page_is_whole_and_offline(tmp_path):
    page = tmp_path / "t.html"
    arguments = ["--over", "policy.pw=2,4", "--set", "workload.proofs=2", "--no-cache", "--html", str(page)]
    assert main(["sweep", SCENARIO, *arguments]) == 0
    text = page.read_text()
    assert 'name="viewport"' in text and "@media print" in text
    assert not re.search(r"(src|href)\s*=\s*[\"']https?:", text)
    data = json.loads(re.search(r"const DATA=(.*?);\n", text)[1])
    assert data["axes"] == {"policy.pw": ["2", "4"]} and len(data["rows"]) == 2


@pytest.mark.parametrize("arguments, code", [
    (["--over", "policy.pw=1", "-o", "x.txt"], 2), (["--over", "policy.pw=1", "--cache", "a", "--no-cache"], 2),
    (["--over", "policy.pw=x"], 2), (["--over", "policy.pw=1", "--address", "tcp://h:1"], 2)])  # fmt: skip
def test_bad_input(arguments, code, capsys):
    extra = [] if "--cache" in arguments else ["--no-cache"]
    assert main(["sweep", SCENARIO, *arguments, *extra]) == code
    assert "Traceback" not in capsys.readouterr().err
