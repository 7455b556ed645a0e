"""cuzk: capacity planner and executor for GPU Groth16 proving on BLS12-381.

The pipeline is data; SimPy walks it in simulated time, threads and CUDA walk it in real time.
"""

__version__ = "0.1.0"
