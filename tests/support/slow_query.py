"""A TCP proxy that holds the first request with a certain text for a while."""

from __future__ import annotations

import socket
import threading
import time


class SlowQueryProxy:
    """Forwards connections to a port of the loopback interface. Use as a context manager.

    Attributes:
        port: where it listens.
        held: how many requests it has held: 0 or 1.
    """

    def __init__(self, target: int, text: bytes, seconds: float) -> None:
        """Start it.

        Args:
            target: the port that it forwards to.
            text: the first request that contains this is held.
            seconds: for how long.
        """
        self.held = 0
        self._target, self._text, self._seconds = target, text, seconds
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                asking = self._listener.accept()[0]
            except OSError:  # it is closed
                return
            answering = socket.create_connection(("127.0.0.1", self._target))
            for source, sink in ((asking, answering), (answering, asking)):
                threading.Thread(
                    target=self._forward, args=(source, sink, source is asking), daemon=True
                ).start()

    def _forward(self, source: socket.socket, sink: socket.socket, holds: bool) -> None:
        try:
            while part := source.recv(1 << 16):
                if holds and not self.held and self._text in part:
                    self.held = 1
                    time.sleep(self._seconds)
                sink.sendall(part)
            sink.shutdown(socket.SHUT_WR)
        except OSError:  # one side has closed it
            pass

    def __enter__(self) -> SlowQueryProxy:
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
