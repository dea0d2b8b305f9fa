"""Object stores through obstore: options, credentials, errors, names of files and new objects."""

from __future__ import annotations

import multiprocessing
import pickle
import sys
import threading
import time
import urllib.error
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.context import BaseContext
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from support.builders.built_archive import add_recording, fill
from support.builders.segment_builder import SegmentBuilder
from support.spark import object_store
from support.spark.object_store import BUCKET, ObjectStore

from aerotape.catalog.location import NO_OPTIONS, StorageOptions
from aerotape.catalog.remote.object_folder import ObjectFolder, reach
from aerotape.catalog.remote.store_options import delta_options, s3_settings
from aerotape.errors import AerotapeError, CatalogError, ConfigurationError, StorageError
from aerotape.replay.offline.directory import open_directory
from aerotape.url_path import UrlPath

pytest.importorskip("obstore")
pytest.importorskip("moto")

PART_LENGTH = 11 << 20
"""More than obstore sends in one part."""

DATED = (("Last-Modified", "Sun, 29 Nov 2026 20:00:00 GMT"), ("ETag", '"1"'))


@pytest.fixture(scope="module")
def store() -> Iterator[ObjectStore]:
    with object_store.serve() as running:
        yield running


@pytest.fixture(autouse=True)
def no_credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Hide those of the user who runs the tests."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


@pytest.fixture(scope="module")
def archive_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("archive")
    add_recording(folder, fill(SegmentBuilder(), 5))
    return folder


@pytest.fixture(scope="module")
def url(store: ObjectStore, archive_dir: Path) -> str:
    """An archive that anyone may read."""
    url = store.upload(archive_dir, "archive")
    store.client.put_bucket_acl(Bucket=BUCKET, ACL="public-read")
    for key in keys_of(store, "archive/"):
        store.client.put_object_acl(Bucket=BUCKET, Key=key, ACL="public-read")
    return url


def count_messages(url: str, options: dict[str, str]) -> int:
    return len(list(open_directory(url, options).recording(0).messages()))


class Answer(NamedTuple):
    """An answer of a scripted server."""

    status: int
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()
    delay_s: float = 0.0


@contextmanager
def scripted(answer: Callable[[str], Answer]) -> Iterator[tuple[dict[str, str], list[str]]]:
    """Run a server on loopback that gives an answer for a request line.

    Yields:
        Options for it, and the request lines that it has received.
    """
    lines: list[str] = []
    ended = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def respond(self) -> None:
            lines.append(f"{self.command} {self.path}")
            given = answer(lines[-1])
            ended.wait(given.delay_s)
            self.send_response(given.status)
            for name, value in (*given.headers, ("Content-Length", str(len(given.body)))):
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(given.body)

        do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = respond

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    endpoint = f"http://127.0.0.1:{server.server_port}"
    keys = {"access_key_id": "AKIDENTIFIER", "secret_access_key": "not-to-be-shown"}
    try:
        yield {"endpoint": endpoint, "region": "eu-west-1", **keys}, lines
    finally:
        ended.set()
        server.shutdown()
        server.server_close()
        thread.join()


def error(code: str, message: str, more: str = "") -> bytes:
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f"<Error><Code>{code}</Code><Message>{message}</Message>{more}</Error>"
    ).encode()


# -- options and credentials -----------------------------------------------------------------------


def test_options_have_the_names_of_delta_rs_and_the_common_ones_of_pyarrow(
    store: ObjectStore, url: str
) -> None:
    """With and without prefix, in capitals; times as numbers of seconds or with a unit."""
    place = store.endpoint
    keys = store.access_key, store.secret_key
    for names in (
        ("aws_endpoint_url", "aws_access_key_id", "aws_secret_access_key", "aws_region"),
        ("AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION"),
        ("endpoint_override", "access_key", "secret_key", "region"),
    ):
        options = dict(zip(names, (place, *keys, "us-east-1"), strict=True))
        for times in ({}, {"connect_timeout": "9", "request_timeout": "9.5"}, {"timeout": "9s"}):
            with store.strict():
                assert count_messages(url, {**options, **times}) == 5
    with store.strict():
        bare = place.removeprefix("http://")
        assert count_messages(url, {**options, "endpoint_override": bare, "scheme": "http"}) == 5
    anonymous = {"endpoint": place, "anonymous": "true", "region": "us-east-1"}
    assert count_messages(url, anonymous) == 5


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"enpoint": "x"}, "enpoint"),
        ({"connect_timeout": "soon"}, "soon"),
        ({"max_retries": "few"}, "few"),
        ({"dfs_storage_authority": "127.0.0.1:1"}, r"give storage\.endpoint instead"),
        ({"access_key": "a", "aws_access_key_id": "b"}, "access_key_id is given by another name"),
        ({"role_arn": "arn:aws:iam::1:role/r"}, "name it in a profile in ~/.aws/config"),
        ({"access_key_id": "alone"}, "(?i)secret"),
    ],
)
def test_wrong_options_are_refused(
    store: ObjectStore, options: dict[str, str], reason: str
) -> None:
    """None is ignored, since data would be read from another place or as another user."""
    place = {"endpoint": store.endpoint}
    with pytest.raises(ConfigurationError, match=reason) as raised:
        open_directory(f"s3://{BUCKET}/archive", {**place, **options})
    assert "\n" not in str(raised.value)


def test_a_session_token_of_the_environment_is_not_added_to_given_keys(
    url: str, store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It belongs to the keys of the environment. delta-rs would add it, so that is refused."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "of-another-user")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "of-another-user")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "of-another-user")
    with store.strict():
        assert count_messages(url, store.options) == 5
    with pytest.raises(ConfigurationError, match="delta-rs would add AWS_SESSION_TOKEN"):
        delta_options(BUCKET, StorageOptions.of(store.options))


@pytest.fixture
def profile(store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A profile with keys, server and region in files of AWS."""
    folder = tmp_path / "home" / ".aws"
    folder.mkdir(parents=True)
    (folder / "credentials").write_text(
        f"[tapes]\naws_access_key_id = {store.access_key}\n"
        f"aws_secret_access_key = {store.secret_key}\n"
    )
    (folder / "config").write_text(
        f"[profile tapes]\nregion = us-east-1\nendpoint_url = {store.endpoint}\n"
    )
    for name in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.usefixtures("profile")
def test_a_profile_of_aws(store: ObjectStore, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """boto3 reads it, with its server; without boto3 the error says so."""
    monkeypatch.setenv("AWS_PROFILE", "tapes")
    with store.strict():
        assert count_messages(url, {}) == 5
    monkeypatch.setenv("AWS_PROFILE", "none")
    with pytest.raises(ConfigurationError, match=r"profile \(none\) could not be found"):
        open_directory(url)
    monkeypatch.setenv("AWS_PROFILE", "without-boto3")
    monkeypatch.setitem(sys.modules, "boto3", None)
    with pytest.raises(ConfigurationError, match=r"AWS_PROFILE.*pip install boto3"):
        open_directory(url)


@pytest.mark.usefixtures("profile")
def test_keys_of_the_environment_and_the_server_of_a_profile(
    store: ObjectStore, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As for AWS's own tools; a server that the environment names comes first."""
    monkeypatch.setenv("AWS_PROFILE", "tapes")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", store.access_key)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", store.secret_key)
    with store.strict():
        assert count_messages(url, {}) == 5
    assert delta_options(BUCKET, NO_OPTIONS)["endpoint"] == store.endpoint
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:9")
    assert "endpoint" not in delta_options(BUCKET, NO_OPTIONS)


@pytest.mark.usefixtures("profile")
def test_delta_rs_reads_profiles_for_any_server(
    store: ObjectStore, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It gets the server, and is made to look for credentials."""
    deltalake = pytest.importorskip("deltalake")
    pyarrow = pytest.importorskip("pyarrow")
    monkeypatch.setenv("AWS_PROFILE", "tapes")
    options = delta_options(BUCKET, NO_OPTIONS)
    with store.strict():
        table = pyarrow.table({"number": [1]})
        deltalake.write_deltalake(f"{url}-of-profile", table, storage_options=options)
        read = deltalake.DeltaTable(f"{url}-of-profile", storage_options=options)
        assert read.version() == 0


def test_the_region_of_a_bucket_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """AWS tells it to anyone, if no region and no server are given."""
    asked: list[str] = []

    def refuse(request: Any, timeout: float) -> None:
        asked.append(request.full_url)
        headers = Message()
        headers["x-amz-bucket-region"] = "ap-south-1"
        raise urllib.error.HTTPError(request.full_url, 403, "Forbidden", headers, None)

    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("urllib.request.urlopen", refuse)
    assert s3_settings("far", NO_OPTIONS)[0]["region"] == "ap-south-1"
    assert delta_options("far", NO_OPTIONS)["region"] == "ap-south-1"
    assert asked == ["https://s3.amazonaws.com/far"] * 2
    s3_settings("far", StorageOptions.of({"region": "us-west-2"}))
    s3_settings("far", StorageOptions.of({"endpoint": "https://minio.example"}))
    monkeypatch.setenv("AWS_REGION", "us-west-2")
    s3_settings("far", NO_OPTIONS)
    assert len(asked) == 2


def test_the_error_without_obstore_names_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "obstore", None)
    with pytest.raises(ConfigurationError, match=r"obstore is not installed.*\[remote\]"):
        open_directory("s3://without-obstore/archive", {"region": "us-east-1"})


def test_google_cloud_storage(store: ObjectStore, url: str) -> None:
    """Its protocol for objects is that of the test server; credentials are not tried."""
    options = {"endpoint": store.endpoint, "skip_signature": "true"}
    assert count_messages(url.replace("s3:", "gs:"), options) == 5
    options = {"google_base_url": store.endpoint, "google_skip_signature": "true"}
    assert count_messages(url.replace("s3:", "gcs:"), options) == 5


def test_credentials_that_obstore_does_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """google-auth reads those of workload identity federation; the error says so."""
    (tmp_path / "file.json").write_text('{"type": "external_account", "audience": "a"}')
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "file.json"))
    for name in ("google", "google.auth"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ConfigurationError, match="pip install google-auth"):
        open_directory("gs://tapes/archive")


@pytest.mark.parametrize(
    "place",
    ["abfs://tapes@account.dfs.core.windows.net/a b", "abfss://tapes/a b", "az://tapes/a b"],
)
def test_azure(place: str) -> None:
    """The container and the account are in the URL, or the account is an option."""
    with scripted(lambda line: Answer(200, b"schema", DATED)) as (options, lines):
        given = {"azure_storage_endpoint": f"{options['endpoint']}/account", "account_key": "a2V5"}
        if "@" not in place:
            given["account_name"] = "account"
        assert ObjectFolder(UrlPath(place), StorageOptions.of(given)).read("s.xml") == b"schema"
    assert lines == ["GET /account/tapes/a%20b/s.xml"]


# -- errors ----------------------------------------------------------------------------------------

_DETAILS = "<StringToSign>not-to-be-shown</StringToSign><AWSAccessKeyId>AKID</AWSAccessKeyId>"


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (Answer(403, error("InvalidAccessKeyId", "No such key.")), "InvalidAccessKeyId: No such"),
        (
            Answer(403, error("SignatureDoesNotMatch", "Check your key.", _DETAILS)),
            "SignatureDoesNotMatch: Check your key.",
        ),
        (
            Answer(403, error("RequestTimeTooSkewed", "The clocks differ too much.")),
            "RequestTimeTooSkewed: The clocks differ",
        ),
        (Answer(403, error("AccessDenied", "Access Denied")), "AccessDenied: Access Denied"),
        (Answer(400, error("ExpiredToken", "The token has expired.")), "ExpiredToken: The token"),
        (
            Answer(400, error("AuthorizationHeaderMalformed", "expecting 'us-east-2'")),
            "AuthorizationHeaderMalformed: expecting 'us-east-2'",
        ),
        (Answer(404, error("NoSuchBucket", "There is no such bucket.")), "NoSuchBucket: There is"),
        (Answer(301, error("PermanentRedirect", "Use another.")), "incorrectly configured region"),
        (Answer(307, headers=(("Location", "http://127.0.0.1:9/"),)), "Connection refused"),
        (Answer(403), "403 Forbidden"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_what_a_server_refuses_is_said_in_one_line(answer: Answer, reason: str) -> None:
    """The line has the place, the server's words, what to check and no secret."""
    with scripted(lambda line: answer) as (options, _):
        quick = StorageOptions.of({**options, "max_retries": "0"})
        folder = ObjectFolder(UrlPath("s3://tapes/a"), quick)
        calls: tuple[Callable[[], object], ...] = (folder.list, lambda: folder.read("x"))
        for call in calls:
            with pytest.raises(StorageError) as raised:
                call()
            text = str(raised.value)
            assert text.startswith("cannot read s3://tapes/a")
            assert reason in text
            assert "are endpoint, region and credentials right?" in text
            assert "\n" not in text
            assert "not-to-be-shown" not in text
            assert "AKID" not in text


def test_a_missing_object_is_not_an_error_of_the_storage(store: ObjectStore, url: str) -> None:
    """A bucket that does not exist is one, and no empty directory."""
    with pytest.raises(CatalogError, match="no catalog at"):
        open_directory(f"{url}/none", store.options)
    with pytest.raises(StorageError, match="NoSuchBucket"):
        open_directory("s3://no-such-bucket/archive", store.options)
    folder = ObjectFolder(UrlPath(url), StorageOptions.of(store.options))
    for call in (folder.read, folder.open_stream, lambda name: folder.open(name).read_at(0, 1)):
        with pytest.raises(FileNotFoundError):
            call("none")


def test_reading_works_without_the_permission_to_list() -> None:
    """The error of the list says that it is the list."""

    def answer(line: str) -> Answer:
        if "list-type" in line:
            return Answer(403, error("AccessDenied", "not authorized to perform: s3:ListBucket"))
        return Answer(200, b"data", DATED)

    with scripted(answer) as (options, _):
        folder = ObjectFolder(UrlPath("s3://tapes/a"), StorageOptions.of(options))
        assert folder.read("x") == b"data"
        with pytest.raises(StorageError, match=r"AccessDenied: not authorized.*s3:ListBucket"):
            folder.list()


def test_a_busy_server_is_asked_again(archive_dir: Path) -> None:
    """Until it has refused too often; how often can be chosen."""
    refused: list[str] = []

    def answer(line: str) -> Answer:
        refused.append(line)
        busy = Answer(503, error("SlowDown", "Please reduce your request rate."))
        return Answer(200, b"data", DATED) if len(refused) % 3 == 0 else busy

    with scripted(answer) as (options, lines):
        folder = ObjectFolder(UrlPath("s3://tapes/a"), StorageOptions.of(options))
        assert folder.read("x") == b"data"
        assert len(lines) == 3
        once = StorageOptions.of({**options, "max_retries": "1"})
        with pytest.raises(StorageError, match="SlowDown: Please reduce"):
            ObjectFolder(UrlPath("s3://tapes/a"), once).read("x")
        assert len(lines) == 5


def test_a_server_that_does_not_answer() -> None:
    """Its requests end after `timeout`, and are repeated."""
    with scripted(lambda line: Answer(200, delay_s=60)) as (options, lines):
        quick = StorageOptions.of({**options, "timeout": "0.2", "max_retries": "1"})
        begin = time.monotonic()
        with pytest.raises(StorageError, match=r"cannot read s3://tapes/a/x: .*timed out"):
            ObjectFolder(UrlPath("s3://tapes/a"), quick).read("x")
        assert time.monotonic() - begin < 30
        assert len(lines) == 2


def test_a_server_that_is_not_there() -> None:
    """The error has its address and the reason."""
    given = {"endpoint": "http://127.0.0.1:9", "skip_signature": "true", "max_retries": "1"}
    options = StorageOptions.of(given)
    with pytest.raises(StorageError, match=r"http://127.0.0.1:9/tapes/a/x .*Connection refused"):
        ObjectFolder(UrlPath("s3://tapes/a"), options).read("x")


def test_missing_credentials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says that there are none, though the last ones tried are those of a machine; and
    that profiles are not read, if they are not."""
    nowhere = {"metadata_endpoint": "http://127.0.0.1:9", "region": "eu-west-1", "max_retries": "0"}
    with pytest.raises(StorageError, match="no credentials were found") as raised:
        open_directory("s3://tapes/archive", nowhere)
    assert "boto3" not in str(raised.value)
    (tmp_path / "home" / ".aws").mkdir(parents=True)
    (tmp_path / "home" / ".aws" / "config").write_text("[default]\nregion = eu-west-1\n")
    with pytest.raises(StorageError, match="no credentials were found") as raised:
        open_directory("s3://tapes/archive", {**nowhere, "endpoint": "http://127.0.0.1:9"})
    assert "boto3" not in str(raised.value)
    monkeypatch.setitem(sys.modules, "boto3", None)
    with pytest.raises(StorageError, match=r"profiles of ~/\.aws are read by the package boto3"):
        open_directory("s3://tapes/another", nowhere)


# -- names -----------------------------------------------------------------------------------------

NAMES = ["a b", "ä-é-漢", "50%", "50%25", "a#b", "a+b&c=d", "~a[1]*{x}^`|", "a;b:c"]


@pytest.mark.parametrize("name", NAMES)
def test_names_mean_what_they_say(
    store: ObjectStore, archive_dir: Path, tmp_path: Path, name: str
) -> None:
    """The same folder in an object store, in a package of fsspec and locally: as it is written."""
    fsspec = pytest.importorskip("fsspec")
    # Of each name in another folder, so that one is not found for another.
    name = f"{NAMES.index(name)}/{name}"
    url = store.upload(archive_dir, f"names/{name}")
    memory = fsspec.filesystem("memory")
    local = tmp_path / name
    local.mkdir(parents=True)
    for path in archive_dir.iterdir():
        memory.pipe_file(f"/names/{name}/{path.name}", path.read_bytes())
        (local / path.name).write_bytes(path.read_bytes())
    assert count_messages(url, store.options) == 5
    assert count_messages(f"memory://names/{name}", {}) == 5
    assert count_messages(f"file://{local}", {}) == 5
    assert count_messages(str(local), {}) == 5


def test_marks_of_folders_are_not_files(store: ObjectStore, archive_dir: Path) -> None:
    """Consoles create empty objects that end with a slash."""
    url = store.upload(archive_dir, "marked")
    for key in ("marked/", "marked/inner/"):
        store.client.put_object(Bucket=BUCKET, Key=key, Body=b"")
    folder = ObjectFolder(UrlPath(url), StorageOptions.of(store.options))
    assert set(folder.list()) == {path.name for path in archive_dir.iterdir()}
    assert folder.folders(".") == ("inner",)
    bucket, path = reach(UrlPath(url), StorageOptions.of(store.options))
    assert {Path(each).name for each in bucket.find(path)} == set(folder.list())


# -- new objects -----------------------------------------------------------------------------------


def keys_of(store: ObjectStore, prefix: str) -> list[str]:
    found = store.client.list_objects_v2(Bucket=BUCKET, Prefix=prefix)
    return [each["Key"] for each in found.get("Contents", ())]


def test_a_new_object_appears_when_it_is_complete(store: ObjectStore) -> None:
    """Small and of several parts; one that is not completed leaves what was there, and no parts."""
    bucket, _ = reach(UrlPath(f"s3://{BUCKET}/new"), StorageOptions.of(store.options))
    for length in (10, PART_LENGTH):
        key = f"new/{length}"
        stream = bucket.open(key, "wb")
        stream.write(memoryview(bytes(length - 1)))
        stream.write(b"1")
        assert keys_of(store, key) == []
        stream.close()
        assert store.client.head_object(Bucket=BUCKET, Key=key)["ContentLength"] == length
        stream = bucket.open(key, "wb")
        stream.write(bytes(length + 5))
        stream.discard()
        assert store.client.head_object(Bucket=BUCKET, Key=key)["ContentLength"] == length
    uploads = store.client.list_multipart_uploads(Bucket=BUCKET)
    assert uploads.get("Uploads", []) == []


# -- processes -------------------------------------------------------------------------------------


def try_to_count(url: str, options: dict[str, str]) -> int | str:
    try:
        return count_messages(url, options)
    except AerotapeError as error:
        return str(error)


def count_in(context: BaseContext, url: str, options: dict[str, str]) -> int | str:
    with context.Pool(1) as pool:
        return pool.apply_async(try_to_count, (url, options)).get(timeout=120)


def test_a_forked_process_is_refused_and_does_not_hang(store: ObjectStore, url: str) -> None:
    """It has no threads of obstore; processes that are started otherwise read."""
    assert count_messages(url, store.options) == 5
    told = count_in(multiprocessing.get_context("fork"), url, store.options)
    assert isinstance(told, str)
    assert "this process was forked after object stores were read" in told
    assert "forkserver" in told
    assert count_in(multiprocessing.get_context("spawn"), url, store.options) == 5
    assert count_messages(url, store.options) == 5


def fork_first(url: str, options: dict[str, str], found: Any) -> None:
    found.put(count_in(multiprocessing.get_context("fork"), url, options))


def test_a_process_that_is_forked_before_reads(store: ObjectStore, url: str) -> None:
    """As the workers of Spark, whose daemon reads nothing itself."""
    context = multiprocessing.get_context("spawn")
    found = context.Queue()
    process = context.Process(target=fork_first, args=(url, store.options, found))
    process.start()
    assert found.get(timeout=120) == 5
    process.join()


def test_a_bucket_can_be_pickled(store: ObjectStore, url: str) -> None:
    """Without what was found in the environment."""
    bucket, path = reach(UrlPath(url), StorageOptions.of(store.options))
    again = pickle.loads(pickle.dumps(bucket))
    assert again == bucket
    assert again.find(path) == bucket.find(path)


def test_all_of_an_object_is_one_request(store: ObjectStore) -> None:
    """In a stream it takes one for its length, too."""
    data = bytes(range(256)) * 400
    store.client.put_object(Bucket=BUCKET, Key="whole/x", Body=data)
    folder = ObjectFolder(UrlPath(f"s3://{BUCKET}/whole"), StorageOptions.of(store.options))
    reads: tuple[tuple[Callable[[], bytes | None], list[str]], ...] = (
        (lambda: folder.read("x"), ["GET"]),
        (lambda: folder.open("x").read(), ["GET"]),
        (lambda: folder.open("x").read_at(0, 1 << 20), ["GET"]),
        (lambda: folder.open_stream("x").read(), ["HEAD", "GET"]),
    )
    for read, methods in reads:
        store.requests.clear()
        assert read() == data
        assert [request.method for request in store.requests] == methods
