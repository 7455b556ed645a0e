"""Back-tests of the predictions, and the fits that calibrations come from.

measured_points.py  measured points of a whole system, read and checked
scenarios.py        a point as a scenario
predict.py          bands over seeds and over the stated errors of the cost laws
backtest.py         rows, summaries, goals
timelines.py        measured runs of a stand-alone prover; runs.py predicts and scores them
stage_laws.py       a calibration from such timelines
log_laws.py         a calibration from a daemon's log; log_loop.py: from the log and the scenario that it ran
recipe.py           what a fit may change; fit.py fits it to the points; fit_report.py says how well
written.py          calibrations as files
library.py          calibrations and measured data that ship with cuzk
"""
