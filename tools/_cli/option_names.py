"""Messages of errors in commands: with options where the library names arguments of functions.

An error has the names of the arguments in its message (`AerotapeError.arguments`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from aerotape.errors import AerotapeError

_OPTIONS: Final = {
    "aeron_dir": "--aeron-dir",
    "control_request_channel": "--control-channel",
    "control_request_stream_id": "--control-stream-id",
    "control_response_channel": "--response-channel",
    "credentials=aerotape.UserSecret(…), or on_challenge": "--user, --secret-file",
    'driver="external"': "`--driver external`",
    "force": "--force",
    "from_": "--from",
    "start_timeout_ns": "--wait",
    "store=…": "--store",
    "stores": "--store",
    "subscription_id": "--print or --out",
}


def message_of(error: BaseException) -> str:
    """Return the message of an error, with options in place of the arguments that it names."""
    return with_options(str(error), {name: _OPTIONS[name] for name in _arguments(error)})


def with_options(text: str, options: Mapping[str, str]) -> str:
    """Return `text` with each whole word that is a key of `options` replaced by its value."""
    if not options:
        return text
    names = "|".join(re.escape(name) for name in sorted(options, key=len, reverse=True))
    # Not within a path, a property or another name.
    words = rf"(?<![\w./-])({names})(?![\w/-])"
    return re.sub(words, lambda match: options[match[0]], text)


def _arguments(error: BaseException | None) -> Iterator[str]:
    """Yield the arguments that an error names, and those of its causes, whose text it may quote."""
    while error is not None:
        if isinstance(error, AerotapeError):
            yield from error.arguments
        error = error.__cause__
