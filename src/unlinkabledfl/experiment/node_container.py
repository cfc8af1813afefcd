"""The main function of a node in a container of its own: `python -m unlinkabledfl.experiment.node_container SOCKET`.

It is led by the same messages as a forked node. What differs is that it dials its launcher, over a socket that is
mounted into the container, and that it starts its learner itself: no file handle crosses into a container.
"""

import asyncio
import socket
import sys

from unlinkabledfl.experiment.backends.process.launcher_link import LauncherLink
from unlinkabledfl.experiment.node_main import serve, set_up_logging
from unlinkabledfl.learning.worker_start import WorkerProcess, spawn_worker

__all__ = ["ContainerLink", "main"]


class ContainerLink(LauncherLink):
    """A link whose node has nobody but itself to start its learner."""

    def start_worker(self) -> WorkerProcess:
        if self.stopping.is_set():
            raise OSError("the node is stopping")
        return spawn_worker()


def main(path: str) -> int:
    """Run the node that the launcher behind this socket describes, and return the exit code."""
    set_up_logging(sys.stderr)
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        return asyncio.run(serve(connection, link=ContainerLink))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
