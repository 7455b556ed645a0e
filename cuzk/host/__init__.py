"""This machine as it is: memory within the limits of its control groups, cores, GPUs and who holds their memory.

    memory.py    RAM, huge pages, control groups; what is still to be had
    cpu.py       cores, hardware threads, quota, NUMA nodes
    gpus.py      what the driver says of each GPU, and the processes on it
    dram.py      the bandwidth of the DRAM, measured
    machine.py   all of that as a `Machine`, with the provenance of each figure

Each reader takes the root of the file system, so that tests can give it another one.
"""
