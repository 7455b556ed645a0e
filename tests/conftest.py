"""Random tests draw the same cases in continuous integration, and fresh ones everywhere else."""

import os
import signal

from hypothesis import settings

settings.register_profile("ci", derandomize=True, deadline=None)
if os.environ.get("CI"):
    settings.load_profile("ci")

# Started in the background, a shell leaves SIGINT ignored, and every child inherits that: tests of Ctrl-C need the usual.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
