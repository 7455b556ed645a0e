"""Every kernel file compiles for the architectures we name, and no kernel needs more registers or spills more than recorded.

A machine with nvcc but no GPU thus catches a broken kernel. After a change that is meant: CUZK_RECORD_RESOURCES=1 pytest <this
file> rewrites the table `resources.json` (per module and kernel: registers, bytes spilled to memory).
"""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path

import pytest

from cuzk.gpu import msm_plan
from cuzk.gpu.module import compile_nvcc, modules

TABLE = Path(__file__).with_name("resources.json")
MODULES = modules()


def parse(report: str) -> dict[str, dict[str, int]]:
    """Kernel -> registers and spilled bytes, from ptxas' report."""
    found: dict[str, dict[str, int]] = {}
    name = None
    for line in report.splitlines():
        if m := re.search(r"Compiling entry function '(\w+)'", line):
            name = m.group(1)
            found[name] = {"registers": 0, "spill_bytes": 0}
        elif name and (m := re.search(r"(\d+) bytes spill stores, (\d+) bytes spill loads", line)):
            found[name]["spill_bytes"] = int(m.group(1)) + int(m.group(2))
        elif name and (m := re.search(r"Used (\d+) registers", line)):
            found[name]["registers"] = int(m.group(1))
    return found


def compiled(module: str, arch: str, directory: Path) -> dict[str, dict[str, int]]:
    if shutil.which("nvcc") is None:
        pytest.skip("nvcc is needed to compile the kernels")
    return parse(compile_nvcc(module, arch, directory / "out.cubin"))


@pytest.mark.parametrize("module", MODULES)
def test_sm_90(module, tmp_path):
    found = compiled(module, "sm_90", tmp_path)
    assert found, "ptxas reported no kernel"
    table = json.loads(TABLE.read_text()) if TABLE.exists() else {}
    if os.environ.get("CUZK_RECORD_RESOURCES"):
        table = {m: table[m] for m in MODULES if m in table} | {module: found}
        TABLE.write_text(json.dumps(dict(sorted(table.items())), indent=1) + "\n")
        return
    assert set(found) == set(table.get(module, {})), "kernels came or went: record the table anew"
    for kernel, needs in found.items():
        recorded = table[module][kernel]
        assert needs["registers"] <= recorded["registers"], kernel
        assert needs["spill_bytes"] <= recorded["spill_bytes"], kernel


@pytest.mark.slow
@pytest.mark.parametrize("arch", ["sm_80", "sm_86", "sm_89", "sm_100", "sm_120"])
@pytest.mark.parametrize("module", MODULES)
def test_other_architectures(module, arch, tmp_path):
    assert compiled(module, arch, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("arch", ["sm_80", "sm_89", "sm_120"])
def test_the_sort_fits_the_shared_memory_of_small_cards(arch, tmp_path):
    """99 KiB a block are what sm_86, sm_89 and sm_120 have; what a kernel declares itself comes on top of what it asks for."""
    if shutil.which("nvcc") is None:
        pytest.skip("nvcc is needed to compile the kernels")
    asked = {
        "msm_digits": 4 * msm_plan.MAX_PARTITION_COUNTERS,
        "msm_partition": 8 * msm_plan.TILE + 8 * 2048,
        "msm_place": 8 * msm_plan.TILE + (8 << msm_plan.MAX_DIGIT_BITS // 2),
    }
    report, name, own = compile_nvcc("msm/index", arch, tmp_path / "out.cubin"), None, dict.fromkeys(asked, 0)
    for line in report.splitlines():
        if m := re.search(r"Compiling entry function '(\w+)'", line):
            name = m.group(1)
        elif name in own and (m := re.search(r"(\d+) bytes smem", line)):
            own[name] = int(m.group(1))
    for kernel, nbytes in asked.items():
        assert own[kernel] + nbytes <= 99 << 10, kernel
