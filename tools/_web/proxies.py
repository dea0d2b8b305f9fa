"""Reverse proxies in front of the web service: the prefix of its paths, and which are trusted."""

from __future__ import annotations

import argparse
import ipaddress
import re
from typing import Final

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
_MAX_PREFIX: Final = 200
_PREFIX: Final = re.compile(r"(?:/(?!\.{1,2}(?:/|\Z))[A-Za-z0-9._~-]+)*/?", re.ASCII)


def parse_prefix(text: str) -> str | None:
    """Return a prefix of paths without a slash at its end, "" for `/`; None if it is not valid."""
    if len(text) > _MAX_PREFIX or _PREFIX.fullmatch(text) is None:
        return None
    return text.rstrip("/")


def root_path(text: str) -> str:
    """Parse the value of --root-path.

    Raises:
        argparse.ArgumentTypeError: it is not a prefix of paths.
    """
    prefix = parse_prefix(text)
    if prefix is None:
        raise argparse.ArgumentTypeError(
            f"{text!r}: expected a path such as /tape or /ops/tape, of letters, digits and ._~-, "
            f"up to {_MAX_PREFIX} characters"
        )
    return prefix


def network(text: str) -> Network:
    """Parse the address of a proxy, or a network of them.

    Raises:
        argparse.ArgumentTypeError: it is neither.
    """
    try:
        return ipaddress.ip_network(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(
            f"{text!r}: expected an IP address, or a network such as 10.1.0.0/16 ({error})"
        ) from None
