"""Every kernel compiles without a GPU, and needs no more registers and spills than the committed table says.

The table (resources.json) is rewritten with CUZK_RECORD_RESOURCES=1 in the environment; read the difference before
committing it.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from cuzk.exec.cuda import module

TABLE = Path(__file__).with_name("resources.json")
ROOT = module.kernel_root()
MODULES = sorted(str(p.relative_to(ROOT).with_suffix("")) for p in ROOT.glob("*/*.cu"))
ARCHITECTURES = ["sm_90", pytest.param("sm_80", marks=pytest.mark.slow), pytest.param("sm_120", marks=pytest.mark.slow)]


def parse(report: str) -> dict[str, dict[str, int]]:
    """Registers, spilled and stack bytes of each kernel, from ptxas -v; functions that kernels call count for their spills."""
    found: dict[str, dict[str, int]] = {}
    kernel = ""
    for line in report.splitlines():
        if match := re.search(r"Compiling entry function '(\w+)'", line):
            kernel = match[1]
            found[kernel] = {"registers": 0, "spill_bytes": 0, "stack_bytes": 0}
        elif kernel and (match := re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores", line)):
            found[kernel]["stack_bytes"] = max(found[kernel]["stack_bytes"], int(match[1]))
            found[kernel]["spill_bytes"] += int(match[2])
        elif kernel and (match := re.search(r"Used (\d+) registers", line)):
            found[kernel]["registers"] = int(match[1])
    return found


def compiler() -> tuple[str, str] | None:
    """("nvcc", version) or ("nvrtc", version), None if there is neither."""
    if shutil.which("nvcc"):
        text = subprocess.run(["nvcc", "--version"], capture_output=True, text=True, check=True).stdout
        return "nvcc", re.search(r"V([\d.]+)", text)[1]
    try:
        from cuda.core import Program  # noqa: F401
        from cuda.core import __version__ as version
    except ImportError:
        return None
    return "nvrtc", version


def compile_report(name: str, arch: str, directory: Path) -> str:
    if shutil.which("nvcc"):
        return module.compile_nvcc(name, arch, directory / f"{name.replace('/', '-')}.{arch}.cubin")
    from io import StringIO

    from cuda.core import Program, ProgramOptions

    log, source = StringIO(), ROOT / f"{name}.cu"
    options = ProgramOptions(
        arch=arch, std="c++17", include_path=[str(source.parent), str(ROOT)], ptxas_options=["-v"], name=source.name
    )
    Program(source.read_text(), "c++", options).compile("cubin", logs=log)
    return log.getvalue()


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_every_kernel_compiles_within_its_resources(arch, tmp_path):
    found_compiler = compiler()
    if found_compiler is None:
        pytest.skip("neither nvcc nor NVRTC (pip install cuda-core nvidia-cuda-nvrtc) is here")
    with ThreadPoolExecutor(2) as pool:
        reports = list(pool.map(lambda name: compile_report(name, arch, tmp_path), MODULES))
    measured = {name: parse(report) for name, report in zip(MODULES, reports, strict=True)}
    assert all(measured.values()), "a module without kernels"
    recorded = json.loads(TABLE.read_text()) if TABLE.exists() else {}
    if os.environ.get("CUZK_RECORD_RESOURCES") == "1":
        recorded[arch] = {"compiler": " ".join(found_compiler), "modules": measured}
        TABLE.write_text(json.dumps(recorded, indent=1, sort_keys=True) + "\n")
        return
    # Another compiler allocates a little differently; what must not happen anywhere is a kernel that spills or grows much.
    slack = 1.0 if recorded[arch]["compiler"] == " ".join(found_compiler) else 1.25
    for name, kernels in measured.items():
        for kernel, now in kernels.items():
            then = recorded[arch]["modules"].get(name, {}).get(kernel)
            assert then is not None, f"{name}: {kernel} is not in {TABLE.name}: record it"
            for what, value in now.items():
                assert value <= then[what] * slack + (64 if slack > 1 else 0), f"{kernel}: {what} {then[what]} -> {value}"
