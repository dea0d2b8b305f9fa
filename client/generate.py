"""Generate the blocking client from the asyncio client.

    python -m aerotape.client.generate

Both have the same methods: the modules in `asynchronous/` are the source, those in `blocking/` are
generated from them, by removing `async` and `await` and by renaming. What differs otherwise is in
the base classes, `AsyncRequests` and `BlockingRequests`. Needs ruff, which sorts the imports.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Final

_HERE: Final = Path(__file__).parent
SOURCES: Final = sorted(
    path for path in (_HERE / "asynchronous").glob("*.py") if path.name != "__init__.py"
)
TARGETS: Final = _HERE / "blocking"

# Applied in this order.
_RULES: Final = (
    (r"\basync (def|with|for)\b", r"\1"),
    (r"\bawait ", ""),
    # A resource that is opened, and a stream that is polled, are not wrapped.
    (r"\bOpening\[AsyncMessages\[(\w+)\]\]", r"\1"),
    (r"\bOpening\[(\w+)\]", r"\1"),
    (r"import AsyncMessages, AsyncRequests", "import AsyncRequests"),
    (r"import AsyncClosing, Opening", "import AsyncClosing"),
    (r"client\.event_loop import", "client.blocking_requests import"),
    (r"\bAsyncRequests\b", "BlockingRequests"),
    (r"\bimport asyncio\b", "import threading"),
    (r"\basyncio\.Lock\b", "threading.Lock"),
    (r"\b__a(iter|next)__\b", r"__\1__"),
    (r"\banext\(", "next("),
    (r"\bStopAsyncIteration\b", "StopIteration"),
    (r"\.asynchronous\.", ".blocking."),
    (r"\bthe asyncio client\b", "the blocking client"),
    (r"\bAsync(\w)", r"\1"),
)


def blocking_source(path: Path) -> str:
    """Return the blocking module of an asyncio module."""
    text = path.read_text()
    for pattern, replacement in _RULES:
        text = re.sub(pattern, replacement, text)
    command = "python -m aerotape.client.generate"
    text = (
        f"# Generated from asynchronous/{path.name}: do not edit.\n# Regenerate: {command}\n{text}"
    )
    for arguments in (["check", "--fix", "--select", "I"], ["format"]):
        command_line = [sys.executable, "-m", "ruff", *arguments, "--quiet"]
        command_line += ["--stdin-filename", str(TARGETS / path.name), "-"]
        text = subprocess.run(
            command_line, input=text, capture_output=True, text=True, check=True
        ).stdout
    return text


def main() -> None:
    """Write the blocking modules."""
    for path in SOURCES:
        (TARGETS / path.name).write_text(blocking_source(path))


if __name__ == "__main__":
    main()
