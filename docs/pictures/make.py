"""Makes the pictures of the documentation: each .dot file into an .svg, with Graphviz.

    python docs/pictures/make.py

They have the reader's colours, light or dark.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

DEFAULTS = (
    "-Gbgcolor=transparent",
    "-Nshape=box",
    "-Nstyle=rounded",
    "-Nfontname=sans-serif",
    "-Nfontsize=12",
    "-Efontname=sans-serif",
    "-Efontsize=10",
)
STYLE = """<style>
text { fill: #1c2024; }
.node path, .node polygon, .node ellipse { stroke: #60666d; fill: #f5f6f8; }
.ours path, .ours polygon { stroke: #0b62c4; fill: #e8f1fc; }
.edge path { stroke: #60666d; }
.edge polygon { stroke: #60666d; fill: #60666d; }
@media (prefers-color-scheme: dark) {
  text { fill: #e6e8eb; }
  .node path, .node polygon, .node ellipse { stroke: #9ba1a8; fill: #1f2327; }
  .ours path, .ours polygon { stroke: #6cb0ff; fill: #14263b; }
  .edge path { stroke: #9ba1a8; }
  .edge polygon { stroke: #9ba1a8; fill: #9ba1a8; }
}
</style>
"""


def picture(source: Path) -> str:
    """Return the picture of a .dot file."""
    command = ["dot", "-Tsvg", *DEFAULTS, str(source)]
    made = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    made = re.sub(r"<!--.*?-->\n?", "", made, flags=re.DOTALL)
    made = re.sub(r' (?:fill|stroke)="[^"]*"', "", made)
    made = re.sub(r"(<svg[^>]*>\n)", lambda found: found[1] + STYLE, made, count=1)
    # What has no colour by its class has none.
    return made.replace('<g id="graph0"', '<g fill="none" id="graph0"')


if __name__ == "__main__":
    for source in sorted(Path(__file__).parent.glob("*.dot")):
        source.with_suffix(".svg").write_text(picture(source))
