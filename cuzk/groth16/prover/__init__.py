"""The Groth16 prover as named steps over one proof's state; `run.prove` walks them in order, the executor interleaves
many.
"""
