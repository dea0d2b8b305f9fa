"""Properties of the embedded media driver: set in the driver, not in the environment."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.own_process import run_python

from aerotape import _native
from aerotape.errors import AeronError

# Property, value, and the line of the C driver's configuration that shows it.
SETTINGS = [
    ("aeron.dir.warn.if.exists", "true", "warn_if_dirs_exists=1"),
    ("aeron.dir.delete.on.shutdown", "on", "dirs_delete_on_shutdown=1"),
    ("aeron.threading.mode", "SHARED_NETWORK", "threading_mode=SHARED_NETWORK"),
    ("aeron.enable.experimental.features", "true", "enable_experimental_features=true"),
    ("aeron.thread.affinity.use.cpuset.offsets", "true", "thread_affinity_use_cpuset_offsets=true"),
    ("aeron.sender.cpu.affinity", "-1", "sender_cpu_affinity_no=-1"),
    ("aeron.conductor.buffer.length", "2097920", "to_driver_buffer_length=2097920"),
    ("aeron.counters.buffer.length", "2m", "counters_values_buffer_length=2097152"),
    ("aeron.error.buffer.length", "8M", "error_buffer_length=8388608"),
    ("aeron.loss.report.buffer.length", "2m", "loss_report_length=2097152"),
    ("aeron.term.buffer.length", "256k", "term_buffer_length=262144"),
    ("aeron.ipc.term.buffer.length", "65536", "ipc_term_buffer_length=65536"),
    ("aeron.term.buffer.sparse.file", "1", "term_buffer_sparse_file=1"),
    ("aeron.perform.storage.checks", "0", "perform_storage_checks=0"),
    ("aeron.low.file.store.warning.threshold", "1g", "low_file_store_warning_threshold=1073741824"),
    ("aeron.mtu.length", "1440", "mtu_length=1440"),
    ("aeron.publication.term.window.length", "32k", "publication_window_length=32768"),
    ("aeron.rcv.initial.window.length", "64k", "initial_window_length=65536"),
    ("aeron.spies.simulate.connection", "true", "spies_simulate_connection=1"),
    ("aeron.tether.subscriptions", "off", "tether_subscriptions=0"),
    ("aeron.driver.stream.session.limit", "77", "stream_session_limit=77"),
    ("aeron.driver.resource.free.limit", "7", "resource_free_limit=7"),
    ("aeron.publication.reserved.session.id.low", "-9", "publication_reserved_session_id_low=-9"),
    ("aeron.driver.timeout", "9999", "driver_timeout_ms=9999"),
    ("aeron.client.liveness.timeout", "11s", "client_liveness_timeout_ns=11000000000"),
    ("aeron.publication.unblock.timeout", "17s", "publication_unblock_timeout_ns=17000000000"),
    ("aeron.image.liveness.timeout", "7000ms", "image_liveness_timeout_ns=7000000000"),
    ("aeron.timer.interval", "90000us", "timer_interval_ns=90000000"),
    ("aeron.counters.free.to.reuse.timeout", "123ns", "counter_free_to_reuse_ns=123"),
    ("aeron.driver.receiver.cycle.threshold", "2s", "receiver_cycle_threshold_ns=2000000000"),
    ("aeron.socket.so_sndbuf", "65536", "socket_sndbuf_length=65536"),
    ("aeron.socket.so-rcvbuf", "131072", "socket_rcvbuf_length=131072"),
    ("aeron.socket.multicast.ttl", "0x10", "multicast_ttl=16"),
    (
        "aeron.udp.channel.transport.poller.socket.poll.limit",
        "3",
        "udp_channel_transport_poller_socket_poll_limit=3",
    ),
    ("aeron.sender.io.vector.capacity", "8", "sender_io_vector_capacity=8"),
    ("aeron.sender.wildcard.port.range", "20000 20010", 'sender_wildcard_port_range="20000 20010"'),
    ("aeron.max.resend", "99", "max_resend=99"),
    ("aeron.nak.unicast.delay", "2us", "nak_unicast_delay_ns=2000"),
    ("aeron.nak.unicast.retry.delay.ratio", "50", "nak_unicast_retry_delay_ratio=50"),
    ("aeron.receiver.group.consideration", "true", "receiver_group_consideration=1"),
    ("aeron.receiver.group.tag", "-5", "receiver_group_tag.value=-5"),
    ("aeron.flow.control.group.min.size", "2", "flow_control.group_min_size=2"),
    ("aeron.driver.resolver.name", "here", "resolver_name=here"),
    (
        "aeron.driver.reresolution.check.interval",
        "4s",
        "re_resolution_check_interval_ns=4000000000",
    ),
]

LAUNCH = """
import ast, sys
from aerotape import _native
properties = ast.literal_eval(sys.argv[1])
_native.MediaDriver.launch({"aeron.threading.mode": "SHARED", **properties}).close()
"""


def configuration(aeron_dir: Path, properties: dict[str, str], **variables: str) -> dict[str, str]:
    """Launch a driver in a separate process and return the configuration that it prints."""
    given = {"aeron.dir": str(aeron_dir), "aeron.print.configuration": "true", **properties}
    finished = run_python("-P", "-c", LAUNCH, given, timeout_s=120.0, **variables)
    assert finished.returncode == 0, finished.stderr
    lines = [line.strip().partition("=") for line in finished.stdout.splitlines()]
    return {name: value for name, _, value in lines}


def test_properties_reach_the_driver(aeron_dir: Path) -> None:
    """A property of each kind has its value in the configuration that the driver prints."""
    given = {name: value for name, value, _ in SETTINGS}
    printed = configuration(aeron_dir, given).items()
    shown = {f"{name}={value}" for name, value in printed}
    assert {line for _, _, line in SETTINGS} <= shown


def test_properties_override_the_environment(aeron_dir: Path) -> None:
    """Variables that the user has set count where no property is given."""
    printed = configuration(
        aeron_dir,
        {
            "aeron.mtu.length": "2048",
            "aeron.shared.idle.strategy.init.args": "3ms",
            # Not with the argument that the default strategy of this agent has.
            "aeron.driver.native.resource.agent.idle.strategy": "noop",
        },
        AERON_MTU_LENGTH="1440",
        AERON_IPC_MTU_LENGTH="1376",
        AERON_SHARED_IDLE_STRATEGY="sleep-ns",
    )
    assert (printed["mtu_length"], printed["ipc_mtu_length"]) == ("2048", "1376")
    assert printed["shared_idle_strategy_init_args"].endswith("3ms")
    assert printed["native_resource_agent_idle_strategy_init_args"] == "(nil)"


def test_the_environment_does_not_change(aeron_dir: Path) -> None:
    """While a driver starts, no thread finds its properties in the environment."""
    finished = run_python(
        "-P",
        "-c",
        """
import ctypes, sys, threading
from aerotape import _native
getenv = ctypes.CDLL(None).getenv
getenv.restype = ctypes.c_char_p
found, is_over = [], threading.Event()

def look():
    while not is_over.is_set():
        found.extend(filter(None, [getenv(b"AERON_MTU_LENGTH")]))

looking = threading.Thread(target=look)
looking.start()
for _ in range(3):
    properties = {"aeron.dir": sys.argv[1], "aeron.mtu.length": "1440",
                  "aeron.threading.mode": "SHARED", "aeron.dir.delete.on.shutdown": "true"}
    _native.MediaDriver.launch(properties).close()
is_over.set()
looking.join()
assert not found, found[:3]
""",
        aeron_dir,
    )
    assert finished.returncode == 0, finished.stderr


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("aeron.mtu.length", "7", "a size such as 64k from 32 to 65504"),
        ("aeron.mtu.length", "", "a size such as 64k from 32 to 65504"),
        ("aeron.term.buffer.length", "64q", "a size such as 64k from 1024 to 2147483647"),
        ("aeron.timer.interval", "soon", "a duration such as 500ms of at least 1000 ns"),
        ("aeron.max.resend", "12x", "an integer from 1 to 256"),
        ("aeron.socket.multicast.ttl", "256", "an integer from 0 to 255"),
        ("aeron.rejoin.stream", "maybe", "true or false"),
        ("aeron.threading.mode", "ALONE", "one of SHARED, SHARED_NETWORK, DEDICATED"),
        ("aeron.receiver.group.consideration", "no", "one of true, false, infer"),
    ],
)
def test_invalid_values_are_refused(aeron_dir: Path, name: str, value: str, expected: str) -> None:
    """The error has the property, its value and what was expected; no directory is created."""
    with pytest.raises(AeronError) as failed:
        _native.MediaDriver.launch({"aeron.dir": str(aeron_dir), name: value})
    assert str(failed.value).startswith(
        f"cannot configure the media driver: {name}={value}: expected {expected}"
    )
    assert not aeron_dir.exists()


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({"aeron.sender.idle.strategy": "hop"}, "aeron.sender.idle.strategy=hop"),
        ({"aeron.unicast.FlowControl.supplier": "hop"}, "aeron.unicast.FlowControl.supplier=hop"),
        ({"aeron.sender.wildcard.port.range": "9"}, "aeron.sender.wildcard.port.range=9"),
        ({"aeron.driver.resolver.interface": "localhost:1"}, "needs aeron.driver.resolver.name"),
        (
            {"aeron.nak.unicast.delay": "1s", "aeron.nak.unicast.retry.delay.ratio": "10000000000"},
            "exceeds 9223372036854775807 ns",
        ),
        ({"aeron.event.log": "all"}, "set AERON_EVENT_LOG before this process starts"),
        ({"aeron.driver.dynamic.libraries": "x"}, "it loads no libraries"),
    ],
)
def test_what_the_driver_cannot_use_is_refused(
    aeron_dir: Path, properties: dict[str, str], expected: str
) -> None:
    """The driver's own refusals name the property; so do settings without a setter."""
    with pytest.raises(AeronError, match="cannot configure the media driver") as failed:
        _native.MediaDriver.launch({"aeron.dir": str(aeron_dir), **properties})
    assert expected in str(failed.value)
