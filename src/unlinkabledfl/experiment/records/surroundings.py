"""On what a figure was measured: part of every document with figures. Nothing here identifies a host or a person."""

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

import unlinkabledfl

__all__ = ["RUN_PACKAGES", "describe"]

RUN_PACKAGES: Final = (
    "cryptography",
    "ipp-crypto",
    "numpy",
    "pyarrow",
    "pydantic",
    "PyNaCl",
    "qh3",
    "torch",
    "zstandard",
)
"""What a run's figures may depend on."""


def describe(*packages: str) -> dict[str, Any]:
    """Return the blocks `machine` and `versions`; a package that is not installed is listed as null."""
    return {
        "machine": {
            "cpu": _cpu_model(),
            "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
            "memory_gib": _memory_gib(),
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


def _memory_gib() -> float | None:
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30), 1)
    except (ValueError, OSError):
        return None


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
