"""Benchmark circuits of any size that need no compiler: one block of constraints, tiled; witnesses computed column by
column.
"""
