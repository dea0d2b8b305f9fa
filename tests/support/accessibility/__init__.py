"""axe-core, which finds what people with a screen reader, a keyboard or weak sight cannot use."""

from __future__ import annotations

import zipfile
from functools import cache
from typing import Any

from support.jvm.java import ROOT

_JARS = ROOT / ".make" / "axe"
IS_FETCHED = (_JARS / ".complete").exists()
_SCRIPT = "axe.min.js"
_RUN = """
const done = arguments[arguments.length - 1];
const row = ({ impact, id, nodes }) => [impact, id, nodes.map((node) => node.html)];
const run = () => axe.run({ resultTypes: ["violations"] }).then(
  (found) => done(found.violations.map(row)),
  (error) => done([["critical", String(error), []]]));
// Events of a new size precede the second frame after it.
requestAnimationFrame(() => requestAnimationFrame(run));
"""


@cache
def _axe() -> str:
    [jar] = _JARS.glob("*.jar")
    with zipfile.ZipFile(jar) as archive:
        return archive.read(_SCRIPT).decode()


def violations(driver: Any) -> list[str]:
    """Return what is serious or critical on the page of a browser, with the elements."""
    driver.execute_script(f"if (!window.axe) {{ {_axe()} }}")
    return [
        f"{impact}: {id}: {' '.join(nodes)[:1_000]}"
        for impact, id, nodes in driver.execute_async_script(_RUN)
        if impact in ("serious", "critical")
    ]
