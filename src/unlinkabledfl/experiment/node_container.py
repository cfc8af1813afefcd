"""The main function of a node in a container of its own: `python -m unlinkabledfl.experiment.node_container SOCKET`.

It is led by the same messages as a forked node. What differs is that it dials its launcher, over a socket that is
mounted into the container; that it starts its learner itself, because no file handle crosses into a container; and that
the engine has given it an address, which it looks up under its own name and tells the others.
"""

import asyncio
import socket
import sys

from unlinkabledfl.experiment.backends.process.launcher_link import LauncherLink
from unlinkabledfl.experiment.node_config import FullNodeConfig
from unlinkabledfl.experiment.node_main import serve, set_up_logging
from unlinkabledfl.learning.worker_start import WorkerProcess, spawn_worker

__all__ = ["ContainerLink", "main"]


class ContainerLink(LauncherLink):
    """A link to a launcher outside."""

    def settle(self, config: FullNodeConfig) -> FullNodeConfig:
        if config.link is None:
            return config
        (*_, where), *_ = socket.getaddrinfo(socket.gethostname(), None, type=socket.SOCK_DGRAM)
        return config.model_copy(update={"link": config.link.model_copy(update={"host": str(where[0])})})

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
