"""A proof on a GPU, with the operations of cuzk.gpu.

proving_gpu.py   one GPU and what it holds for as long as its key is used: lists of points, matrices, tables, streams
streamed_key.py  a key whose lists lie in the host's memory and pass by in chunks
key_pass.py      the lists that the witness multiplies, for all sets that ride
small.py         proofs of small circuits: all kernels of a proof as one graph
assignment.py    a partition's witness on a GPU: uploaded, multiplied, split
sums.py          the sums of a proof, cut to fit their buffers
selftest.py      the arithmetic of a card against independent ones (cuzk doctor --selftest)
"""
