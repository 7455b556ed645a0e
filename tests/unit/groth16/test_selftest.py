"""The self-test passes here, and finds a library that is wrong."""

import json

import numpy as np
import pytest

from cuzk import native
from cuzk.cli.main import main
from cuzk.groth16.selftest import run_host


def test_this_machine_is_right():
    report = run_host(30_000)
    assert report.wrong == [] and sum(report.compared[f"fr_{op}"] for op in ("mul", "add", "sub")) >= 30_000


@pytest.mark.parametrize("name", ("fr_mul", "fr_sub", "fr_inv", "g1_add", "g2_add", "g1_compress", "msm_g1", "ntt", "g2_neg"))
def test_a_wrong_operation_is_named(monkeypatch, name):
    real = getattr(native, name)

    def wrong(*arguments, **options):
        out = real(*arguments, **options)
        flat = out.reshape(-1)
        flat[len(flat) // 2] ^= 1
        return out

    if name in ("msm_g1", "g1_add", "g2_add", "g2_neg"):  # another point, so that it can be read at all

        def wrong(*arguments, **options):
            out = np.array(real(*arguments, **options))
            out[len(out) // 2] = native.g1_generator()[0] if out.shape[1] == 12 else native.g2_generator()[0]
            return out

    monkeypatch.setattr(native, name, wrong)
    assert any(name.split("_")[-1 if name.startswith("msm") else 0] in line for line in run_host(3000).wrong)


def test_the_command_line_says_how_many(capsys):
    assert main(["doctor", "--selftest", "--operations", "3000", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["wrong"] == [] and found["places"][0]["compared"]["g1_add"] > 100
    assert main(["doctor", "--selftest", "--operations", "0"]) == 2
