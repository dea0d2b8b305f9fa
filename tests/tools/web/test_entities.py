"""Topics, their keys by name and tag, and the events and snapshots of a key."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import pytest
from support import browser as browsers
from support.browser import complaints, text
from support.daemon.archives import ServedArchive, serve
from support.daemon.command_line import CommandLine
from support.daemon.control_rig import await_true
from support.web import WebService

from aerotape.codecs.entity.actions import Event
from aerotape.errors import ConfigurationError, EntityError, StorageError
from aerotape.tools._web import journals as journals_module
from aerotape.tools._web import topics as module
from aerotape.tools._web.journals import Journals
from aerotape.tools._web.observed import ObservedArchive
from aerotape.tools._web.topics import Topics, parse_place

API = "/api/v1/entities"
HOSTILE = "<b>../k&x=1</b>"
COUNT = 40
SIZE = 750_000  # in hexadecimal two of them do not fit into an answer
LARGE = "aeron:ipc?term-length=8m"
SEGMENTS = {"aeron.archive.segment.file.length": str(8 << 20)}


@dataclass(frozen=True)
class Filled:
    """An archive with topics."""

    served: ServedArchive
    topics: Topics


@pytest.fixture(scope="module")
def filled() -> Iterator[Filled]:
    """Topic `orders` of two partitions: 40 keys, and one with a hostile name and snapshots."""
    with serve("aerotape", SEGMENTS) as served, served.connect() as client:
        with client.entities("orders", 2, channel=LARGE, origin="till 1") as orders:
            for number in range(COUNT):
                tags = ("even",) if number % 2 == 0 else ()
                orders.append(f"order-{number}", [Event(1, b"opened", "text", tags)])
            events = [Event(n, b'{"price": 2.50}', "json", ("buy",)) for n in range(1, 121)]
            orders.append(HOSTILE, events)
            orders.save_snapshot(HOSTILE, 100, b'{"open": 1}', "json")
            orders.save_snapshot(HOSTILE, 119, b'{"open": "<i>"}', "json")
            orders.delete("order-3", 1)
            orders.purge("order-4")
            orders.read("order-5")  # a mark, which is no change
        with client.entities("trades", channel=LARGE) as trades:
            trades.append("t", [Event(1, b"x" * SIZE, "binary")])
            trades.save_snapshot("t", 1, b"y" * SIZE, "binary")
        yield Filled(served, Topics(ObservedArchive(served.archive_dir)))


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search takes as long as it needs."""
    monkeypatch.setattr(module, "_SEARCH_S", 600.0)


def names(rows: list[dict[str, Any]]) -> list[str]:
    return [each["key"] for each in rows]


def everything(topics: Topics, **selection: Any) -> list[str]:
    """Return the keys that searches find, each going on where the last one has ended."""
    found, before = list[str](), ""
    while True:
        part = topics.keys("orders", before=parse_place(before), **selection)
        assert part.problems == []
        found += names(part.keys)
        before = part.place
        if not before:
            return found


def test_topics(filled: Filled) -> None:
    """With the length of their logs."""
    orders, trades = filled.topics.listed()
    assert (orders["topic"], orders["partitions"], orders["problem"]) == ("orders", 2, "")
    assert (trades["topic"], trades["type"]) == ("trades", "VD_JOURNAL")
    assert trades["recorded_bytes"] > 2 * SIZE


def test_keys_that_changed_last_are_first(filled: Filled) -> None:
    """Each once, with its last change; marks are none."""
    found = filled.topics.keys("orders")
    assert found.place == "" and found.left_bytes == 0
    assert len(names(found.keys)) == len(set(names(found.keys))) == COUNT + 1
    times = [each["timestamp_ms"] for each in found.keys]
    assert times == sorted(times, reverse=True)
    rows = {each["key"]: each for each in found.keys}
    assert rows["order-3"]["action"] == "delete" and rows["order-3"]["to_seq_nr"] == 1
    assert rows["order-4"]["action"] == "purge"
    assert (rows[HOSTILE]["action"], rows[HOSTILE]["to_seq_nr"]) == ("snapshot", 119)
    assert rows["order-6"]["tags"] == ["even"] and rows["order-6"]["origin"] == "till 1"


def test_a_search_goes_on(filled: Filled, monkeypatch: pytest.MonkeyPatch) -> None:
    """By parts of keys and by tags, whatever fits into an answer; nothing is found twice."""
    wanted = names(filled.topics.keys("orders").keys)
    assert everything(filled.topics, key="order-3") == [n for n in wanted if "order-3" in n]
    even = {f"order-{number}" for number in range(0, COUNT, 2)}
    assert set(everything(filled.topics, tag="even")) == even
    assert everything(filled.topics, tag="eve") == []
    assert everything(filled.topics, tag="even", key="order-1") == [
        each for each in wanted if each in even and "order-1" in each
    ]
    assert everything(filled.topics, key="none") == []
    monkeypatch.setattr(module, "_WINDOW", 4_096)
    assert names(filled.topics.keys("orders").keys) == wanted
    monkeypatch.setattr(module, "_SEARCH_S", 0.0)
    assert set(everything(filled.topics)) == set(wanted)
    monkeypatch.setattr(module, "_SEARCH_S", 600.0)
    monkeypatch.setattr(module, "_MAX_SCANNED", 1_000)
    part = filled.topics.keys("orders")
    assert 1_000 <= part.searched_bytes < 64_000 and part.left_bytes > 0
    assert set(everything(filled.topics)) == set(wanted)
    monkeypatch.setattr(module, "_MAX_MERGED", 1)
    assert set(everything(filled.topics, limit=7)) == set(wanted)


def test_what_is_refused(filled: Filled) -> None:
    with pytest.raises(EntityError, match="topic none has no recording"):
        filled.topics.keys("none")
    with pytest.raises(ConfigurationError, match="not a topic's name"):
        filled.topics.keys("../x")
    for text_ in ("x", "1", "1:", "1:2,", "1:-2", "1:2;3:4", "9" * 30 + ":1"):
        with pytest.raises(ConfigurationError, match="before="):
            parse_place(text_)
    assert filled.topics.keys("orders", before={7: 1, 0: 1 << 62}).keys  # others' positions


def test_rest(filled: Filled) -> None:
    """The same as JSON, a journal with its latest snapshot, in 2 MiB."""
    with WebService(CommandLine(filled.served), filled.served.archive_dir) as web:
        assert web.get(API).json == filled.topics.listed()
        found = web.get(f"{API}/orders?limit=30").json
        keys = names(found["keys"])
        assert len(keys) <= 30
        while found["before"]:
            found = web.get(f"{API}/orders?before={found['before']}").json
            keys += names(found["keys"])
        assert len(set(keys)) == COUNT + 1
        assert web.get(f"{API}/orders?tag=buy").json["keys"][0]["key"] == HOSTILE
        assert [web.get(f"{API}/none{key}").status for key in ("", "/a")] == [404, 404]
        page = web.get("/entities/none/journal?key=a", Accept="text/html")
        assert page.status == 404 and "topic none has no recording" in page.text
        assert web.get(f"{API}/orders?before=x").status == 400
        found = web.get(f"{API}/orders/{quote(HOSTILE, safe='')}?from=119").json
        assert [each["seq_nr"] for each in found["events"]] == [119, 120]
        assert (found["snapshot"]["seq_nr"], found["snapshot"]["payload"]) == (
            119,
            {"open": "<i>"},
        )
        assert web.get(f"{API}/orders/order-5").json["snapshot"] is None
        large = web.get(f"{API}/trades/t").json
        assert (large["snapshot"]["payload"], large["snapshot"]["payload_bytes"]) == (None, SIZE)
        assert large["events"][0]["payload"] == (b"x" * SIZE).hex()


def test_a_journal_is_read_without_the_archive(filled: Filled) -> None:
    """As a client reads it; nothing is written to its log."""
    journals = Journals(ObservedArchive(filled.served.archive_dir))
    logs = filled.topics.listed()
    keys = (HOSTILE, "order-3", "order-4", "order-5", "none")
    found = [journals.read("orders", key, 1, 1_000, 1 << 20) for key in keys]
    assert filled.topics.listed() == logs
    with (
        filled.served.connect() as client,
        client.entities("orders", channel=LARGE) as orders,
    ):
        for key, journal in zip(keys, found, strict=True):
            assert journal.events == list(orders.read(key))
            assert (journal.last, journal.snapshot) == (orders.pointer(key), orders.snapshot(key))
    few = journals.read("orders", HOSTILE, None, 50, 20)
    assert [each.seq_nr for each in few.events] == [71]


def test_a_log_is_read_for_a_limited_time(
    filled: Filled, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What takes longer is refused, with a way to do it."""
    monkeypatch.setattr(journals_module, "_READ_S", 0.0)
    journals = Journals(ObservedArchive(filled.served.archive_dir))
    with pytest.raises(StorageError, match=r"longer than 0 s, with .* left: `aerotape entity"):
        journals.read("trades", "t", 1, 1, 1)


@pytest.mark.skipif(not browsers.IS_INSTALLED, reason="chromium is not installed")
def test_pages(filled: Filled, page: Any) -> None:
    """From the topics to a key found by its tag, its snapshot, and its events to both ends."""

    def go(selector: str) -> None:
        page.execute_script("document.querySelector(arguments[0]).click()", selector)

    def numbers() -> list[int]:
        script = "return [...document.querySelectorAll('.events tbody tr')]"
        found = page.execute_script(f"{script}.map(each => each.cells[0].textContent)")
        return [int(each) for each in found]

    with WebService(CommandLine(filled.served), filled.served.archive_dir) as web:
        page.get(f"{web.url}entities")
        assert text(page, "tbody a") == "orders"
        go("tbody a")
        await_true(lambda: text(page, "h1") == "Topic orders")
        page.execute_script(
            """
            document.querySelector("[name=tag]").value = "buy";
            document.querySelector("form").requestSubmit();
            """
        )
        await_true(lambda: "tag=buy" in page.current_url and text(page, "tbody a") == HOSTILE)
        assert page.execute_script("return document.querySelectorAll('tbody tr').length") == 1
        go("tbody a")
        await_true(lambda: numbers() == list(range(71, 121)))
        assert text(page, "h1") == HOSTILE
        assert text(page, "#state") == '{"open": "<i>"}'
        assert page.execute_script("return document.querySelectorAll('main b, main i').length") == 0
        go("#older")
        await_true(lambda: numbers() == list(range(21, 71)))
        go("#oldest")
        await_true(lambda: numbers() == list(range(1, 51)))
        go("#newer")
        await_true(lambda: numbers() == list(range(51, 101)))
        go("#newest")
        await_true(lambda: numbers() == list(range(71, 121)))
        page.get(f"{web.url}entities/orders/journal?key=order-5")
        assert text(page, "#no-snapshot") == "None was saved."
        page.get(f"{web.url}entities/none")
        assert "topic none has no recording" in text(page, ".failed")
        page.get(f"{web.url}entities/none/journal?key=a")
        assert "topic none has no recording" in text(page, ".failed")
        assert all("404" in each for each in complaints(page))
