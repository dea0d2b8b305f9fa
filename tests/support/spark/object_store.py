"""An S3-compatible server on loopback (moto's) that records its requests."""

from __future__ import annotations

import json
import re
import threading
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

BUCKET = "tapes"
_POLICY = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}],
}
_RANGE = re.compile(r"bytes=(\d+)-(\d+)")


class Request(NamedTuple):
    """A request to the server."""

    method: str
    key: str
    first: int
    last: int

    @property
    def length(self) -> int:
        """Length of the requested range, 0 without a range."""
        return self.last - self.first + 1 if self.last >= 0 else 0


@dataclass
class ObjectStore:
    """A running server with one bucket.

    Attributes:
        endpoint: its address, with the scheme.
        client: the boto3 client, to change the contents.
        access_key: of its only user.
        secret_key: of that user.
        requests: the requests since `requests` was cleared.
        before: called before a request is handled, for tests that change the contents meanwhile.
        loses: called before a request is handled; if it returns True the client gets an error of
            the server instead of the response.
        refuses: called for each request; if it returns True nothing is done but to refuse access.
    """

    endpoint: str
    client: Any
    access_key: str
    secret_key: str
    requests: list[Request] = field(default_factory=list)
    before: Callable[[Request], None] = lambda request: None
    loses: Callable[[Request], bool] = lambda request: False
    refuses: Callable[[Request], bool] = lambda request: False

    @property
    def options(self) -> dict[str, str]:
        """Storage options with valid credentials."""
        return {
            "endpoint": self.endpoint,
            "access_key_id": self.access_key,
            "secret_access_key": self.secret_key,
            "region": "us-east-1",
            # The default of five seconds can expire on a busy machine.
            "connect_timeout": "60",
            "timeout": "60",
        }

    @property
    def spark_options(self) -> dict[str, str]:
        """Storage options of the data source with valid credentials."""
        return {f"storage.{name}": value for name, value in self.options.items()}

    @property
    def environment(self) -> dict[str, str]:
        """Environment variables with valid credentials."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": self.access_key,
            "AWS_SECRET_ACCESS_KEY": self.secret_key,
            "AWS_REGION": "us-east-1",
        }

    @property
    def file_system(self) -> Any:
        """pyarrow's file system of the server, to read what was written."""
        from pyarrow.fs import S3FileSystem

        return S3FileSystem(
            endpoint_override=self.endpoint,
            access_key=self.access_key,
            secret_key=self.secret_key,
            region="us-east-1",
            connect_timeout=60,
            request_timeout=60,
        )

    def upload(self, folder: Path, prefix: str) -> str:
        """Copy a folder's files, and those below it, to the bucket; return the URL."""
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            self.client.put_object(
                Bucket=BUCKET,
                Key=f"{prefix}/{path.relative_to(folder)}",
                Body=path.read_bytes(),
            )
        self.requests.clear()
        return f"s3://{BUCKET}/{prefix}"

    def delete(self, prefix: str, name: str) -> None:
        """Delete a file."""
        self.client.delete_object(Bucket=BUCKET, Key=f"{prefix}/{name}")
        self.requests.clear()

    def gets(self) -> list[Request]:
        """Return the requests for bytes of segment files."""
        return [r for r in self.requests if r.method == "GET" and r.key.endswith(".rec")]

    @contextmanager
    def strict(self) -> Iterator[None]:
        """Check credentials in the block; outside it every request is allowed."""
        from moto import settings

        usual = settings.INITIAL_NO_AUTH_ACTION_COUNT
        settings.INITIAL_NO_AUTH_ACTION_COUNT = 0
        try:
            yield
        finally:
            settings.INITIAL_NO_AUTH_ACTION_COUNT = usual


@contextmanager
def serve() -> Iterator[ObjectStore]:
    """Run a server with an empty store in a thread."""
    import boto3
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import make_server

    store: list[ObjectStore] = []
    application = DomainDispatcherApplication(create_backend_app)

    def noting(environ: dict[str, Any], start_response: Any) -> Any:
        wanted = _RANGE.match(environ.get("HTTP_RANGE", ""))
        first, last = (int(wanted[1]), int(wanted[2])) if wanted else (0, -1)
        request = Request(environ["REQUEST_METHOD"], environ["PATH_INFO"], first, last)
        if store:
            store[0].requests.append(request)
            if store[0].refuses(request):
                start_response("403 Forbidden", [("Content-Length", "0")])
                return []
            store[0].before(request)
        if store and store[0].loses(request):
            b"".join(application(environ, lambda *_: None))
            start_response("500 Internal Server Error", [("Content-Length", "0")])
            return []
        return application(environ, start_response)

    server = make_server("127.0.0.1", 0, noting, threaded=True)
    endpoint = f"http://127.0.0.1:{server.port}"
    session = boto3.Session("nobody", "nothing", region_name="us-east-1")
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        iam = session.client("iam", endpoint_url=endpoint)
        iam.create_user(UserName="analyst")
        iam.put_user_policy(
            UserName="analyst", PolicyName="reads", PolicyDocument=json.dumps(_POLICY)
        )
        key = iam.create_access_key(UserName="analyst")["AccessKey"]
        credentials = key["AccessKeyId"], key["SecretAccessKey"]
        client = session.client(
            "s3",
            endpoint_url=endpoint,
            aws_access_key_id=credentials[0],
            aws_secret_access_key=credentials[1],
        )
        client.create_bucket(Bucket=BUCKET)
        store.append(ObjectStore(endpoint, client, *credentials))
        yield store[0]
    finally:
        # The server's state belongs to this process: the next server starts without it.
        forget = urllib.request.Request(f"{endpoint}/moto-api/reset", method="POST")
        urllib.request.urlopen(forget).close()
        server.shutdown()
        thread.join()
