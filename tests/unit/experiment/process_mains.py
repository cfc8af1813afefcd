"""Main functions for forked processes."""

import json
import os
import signal
import socket
import sys


def echo(connection: socket.socket) -> int:
    """Send back what comes until the other end closes, and return 7."""
    while data := connection.recv(4096):
        connection.sendall(data)
    return 7


def describe(connection: socket.socket) -> int:
    """Tell what this process is."""
    facts = {
        "process": os.getpid(),
        "parent": os.getppid(),
        "niceness": os.nice(0),
        "cores": sorted(os.sched_getaffinity(0)),
        "torch": "torch" in sys.modules,
        "numpy": "numpy" in sys.modules,
        "threads": os.environ["OMP_NUM_THREADS"],
        "arguments": sys.argv,
        "files": sorted(int(name) for name in os.listdir("/proc/self/fd")),
    }
    sys.stdout.write("a line for the log\n")
    connection.sendall(json.dumps(facts).encode())
    return 0


def wait(connection: socket.socket) -> int:
    """Do nothing until a signal comes, whatever becomes of the connection."""
    connection.sendall(str(os.getpid()).encode())
    while True:
        signal.pause()


def deaf(connection: socket.socket) -> int:
    """Ignore SIGTERM too."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    return wait(connection)


def crash(connection: socket.socket) -> int:
    """Raise what nobody catches."""
    raise RuntimeError("a bug in the main function")
