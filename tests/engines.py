"""A container engine for tests: what DOCKER_HOST names, or a Podman of their own, of which nothing stays."""

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# Limits that any machine can grant, and nothing that needs systemd.
_SETTINGS = """\
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=4096:4096"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
[network]
network_backend = "netavark"
"""


def why_there_is_none() -> str | None:
    """Say why no engine can be had here; None if one can."""
    if os.environ.get("DOCKER_HOST"):
        return None
    missing = [name for name in ("podman", "runc", "iptables") if shutil.which(name) is None]
    if missing:
        return f"no DOCKER_HOST, and not installed: {', '.join(missing)}"
    return None if os.getuid() == 0 else "no DOCKER_HOST, and a Podman of the tests' own needs root"


@contextmanager
def an_engine() -> Iterator[str]:
    """Give the address of an engine."""
    if address := os.environ.get("DOCKER_HOST"):
        yield address
        return
    # Not in pytest's own directory: the paths of sockets have to be short.
    home = Path(tempfile.mkdtemp(prefix="unl-engine-"))
    settings = home / "containers.conf"
    settings.write_text(_SETTINGS)
    places = {"--root": "root", "--runroot": "run", "--tmpdir": "tmp", "--network-config-dir": "networks"}
    podman = ["podman", *(word for option, name in places.items() for word in (option, str(home / name)))]
    environment = {**os.environ, "CONTAINERS_CONF": str(settings)}
    try:
        with _listening(home / "podman.sock") as listener, (home / "log").open("wb") as log:
            # Handed a socket that listens already, as systemd does it: whoever dials early waits.
            serve = (
                f"exec 3<&{listener.fileno()}; LISTEN_FDS=1 LISTEN_PID=$$ exec {' '.join(podman)} system service -t 0"
            )
            service = subprocess.Popen(
                ["bash", "-c", serve], pass_fds=[listener.fileno()], env=environment, cwd=home, stdout=log, stderr=log
            )
        try:
            yield f"unix://{home / 'podman.sock'}"
        finally:
            service.terminate()
            service.wait()
    finally:
        subprocess.run([*podman, "system", "reset", "--force"], env=environment, capture_output=True, check=False)
        shutil.rmtree(home, ignore_errors=True)


@contextmanager
def _listening(path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        yield listener
