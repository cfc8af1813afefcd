"""What every test shares: how hypothesis searches, and that Ctrl-C can be pressed.

`ci`, the default, tries the same examples in every run, so that a red test is red again. `explore` draws new
ones, and more of them: HYPOTHESIS_PROFILE=explore make test. Neither has a deadline: a machine under load is
slow, not wrong.
"""

import os
import signal

from hypothesis import settings

settings.register_profile("ci", derandomize=True, deadline=None, database=None)
settings.register_profile("explore", max_examples=1000, deadline=None, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

# A shell starts what it runs in the background with this signal ignored, and children inherit that: Python then never
# raises KeyboardInterrupt, and tests that interrupt a run would wait for its end.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
