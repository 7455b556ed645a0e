"""Finds, compiles and loads the kernels.

A kernel module is one `.cu` file under `kernels/`. It is compiled for the device at hand, by nvcc where that is installed and by
NVRTC otherwise, and kept as a cubin in a cache directory under a name that contains a hash of its sources and the
architecture: a changed header never meets a stale binary.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path

from cuzk.errors import CuzkError, HardwareMissing

INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)
NVCC_OPTIONS = ("-std=c++17", "-lineinfo")
NVRTC_OPTIONS = ("--std=c++17", "--generate-line-info")


def kernel_root() -> Path:
    """The directory `kernels/`: beside the package in a source tree, inside it in a wheel."""
    package = Path(__file__).resolve().parents[1]
    for candidate in (package / "kernels", package.parent / "kernels"):
        if (candidate / "ff" / "params.hpp").exists():
            return candidate
    raise CuzkError(f"the kernel sources are missing: neither {package / 'kernels'} nor {package.parent / 'kernels'}")


def sources(name: str) -> list[Path]:
    """`kernels/<name>.cu` and every file that it includes, directly or not."""
    waiting, found = [kernel_root() / f"{name}.cu"], {}
    while waiting:
        path = waiting.pop().resolve()
        if path in found:
            continue
        found[path] = path.read_text()
        included = [path.parent / match for match in INCLUDE.findall(found[path])]
        waiting += [p if p.exists() else kernel_root() / p.relative_to(path.parent) for p in included]
    return sorted(found)


@lru_cache(maxsize=64)
def source_digest(name: str) -> str:
    """A hash over all sources of a module and the compiler's options."""
    digest = hashlib.sha256(" ".join(NVCC_OPTIONS).encode())
    for path in sources(name):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def cache_dir() -> Path:
    """The folder of compiled kernels: `$CUZK_KERNEL_CACHE`, else `$XDG_CACHE_HOME/cuzk`, else `~/.cache/cuzk`."""
    if named := os.environ.get("CUZK_KERNEL_CACHE"):
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "cuzk"


def cubin_name(name: str, arch: str) -> str:
    """File name of the compiled module `name` (such as `msm/msm_g1`) for `arch` (such as `sm_90`)."""
    return f"{name.replace('/', '-')}.{arch}.{source_digest(name)}.cubin"


def compile_nvcc(name: str, arch: str, out: Path) -> str:
    """Compiles `kernels/<name>.cu` with nvcc into `out`; returns the compiler's report of registers and spills."""
    command = ["nvcc", *NVCC_OPTIONS, f"-arch={arch}", "-cubin", "--resource-usage", f"-I{kernel_root()}"]
    done = subprocess.run(
        [*command, "-o", str(out), str(kernel_root() / f"{name}.cu")], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise CuzkError(f"nvcc could not compile {name}.cu for {arch}:\n{done.stderr.strip()}")
    return done.stderr


def compile_nvrtc(name: str, arch: str, out: Path) -> None:
    """The same with NVRTC, through CuPy's bindings."""
    from cupy_backends.cuda.libs import nvrtc

    source = kernel_root() / f"{name}.cu"
    program = nvrtc.createProgram(source.read_text(), source.name, (), ())
    options = (*NVRTC_OPTIONS, f"--gpu-architecture={arch}", f"-I{source.parent}", f"-I{kernel_root()}")
    try:
        nvrtc.compileProgram(program, options)
        out.write_bytes(nvrtc.getCUBIN(program))
    except nvrtc.NVRTCError as fault:
        log = nvrtc.getProgramLog(program)
        raise CuzkError(f"NVRTC could not compile {name}.cu for {arch}: {fault}\n{log}") from fault
    finally:
        nvrtc.destroyProgram(program)


def cubin(name: str, arch: str) -> Path:
    """Path of the compiled module, compiling it first if the cache lacks it."""
    path = cache_dir() / cubin_name(name, arch)
    if path.exists():
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as scratch:
        made = Path(scratch) / "out.cubin"
        if shutil.which("nvcc"):
            compile_nvcc(name, arch, made)
        else:
            compile_nvrtc(name, arch, made)
        made.replace(path)
    return path


def modules() -> list[str]:
    """The names of all kernel modules."""
    root = kernel_root()
    return sorted(path.relative_to(root).with_suffix("").as_posix() for path in root.rglob("*.cu"))


def compile_all(arch: str) -> list[Path]:
    """Paths of all modules compiled for `arch`, side by side; what the cache has is not compiled again. Raises CuzkError with the
    compiler's words, or if there is no compiler."""
    if shutil.which("nvcc") is None and importlib.util.find_spec("cupy_backends") is None:
        raise HardwareMissing("to compile kernels takes nvcc, or CuPy with NVRTC: pip install 'cuzk[cuda13]'")
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        return list(pool.map(lambda name: cubin(name, arch), modules()))


def require_device_arch(device_id: int) -> str:
    """`sm_XY` of the device; HardwareMissing if there is none or it is older than sm_80."""
    try:
        import cupy
    except ImportError as fault:
        raise HardwareMissing("the cuda device needs CuPy: pip install 'cuzk[cuda13]'") from fault
    try:
        major, minor = divmod(int(cupy.cuda.Device(device_id).compute_capability), 10)
    except cupy.cuda.runtime.CUDARuntimeError as fault:
        raise HardwareMissing(f"no usable CUDA device {device_id}: {fault}") from fault
    if major < 8:
        raise HardwareMissing(f"CUDA device {device_id} has compute capability {major}.{minor}; 8.0 or newer is needed")
    return f"sm_{major}{minor}"
