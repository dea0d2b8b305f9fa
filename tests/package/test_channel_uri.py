"""Channel URIs, compared with the Java archive's code."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import pytest
from support.jvm import java

from aerotape.channel_uri import ChannelUri, initial_position, recording_key, stripped_channel
from aerotape.errors import ConfigurationError

SOURCE = Path(__file__).with_name("StrippedChannel.java")

VALUES = {
    "tags": ("1", "1,2", ""),
    "endpoint": ("localhost:4040", "224.0.1.1:40456", "a=b"),
    "interface": ("127.0.0.1", "localhost/24"),
    "control": ("localhost:1",),
    "control-mode": ("manual", "dynamic", "response", "wild"),
    "mtu": ("8k", "1408"),
    "term-length": ("64k",),
    "init-term-id": ("-7",),
    "session-id": ("+5", "-9", "tag:7", "x", "2147483648", "tag:x"),
    "ttl": ("07", "255", "256", "-1"),
    "reliable": ("false",),
    "linger": ("5s",),
    "alias": ("a b", ""),
    "cc": ("cubic",),
    "fc": ("tagged,g:1/2,t:5s",),
    "gtag": ("-4", "9223372036854775808", "one"),
    "sparse": ("true",),
    "eos": ("false",),
    "tether": ("TRUE", "no"),
    "group": ("true", "false"),
    "rejoin": ("True", "0"),
    "ssc": ("true",),
    "so-sndbuf": ("1m", "100"),
    "so-rcvbuf": ("131072", "-1"),
    "rcv-wnd": ("128K", "3g", "1.5k", "k"),
    "media-rcv-ts-offset": ("reserved", "8", "a"),
    "channel-rcv-ts-offset": ("08",),
    "channel-snd-ts-offset": ("-16",),
    "response-endpoint": ("localhost:0",),
    "response-correlation-id": ("prototype", "-1", "-2", "77"),
    "stream-id": ("3", "x"),
    "pub-wnd": ("4k",),
    "unknown": ("thing",),
}
HAND_MADE = (
    "aeron:ipc",
    "aeron:udp",
    "aeron-spy:aeron:udp?endpoint=localhost:4040|mtu=8k",
    "aeron:udp?",
    "aeron:udp?a",
    "aeron:udp?a=b|",
    "aeron:udp?=b",
    "aeron:foo?a=b",
    "aeron:foo",
    "udp://localhost",
    "aeron:ipc?endpoint=a|endpoint=b",
    "aeron:udp?alias=" + "x" * 4095,
)


def random_uris(seed: int, count: int) -> list[str]:
    """Generate URIs with a few parameters each, in any order."""
    dice = random.Random(seed)
    uris = []
    for _ in range(count):
        names = dice.sample(sorted(VALUES), dice.randrange(1, 9))
        text = "|".join(f"{name}={dice.choice(VALUES[name])}" for name in names)
        uris.append(f"{dice.choice(('', 'aeron-spy:'))}aeron:{dice.choice(('udp', 'ipc'))}?{text}")
    return uris


def stripped_or_error(uri: str) -> str:
    try:
        return stripped_channel(uri)
    except ConfigurationError:
        return "!"


@pytest.mark.jvm
def test_stripped_channels_equal_those_of_the_java_archive() -> None:
    """For hundreds of valid and invalid URIs, the text equals Java's, or both refuse."""
    uris = [*HAND_MADE, *random_uris(seed=20250, count=600)]
    command = java.java_command(str(SOURCE))
    done = subprocess.run(
        command, input="\n".join(uris) + "\n", capture_output=True, text=True, timeout=60
    )
    answers = done.stdout.splitlines()
    assert len(answers) == len(uris), done.stderr
    expected = ["!" if answer.startswith("!") else answer for answer in answers]
    assert [stripped_or_error(uri) for uri in uris] == expected
    # Both valid and invalid URIs occur often enough.
    assert expected.count("!") > 50
    assert len(expected) - expected.count("!") > 200


def test_parsing_and_printing_retain_every_parameter() -> None:
    """A parsed URI is printed unchanged, including spy prefix and order."""
    text = "aeron-spy:aeron:udp?endpoint=a:1|mtu=8k|unknown=x=y|alias="
    uri = ChannelUri.parse(text)
    assert (uri.is_spy, uri.media, uri.get("unknown")) == (True, "udp", "x=y")
    assert str(uri) == text


@pytest.mark.parametrize("uri", ["aeron:udp?a", "aeron:tcp", "http://x", "aeron:udp?=1"])
def test_a_malformed_uri_is_named_in_the_error(uri: str) -> None:
    """The error contains the URI."""
    with pytest.raises(ConfigurationError, match=r"aeron|http") as caught:
        ChannelUri.parse(uri)
    assert uri in str(caught.value)


def test_added_parameters_are_in_order() -> None:
    """Parameters added for a replay are printed in Aeron's order, with the initial position."""
    channel = stripped_channel(
        "aeron:udp?endpoint=a:1|linger=9s|session-id=4",
        **initial_position(5 * 65536 + 96, -3, 65536),
        mtu=1408,
        linger=5_000_000_000,
        sparse=True,
    )
    assert channel == (
        "aeron:udp?endpoint=a:1|mtu=1408|term-length=64k|init-term-id=-3|term-id=2"
        "|term-offset=96|session-id=4|linger=5s|sparse=true"
    )


def test_term_ids_wrap_around() -> None:
    """A position beyond the largest term id continues at the smallest."""
    assert initial_position(65536, 2**31 - 1, 65536)["term_id"] == -(2**31)


def test_recording_key_ignores_irrelevant_parameters() -> None:
    """MTU and alias do not distinguish recordings; endpoint and session id do."""

    def key(uri: str) -> str:
        return recording_key(7, ChannelUri.parse(uri))

    assert key("aeron:udp?endpoint=a:1|mtu=8k") == key("aeron:udp?alias=z|endpoint=a:1")
    assert key("aeron:udp?endpoint=a:1|session-id=1") != key("aeron:udp?endpoint=a:1")
    assert key("aeron:ipc") != recording_key(8, ChannelUri.parse("aeron:ipc"))
