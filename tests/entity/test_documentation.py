"""The example of docs/entities.md."""

from __future__ import annotations

import re

import pytest
from support.daemon.archives import serve
from support.jvm.java import ROOT

import aerotape


def test_example(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The example prints what its comments say."""
    text = (ROOT / "docs" / "entities.md").read_text()
    (example,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    with serve("aerotape") as served:
        client = served.connect()
        monkeypatch.setattr(aerotape, "connect", lambda: client)
        exec(compile(example, "entities.md", "exec"), {})
    assert capsys.readouterr().out.splitlines() == ["40", "3", "{'open': 40} [4]"]
