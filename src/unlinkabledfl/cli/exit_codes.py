"""What the exit code of the command means. This is the whole list."""

from enum import IntEnum


class ExitCode(IntEnum):
    """Exit codes of every subcommand."""

    OK = 0
    BUG = 1  # an exception that nobody planned; Python prints its traceback and leaves with this code
    CONFIG = 2  # the arguments or the configuration cannot work; the message says what would
    FAILED = 3  # the job was started and could not be finished
    INTERRUPTED = 130  # Ctrl-C, as shells count it: 128 + SIGINT
    READER_GONE = 141  # whoever read our output closed it: 128 + SIGPIPE
