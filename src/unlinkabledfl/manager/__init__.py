"""The experiment manager: an HTTP service over run directories, which also serves the dashboard.

It prepares, launches, watches and stops runs. It takes no part in any: nothing that nodes tell each other passes here.
"""

from unlinkabledfl.manager.app import create_app
from unlinkabledfl.manager.settings import Settings

__all__ = ["Settings", "create_app"]
