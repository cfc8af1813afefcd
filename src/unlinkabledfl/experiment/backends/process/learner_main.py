"""The main function of a learner's process, as a launcher forks it: serve the node at the other end of the socket."""

import os
import socket
from multiprocessing.connection import Connection

from unlinkabledfl.learning import worker_process

__all__ = ["main"]


def main(connection: socket.socket) -> int:
    """Serve until the node closes. The forkserver has set the priority already."""
    with Connection(os.dup(connection.fileno())) as pipe:
        connection.close()
        worker_process.run(pipe, niceness=0)
    return 0
