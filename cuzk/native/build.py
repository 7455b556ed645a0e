"""Builds the host library inside the source tree: `python -m cuzk.native.build`. A wheel brings it along; this is for work on it.

The objects stay in build/native, the libraries go beside this file (git ignores them).
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent
ROOT = PACKAGE.parent.parent


def build(source: Path = ROOT, jobs: int | None = None) -> Path:
    """Configures, builds and puts the libraries into the package; returns its directory. Raises CalledProcessError."""
    build_directory = source / "build" / "native"
    cmake = shutil.which("cmake") or str(Path(sys.executable).with_name("cmake"))
    # Installing under a staging prefix and moving keeps a running process's mapped library intact.
    stage = build_directory / "stage"
    generator = ["-G", "Ninja"] if shutil.which("ninja") and not (build_directory / "Makefile").exists() else []
    subprocess.run([cmake, "-S", str(source), "-B", str(build_directory), *generator], check=True, stdout=subprocess.DEVNULL)
    jobs = jobs or len(os.sched_getaffinity(0))
    subprocess.run([cmake, "--build", str(build_directory), "--parallel", str(jobs)], check=True, stdout=sys.stderr)
    subprocess.run([cmake, "--install", str(build_directory), "--prefix", str(stage)], check=True, stdout=subprocess.DEVNULL)
    for library in (stage / "cuzk" / "native").glob("*.so"):
        os.replace(library, PACKAGE / library.name)
    return PACKAGE


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m cuzk.native.build", description=__doc__)
    parser.add_argument("-j", "--jobs", type=int, help="parallel compilations (default: all cores)")
    args = parser.parse_args(argv)
    if not (ROOT / "CMakeLists.txt").is_file():
        print(f"{ROOT}: no CMakeLists.txt; an installed package brings its library along", file=sys.stderr)
        return 2
    try:
        print(build(jobs=args.jobs))
    except FileNotFoundError as e:
        print(f"cmake is needed to build the host library: {e}", file=sys.stderr)
        return 1
    except subprocess.CalledProcessError as e:
        print(f"building the host library failed: {' '.join(map(str, e.cmd))} ended with {e.returncode}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
