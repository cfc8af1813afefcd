"""`python -m unlinkabledfl.cli` is the command, for where it is not on the path."""

import sys

from unlinkabledfl.cli.main import main

sys.exit(main())
