"""The thread interpreter: real threads walk a pipeline's steps through the Arbiter, in real time.

engine.py       a run: threads for what the core admits, its end
live.py         runs whose proofs come from a feed
actor.py        one worker: walks its bound steps; claims.py: how it waits its turn
sets.py         a set's real buffers, events and handles
device.py       the protocol of a device; streams of host threads
null.py         a device without work: touches the memory, takes the time; shared_time.py: how pretended work shares it
proving.py      what a device that proves has: sets, the host's step bodies, the check of each proof
cpu.py          one that proves by the host library alone
cuda.py         one that proves on GPUs
one.py          one proof on this machine's GPU
touching.py     pages that become resident while a step fills them
host.py         memory that this process may take
sampler.py      resident memory, as the operating system sees it
supervisor.py   proofs in a worker process (worker.py), and a fresh one when it is lost; aftermath.py: what is left of it
proofs.py       proofs on disk, and which of them hold
run.py          `run(scenario, …)`: what `cuzk run` calls; result.py: its document
"""
