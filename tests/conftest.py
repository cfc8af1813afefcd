"""What every test shares: how hypothesis searches.

`ci`, the default, tries the same examples in every run, so that a red test is red again. `explore` draws new
ones, and more of them: HYPOTHESIS_PROFILE=explore make test. Neither has a deadline: a machine under load is
slow, not wrong.
"""

import os

from hypothesis import settings

settings.register_profile("ci", derandomize=True, deadline=None, database=None)
settings.register_profile("explore", max_examples=1000, deadline=None, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))
