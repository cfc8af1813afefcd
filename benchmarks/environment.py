"""On what a figure was measured: part of every benchmark's document. Nothing here identifies a host or a person."""

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import unlinkabledfl


def describe(*packages: str) -> dict[str, Any]:
    """Return the blocks `machine` and `versions`; a package that is not installed is listed as null."""
    return {
        "machine": {
            "cpu": _cpu_model(),
            "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
            "architecture": platform.machine(),
            "system": f"{platform.system()} {platform.release().split('-')[0]}",
        },
        "versions": {
            "unlinkabledfl": unlinkabledfl.__version__,
            "python": platform.python_version(),
            **{package: _version(package) for package in packages},
        },
    }


def _cpu_model() -> str:
    """Return the processor's name as its maker writes it; `platform` knows only the architecture on Linux."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
