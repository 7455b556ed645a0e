#!/bin/sh
# Prepares a bare GPU machine (Python with CuPy and numpy, g++, cmake, nvcc or NVRTC) and runs a command in the source tree:
#   sh benchmarks/gpu_setup.sh python benchmarks/gpu.py -o docs/performance.json
#   sh benchmarks/gpu_setup.sh python -m pytest tests/gpu -q
set -e
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
PYTHONPATH="$root${PYTHONPATH:+:$PYTHONPATH}"
export PYTHONPATH PYTHONUNBUFFERED=1
python3 -c 'import cupy; print(cupy.cuda.runtime.getDeviceProperties(0)["name"].decode())' >&2
[ -e cuzk/native/libcuzk_portable.so ] || python3 -m cuzk.native.build
if [ "$1" = python ]; then
    shift
    exec python3 "$@"
fi
exec "$@"
