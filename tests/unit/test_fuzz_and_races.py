"""The fuzzers' targets start: every seed is read, and mutations of it give valid objects or errors of the user's."""

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fuzz.readers import TARGETS, attempt
from tests.fuzz.seeds import seeds

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def start_from():
    return seeds()


@pytest.mark.parametrize("target", TARGETS)
def test_a_target_stands_a_hundred_mutations(start_from, tmp_path, target):
    path, draw = tmp_path / "input", random.Random(os.urandom(8))
    read = 0
    for seed in start_from[target]:
        path.write_bytes(seed)
        read += attempt(target, str(path))
        for _ in range(100):
            data = bytearray(seed)
            for _ in range(draw.randint(1, 4)):
                at = draw.randrange(len(data)) if data else 0
                way = draw.randrange(4)
                if way == 0:
                    data[at : at + 1] = bytes([draw.randrange(256)])
                elif way == 1:
                    del data[at : at + draw.randint(1, 32)]
                elif way == 2:
                    data[at:at] = data[at : at + draw.randint(1, 32)]
                else:
                    data[at : at + 8] = draw.choice((0, 1, 2**31, 2**32 - 1, 2**63, 2**64 - 1)).to_bytes(8, "little")
            path.write_bytes(data)
            attempt(target, str(path))
    assert read >= 1, "no seed of this target is valid"


@pytest.mark.slow
@pytest.mark.parametrize("command", (["tests.races", "--rounds", "2"], ["tests.fuzz", "--runs", "2000"]))
def test_the_commands_run(command):
    done = subprocess.run([sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
