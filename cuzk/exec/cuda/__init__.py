"""The CUDA side of the executor: kernels, device memory and the bulk operations built on them.

    device.py      one GPU: kernel launches, copies, events, memory. The seam that tests replace by a CPU emulation
    module.py      finds, compiles and loads the kernels of `kernels/`
    arena.py       one block of device memory, cut into a plan's temporaries
    msm.py         multi-scalar multiplication in G1 and G2
    batch_add.py   sum of the points that a bitmap selects
    ntt_plan.py    what a transform consists of: passes and tables
    ntt.py         transforms over Fr; quotient.py the three quotients made of them
    scan.py        which values of a witness are 0, 1, other
    matvec.py      matrix times witness, from CSR or a template
    split.py       the key's lists by the values of their wires: ones, and tails
    residents.py   what one GPU holds for a whole run
    assignment.py  a partition's witness on a GPU: uploaded, multiplied, split
    sums.py        the sums of a proof, cut to fit their buffers
    prover.py      the device of the executor

Nothing here imports CuPy at import time. Every operation takes an explicit stream, returns at once, and hands back a handle whose
`result()` waits for its own event only.
"""
