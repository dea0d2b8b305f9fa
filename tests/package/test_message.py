"""Where a message begins, worked out from where it ends."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from aerotape.message import Message

HEADER = 32


def _framed_length(payload_length: int, mtu: int) -> int:
    """Bytes that a message takes in the log: frames of at most `mtu`, each aligned to 32."""
    max_payload = mtu - HEADER
    full, rest = divmod(payload_length, max_payload)
    aligned = (rest + HEADER + 31) // 32 * 32
    if full and not rest:
        return full * mtu
    return full * mtu + aligned


@given(data=st.data())
def test_position(data: st.DataObject) -> None:
    """Any message of any MTU anywhere in a term of any length is found where it begins."""
    term_length = 1 << data.draw(st.integers(16, 30), "term bits")
    longest = min(term_length // 8, 16 << 20)
    payload_length = data.draw(st.integers(0, longest), "payload length")
    mtu = data.draw(st.integers(2, 65504 // 32), "MTU / 32") * 32
    framed = _framed_length(payload_length, mtu)
    term_offset = data.draw(st.integers(0, (term_length - framed) // 32), "offset / 32") * 32
    term = data.draw(st.integers(0, 1 << 20), "term")
    begin = term * term_length + term_offset
    message = Message(bytes(payload_length), begin + framed, 1, 2, 3, term_offset, 0xC0, 0)
    assert message.position == begin
