"""The GPU library, the twin of the host library (cuzk.native): kernels, device memory and the bulk operations built on them.

    device.py      one GPU: kernel launches, copies, events, memory. The seam that tests replace by a CPU emulation
    module.py      finds, compiles and loads the kernels of `kernels/`
    faults.py      what a failing CUDA call means
    staging.py     large arrays to a device, through page-locked blocks; locking.py locks large host memory
    feed.py        bytes of the host to a device again and again, at the link's speed
    link.py        who comes first on the link from the host
    key_ring.py    lists of points in the host's memory, some chunks at a time on the device
    turns.py       several threads' work on one stream
    arena.py       one block of device memory, cut into a plan's temporaries
    msm_plan.py    how a multi-scalar multiplication is cut; msm.py runs it, in G1 and G2; segments.py what both sums share
    batch_add.py   sum of the points that a bitmap selects; tables.py the sums of neighbouring points
    ntt_plan.py    what a transform consists of: passes and tables
    ntt.py         transforms over Fr; quotient.py the three quotients made of them
    scan.py        which values of a witness are 0, 1, other
    matvec.py      matrix times witness, from CSR or a template
    split.py       lists of points by the values of their wires: ones, and tails
    bandwidth.py   rates of the links and the memory, measured

A leaf: it knows fields, curves and memory; what a key or a proof is stands in cuzk.groth16.gpu. Nothing here imports CuPy at
import time. Every operation takes an explicit stream, returns at once, and hands back a handle whose `result()` waits for its own
event only.
"""
