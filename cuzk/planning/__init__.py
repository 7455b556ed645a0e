"""Many scenarios, all on top of `simulate()`: which settings to try, trying them, and saying what decided.

grid.py          axes of a sweep: keys and their values
row.py           what is kept of one simulated scenario
cache.py         rows by content, in a file that survives an interrupt
backends.py      processes of this machine, or joblib's loky, dask and ray
sweep.py         every combination of the axes
diff.py          two scenarios: what differs, and what each difference does alone
sensitivity.py   how much each figure moves the answer

space.py         the options that matter for a pipeline, and the values to try
candidate.py     a setting that was simulated: pace, peaks, margins
plan.py          the search for settings, and why neighbours lose
nearest.py       when nothing fits: the pool, the need, the nearest that does
size.py          the cheapest machines of a catalogue for a target
target.py        `40 s/proof`, `100 proofs/h`
service.py       latency, keeping up with arrivals, reservations
basis.py         how far a prediction is from what was calibrated
"""
