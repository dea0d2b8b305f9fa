"""Makes the pictures of the documentation: each .dot file into an .svg, with Graphviz.

    python docs/pictures/make.py

They have the reader's colours, light or dark. A .term file, what a terminal shows, becomes the
picture of a terminal.
"""

from __future__ import annotations

import re
import subprocess
from html import escape
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


# Of the picture of a terminal, pixels.
NO_BREAK = "\u00a0"  # spaces in a row are one in the text of a picture
LINE_HEIGHT, CHARACTER_WIDTH, MARGIN, TITLE_HEIGHT = 20, 8.43, 18, 34


def terminal(source: Path) -> str:
    """Return the picture of a terminal with the lines of a .term file."""
    lines = source.read_text().splitlines()
    width = round(max(map(len, lines)) * CHARACTER_WIDTH) + 2 * MARGIN
    height = len(lines) * LINE_HEIGHT + TITLE_HEIGHT + MARGIN
    buttons = "".join(
        f'<circle cx="{MARGIN + 18 * number}" cy="17" r="5.5" fill="{colour}"/>'
        for number, colour in enumerate(("#ff5f57", "#febc2e", "#28c840"))
    )
    texts = "\n".join(_line(number, line) for number, line in enumerate(lines) if line)
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}"
 width="{width}"
 font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
 font-size="14">
<rect width="{width}" height="{height}" rx="8" fill="#1b1f24"/>
{buttons}
{texts}
</svg>
"""


def _line(number: int, line: str) -> str:
    """Return a line; what is typed is brighter."""
    y = TITLE_HEIGHT + (number + 0.75) * LINE_HEIGHT
    fill = "#ffffff" if line.startswith(("$", ">")) else "#b8c0c8"
    text = escape(line).replace(" ", NO_BREAK)
    return f'<text x="{MARGIN}" y="{y:g}" fill="{fill}">{text}</text>'


if __name__ == "__main__":
    for source in sorted(Path(__file__).parent.glob("*.term")):
        source.with_suffix(".svg").write_text(terminal(source))
    for source in sorted(Path(__file__).parent.glob("*.dot")):
        source.with_suffix(".svg").write_text(picture(source))
