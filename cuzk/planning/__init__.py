"""Many scenarios, all on top of `simulate()`: which settings to try, trying them, and saying what decided.

grid.py          axes of a sweep: keys and their values
row.py           what is kept of one simulated scenario
cache.py         rows by content, in a file that survives an interrupt
backends.py      processes of this machine, or joblib's loky, dask and ray
sweep.py         every combination of the axes
diff.py          two scenarios: what differs, and what each difference does alone
sensitivity.py   how much each figure moves the answer
"""
