"""The thread interpreter: real threads walk a pipeline's steps through the Arbiter, in real time.

engine.py     a run: admission, actors, failure scopes, the end
actor.py      one worker: walks its steps
sets.py       what belongs to one set: token, real buffers, events, handles
device.py     what a device must offer; streams of host threads
null.py       a device without work: touches the memory, takes the time
cpu.py        a device that proves, by the host library
memory.py     host memory that returns to the system the moment it is freed
sampler.py    resident memory, as the operating system sees it
run.py        `run(scenario, …)`: what `cuzk run` calls
cuda/         kernels and device memory of a GPU
"""
