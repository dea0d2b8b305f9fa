"""Record a stream and read it, for a trial of an installed wheel: needs nothing but aerotape.

usage: record_and_read.py FOLDER
"""

import sys
from pathlib import Path

import aerotape

folder = Path(sys.argv[1])
with (
    aerotape.Archive.launch(
        dir=folder / "archive",
        aeron_dir=folder / "driver",
        properties={
            "aeron.archive.control.channel": "aeron:udp?endpoint=localhost:0",
            "aeron.archive.replication.channel": "aeron:udp?endpoint=localhost:0",
        },
    ) as archive,
    aerotape.connect(aeron_dir=archive.aeron_dir, control_request_channel="aeron:ipc") as client,
    aerotape.Aeron(archive.aeron_dir) as aeron,
):
    client.start_recording("aeron:ipc", 1001)
    publication = aeron.add_publication("aeron:ipc", 1001)
    client.await_signal(aerotape.RecordingSignal.START)
    for number in range(3):
        publication.send(b"message %d" % number)
    publication.close()
    client.await_signal(aerotape.RecordingSignal.STOP)
found = [
    message.payload
    for recording in aerotape.open_directory(folder / "archive").recordings()
    for message in recording.messages()
]
assert found == [b"message 0", b"message 1", b"message 2"], found
print(f"aerotape {aerotape.__version__} of {aerotape.__file__} has recorded and read")
