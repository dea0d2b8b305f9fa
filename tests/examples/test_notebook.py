"""The example notebook runs from top to bottom, with the expected results."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from support import notebook
from support.jvm.java import ROOT

nbformat = pytest.importorskip("nbformat")
# Appended to the notebook: its results, counted in several ways.
RESULTS = """
import json
print(json.dumps({
    "published": published,
    "stats": {"messages": stats.messages, "bytes": stats.payload_bytes, "gaps": stats.gap_count},
    "in_bins": sum(part.messages for part in stats.bins),
    "rates": [part.messages_per_s for part in stats.bins],
    "bytes": total,
    "trades": len(trades),
    "by_symbol": {name: int(row["sum"]) for name, row in by_symbol.iterrows()},
    "by_side": json.loads(by_side.to_json(orient="records")),
    "books": json.loads(depths.to_json(orient="records")),
    "sides": sorted(trades["side"].unique()),
    "times": bool(trades["time_ns"].is_monotonic_increasing),
}))
"""


def test_it_has_the_outputs_of_one_run() -> None:
    """From top to bottom, without an error or a path of the machine."""
    committed = notebook.read()
    nbformat.validate(committed)
    code = [cell for cell in committed.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    assert any(notebook.kinds(cell) for cell in code)
    assert all(cell.outputs == notebook.shown(cell) for cell in code)
    assert "error" not in [kind for cell in code for kind in notebook.kinds(cell)]
    assert "/work" not in notebook.NOTEBOOK.read_text() and str(ROOT) not in str(committed)


@pytest.mark.slow
@pytest.mark.spark
def test_it_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Publisher, statistics, pandas and Spark have the same numbers; there is a plot.

    Each cell has outputs of the same kinds as in the repository.
    """
    pytest.importorskip("nbclient")
    pytest.importorskip("pyspark")
    for name in ("ipykernel", "pandas", "matplotlib"):
        pytest.importorskip(name)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    # Spark's workers must find its own.
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    ran = notebook.read()
    kinds = [notebook.kinds(cell) for cell in ran.cells]
    assert "cleanup" in ran.cells[-1].source
    ran.cells.insert(-1, nbformat.v4.new_code_cell(RESULTS))
    notebook.run(ran)
    results = json.loads(_printed(ran.cells.pop(-2)))
    assert [notebook.kinds(cell) for cell in ran.cells] == kinds
    published = results["published"]
    assert published["messages"] > 10_000
    assert results["stats"] == {
        "messages": published["messages"],
        "bytes": published["bytes"],
        "gaps": 0,
    }
    assert results["in_bins"] == published["messages"]
    assert len(results["rates"]) == 30 and max(results["rates"]) > 0
    assert results["bytes"] == published["bytes"]
    assert results["trades"] == published["trades"] > 1000
    assert sum(row["trades"] for row in results["by_side"]) == published["trades"]
    by_symbol: dict[str, int] = {}
    for row in results["by_side"]:
        by_symbol[row["symbol"]] = by_symbol.get(row["symbol"], 0) + row["volume"]
        assert row["vwap"] == pytest.approx(100, abs=1)
    assert by_symbol == results["by_symbol"]
    assert sorted(by_symbol) == ["AAPL", "MSFT", "NVDA", "TSLA"]
    books = published["messages"] - published["trades"]
    assert sum(row["books"] for row in results["books"]) == books
    assert {row["best_bid"] for row in results["books"]} == {100.0}
    assert (results["sides"], results["times"]) == (["BUY", "SELL"], True)
    [picture] = _pictures(ran)
    assert picture.startswith(b"\x89PNG") and len(picture) > 20_000
    assert not list(tmp_path.glob("aerotape-example-*"))


def _printed(cell: Any) -> str:
    return "".join(output.text for output in cell.outputs if output.get("name") == "stdout")


def _pictures(ran: Any) -> list[bytes]:
    outputs = (output for cell in ran.cells for output in cell.get("outputs", []))
    found = (output.get("data", {}).get("image/png") for output in outputs)
    return [base64.b64decode(data) for data in found if data]
