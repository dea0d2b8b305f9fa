"""The Python examples of the pages in docs, and how tests run them."""

from __future__ import annotations

import ast
import asyncio
import re
from inspect import isawaitable
from typing import Any

import aerotape
from support.jvm.java import ROOT


def examples(page: str) -> list[str]:
    """Return the Python examples of a page."""
    return re.findall(r"^```python\n(.*?)^```", (ROOT / "docs" / page).read_text(), re.M | re.S)


def run(example: str, **names: Any) -> dict[str, Any]:
    """Run an example, which may await; return its variables."""
    variables: dict[str, Any] = {"aerotape": aerotape, "asyncio": asyncio, **names}
    code = compile(example, "example", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    result = eval(code, variables)
    if isawaitable(result):
        asyncio.run(_awaited(result))
    return variables


async def _awaited(result: Any) -> None:
    await result
