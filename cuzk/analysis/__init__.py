"""Many runs of one scenario: what would change it, how sure it is, and why it comes out as it does.

sweeps.py        every combination of some policy values, on several processes
draws.py         errors drawn for the runs of a band: each law's own, and paces of all steps of a kind
bands.py         bands over seeds and over the stated errors of the cost laws; the worst of n legal orders
fixes.py         other policies, each simulated: the smallest change that fits, and the nearest
explanation.py   what the peak consists of, who waited for what then, what binds when
replays.py       a scenario with the step times of a measured run
checks.py        a scenario file's own claims
"""
