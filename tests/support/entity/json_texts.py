"""JSON as no encoder of Python writes it."""

from __future__ import annotations

from hypothesis import strategies as st

_SPACE = st.sampled_from(["", "", "", " ", "\n", "\t \r\n"])
_NUMBER = st.from_regex(
    r"-?(0|[1-9][0-9]{0,30})(\.[0-9]{1,25})?([eE][+-]?[0-9]{1,5})?", fullmatch=True
)
_PIECE = st.sampled_from(
    ["a", "ü", "😀", "\x7f", "\u2028", "[", "}", ",", r"\ud800", r"\udc00\ud800", r"\u0000", r"\n",
     r"\"", r"\\", r"\/", '}],"metadata":{}}'.replace('"', r"\"")]
)  # fmt: skip
_TEXT = st.lists(_PIECE, max_size=4).map(lambda pieces: f'"{"".join(pieces)}"')


@st.composite
def json_texts(draw: st.DrawFn) -> bytes:
    """Draw JSON with long numbers, repeated names, escapes, lone surrogates and whitespace."""

    def spaced(text: str) -> str:
        return f"{draw(_SPACE)}{text}{draw(_SPACE)}"

    def value(depth: int) -> str:
        kinds = ("number", "text", "word", "array", "object") if depth else ("number", "text")
        match draw(st.sampled_from(kinds)):
            case "number":
                return spaced(draw(_NUMBER))
            case "text":
                return spaced(draw(_TEXT))
            case "word":
                return spaced(draw(st.sampled_from(["null", "true", "false"])))
            case "array":
                items = [value(depth - 1) for _ in range(draw(st.integers(0, 3)))]
                return spaced(f"[{','.join(items) or draw(_SPACE)}]")
        names = [spaced(draw(st.sampled_from(['"a"', r'"\u0061"', '""', r'"\ud800"'])))
                 for _ in range(draw(st.integers(0, 3)))]  # fmt: skip
        members = [f"{name}:{value(depth - 1)}" for name in names]
        return spaced(f"{{{','.join(members) or draw(_SPACE)}}}")

    return value(3).encode()
