"""A proof on a GPU, with the operations of cuzk.gpu.

proving_gpu.py one GPU and what it holds for as long as its key is used: lists of points, matrices, tables, streams
assignment.py  a partition's witness on a GPU: uploaded, multiplied, split
sums.py        the sums of a proof, cut to fit their buffers
"""
