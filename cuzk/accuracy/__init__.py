"""Back-tests of the predictions, and the fits that calibrations come from.

points.py      measured points of a whole system, read and checked
scenarios.py   a point as a scenario
predict.py     bands over seeds and over the stated errors of the cost laws
backtest.py    rows, summaries, goals
library.py     calibrations and measured data that ship with cuzk
"""
