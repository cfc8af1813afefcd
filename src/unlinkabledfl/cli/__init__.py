"""The command `unlinkabledfl`: arguments in, one result out, an exit code that says how it went.

Nothing heavy is imported before a subcommand needs it: `unlinkabledfl --help` is an ordinary thing to type.
"""

from unlinkabledfl.cli.main import main

__all__ = ["main"]
