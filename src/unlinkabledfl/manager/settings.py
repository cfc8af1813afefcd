"""How a manager is set up: where runs lie, where it listens, who may come in."""

import ipaddress
import secrets
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from unlinkabledfl.errors import ConfigError

__all__ = ["STRONG_TOKEN_LENGTH", "Settings", "is_loopback", "new_token"]

STRONG_TOKEN_LENGTH: Final = 24
"""What a token needs at least where others than this machine can try to guess it."""

_LOOPBACK_NAMES: Final = ("localhost", "127.0.0.1", "::1")
_TOKEN_MAX_LENGTH: Final = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of one manager. `names` are further host names under which it may be asked for."""

    runs: Path
    token: str = field(repr=False)
    host: str = "127.0.0.1"
    port: int = 8765
    names: tuple[str, ...] = ()
    running_max: int = 4
    trusts_scenarios: bool = False
    """Whether a scenario may name code to import, files to read, and an engine, an image and plug-ins of containers."""
    body_max_bytes: int = 1 << 20
    page: Path = Path(__file__).parent / "static"
    """Where the built dashboard lies."""

    def __post_init__(self) -> None:
        if (
            not self.token
            or len(self.token) > _TOKEN_MAX_LENGTH
            or not self.token.isascii()
            or not _is_plain(self.token)
        ):
            raise ConfigError(key="--token", got="***", takes="1 to 512 visible ASCII characters without blanks")
        if not is_loopback(self.host) and len(self.token) < STRONG_TOKEN_LENGTH:
            raise ConfigError(
                key="--host",
                got=self.host,
                takes=f"an address of this machine only, unless --token has at least {STRONG_TOKEN_LENGTH} characters",
                hint="or leave it at 127.0.0.1 and come through `ssh -L`",
            )

    @property
    def allowed_names(self) -> frozenset[str]:
        """The host names that a request may name: others come from a page that had its name point here."""
        own = () if self.host in {"0.0.0.0", "::"} else (self.host,)  # noqa: S104 - not bound here, but left out
        return frozenset(name.lower() for name in (*_LOOPBACK_NAMES, *own, *self.names))

    @property
    def cookie_name(self) -> str:
        """Cookies do not know ports; two managers on one host keep apart by this."""
        return f"unlinkabledfl-{self.port}"


def new_token() -> str:
    """Return a token that nobody guesses."""
    return secrets.token_urlsafe(24)


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches the address."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _is_plain(token: str) -> bool:
    return token.isprintable() and " " not in token
