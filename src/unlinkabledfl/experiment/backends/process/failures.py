"""What made a group of tasks end, out of all that came of it."""

from unlinkabledfl.errors import UnlinkableError

__all__ = ["first_of"]


def first_of(error: BaseException) -> BaseException:
    """Return what made a group of tasks end, a deliberate exception if there is one; any other error is itself."""
    leaves: list[BaseException] = []
    pending = [error]
    while pending:
        first = pending.pop(0)
        if isinstance(first, BaseExceptionGroup):
            pending += first.exceptions
        else:
            leaves.append(first)
    return next((leaf for leaf in leaves if isinstance(leaf, UnlinkableError)), leaves[0])
