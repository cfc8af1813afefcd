"""Downloads, from a server on the loopback interface that misbehaves as told."""

import hashlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from unlinkabledfl.errors import DatasetError
from unlinkabledfl.learning.datasets.download import RemoteFile, download
from unlinkabledfl.learning.datasets.progress import NoProgress

CONTENT = bytes(range(256)) * 4_000
FILE = RemoteFile(name="data.bin", size_bytes=len(CONTENT), md5=hashlib.md5(CONTENT).hexdigest())


@dataclass
class Behaviour:
    content: bytes = CONTENT
    has_ranges: bool = True
    cut_after_bytes: list[int] = field(default_factory=list)  # one for each of the first requests
    status: int = 200
    stalls: bool = False
    range_start_shift: int = 0
    ranges_asked: list[str | None] = field(default_factory=list)


@dataclass
class Server:
    url: str
    behaviour: Behaviour


@pytest.fixture
def server() -> Iterator[Server]:
    behaviour = Behaviour()
    released = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked = self.headers.get("Range")
            behaviour.ranges_asked.append(asked)
            if behaviour.stalls:
                released.wait(30)
                return
            if behaviour.status != 200:
                self.send_error(behaviour.status)
                return
            start = 0
            if asked is not None and behaviour.has_ranges:
                start = int(asked.removeprefix("bytes=").removesuffix("-")) + behaviour.range_start_shift
                if start >= len(behaviour.content):
                    self.send_error(416)
                    return
                self.send_response(206)
                last = len(behaviour.content) - 1
                self.send_header("Content-Range", f"bytes {start}-{last}/{len(behaviour.content)}")
            else:
                self.send_response(200)
            body = behaviour.content[start:]
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            cut = behaviour.cut_after_bytes.pop(0) if behaviour.cut_after_bytes else len(body)
            try:
                self.wfile.write(body[:cut])
            except OSError:
                pass  # the client has enough

        def log_message(self, format: str, *args: object) -> None:
            """Keep the test's output clean."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http_server:
        thread = threading.Thread(target=http_server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield Server(url=f"http://127.0.0.1:{http_server.server_port}", behaviour=behaviour)
        released.set()
        http_server.shutdown()
        thread.join()


class Watcher:
    def __init__(self) -> None:
        self.steps: list[tuple[str, int | None]] = []
        self.bytes_of_step: list[int] = []

    def begin(self, step: str, *, total_bytes: int | None) -> None:
        self.steps.append((step, total_bytes))
        self.bytes_of_step.append(0)

    def advance(self, count_bytes: int) -> None:
        self.bytes_of_step[-1] += count_bytes


def fetch(server: Server, into: Path, *, file: RemoteFile = FILE, timeout_s: float = 20.0) -> Path:
    return download(file, base_url=server.url, into=into, progress=NoProgress(), timeout_s=timeout_s)


def test_a_download_leaves_the_file_and_nothing_else(server: Server, tmp_path: Path) -> None:
    path = fetch(server, tmp_path / "new")

    assert path == tmp_path / "new" / "data.bin"
    assert path.read_bytes() == CONTENT
    assert list(path.parent.iterdir()) == [path]


def test_what_is_here_already_is_not_asked_for(server: Server, tmp_path: Path) -> None:
    (tmp_path / "data.bin").write_bytes(CONTENT)

    fetch(server, tmp_path)

    assert server.behaviour.ranges_asked == []


def test_a_truncated_body_is_continued_with_the_rest_only(server: Server, tmp_path: Path) -> None:
    server.behaviour.cut_after_bytes = [1_000, 5_000]

    path = fetch(server, tmp_path)

    assert path.read_bytes() == CONTENT
    assert server.behaviour.ranges_asked == [None, "bytes=1000-", "bytes=6000-"]


def test_a_later_run_goes_on_where_an_earlier_one_gave_up(server: Server, tmp_path: Path) -> None:
    server.behaviour.cut_after_bytes = [100] * 5
    with pytest.raises(DatasetError, match=r"500 of 1024000 bytes came.*run the command again"):
        fetch(server, tmp_path)
    assert not (tmp_path / "data.bin").exists()

    assert fetch(server, tmp_path).read_bytes() == CONTENT
    assert server.behaviour.ranges_asked[-1] == "bytes=500-"


def test_a_server_without_ranges_sends_all_of_it_again(server: Server, tmp_path: Path) -> None:
    (tmp_path / "data.bin.part").write_bytes(CONTENT[:1_000])
    server.behaviour.has_ranges = False

    assert fetch(server, tmp_path).read_bytes() == CONTENT


def test_a_range_that_was_not_asked_for_is_not_appended(server: Server, tmp_path: Path) -> None:
    (tmp_path / "data.bin.part").write_bytes(CONTENT[:1_000])
    server.behaviour.range_start_shift = 7

    assert fetch(server, tmp_path).read_bytes() == CONTENT
    assert server.behaviour.ranges_asked == ["bytes=1000-", None]


def test_an_old_part_of_another_file_is_thrown_away(server: Server, tmp_path: Path) -> None:
    (tmp_path / "data.bin.part").write_bytes(b"x" * 1_000)

    assert fetch(server, tmp_path).read_bytes() == CONTENT
    assert server.behaviour.ranges_asked == ["bytes=1000-", None]


@pytest.mark.parametrize("old_bytes", [len(CONTENT), len(CONTENT) + 1])
def test_a_part_as_long_as_the_file_but_not_the_file_is_thrown_away(
    server: Server, tmp_path: Path, old_bytes: int
) -> None:
    (tmp_path / "data.bin.part").write_bytes(bytes(old_bytes))

    assert fetch(server, tmp_path).read_bytes() == CONTENT


def test_a_wrong_checksum_leaves_nothing_and_says_so(server: Server, tmp_path: Path) -> None:
    server.behaviour.content = CONTENT[:-1] + b"!"

    with pytest.raises(DatasetError, match=rf"1024000 bytes came, and not those that were published \(MD5 {FILE.md5}"):
        fetch(server, tmp_path)

    assert list(tmp_path.iterdir()) == []


def test_an_endless_body_is_cut_at_one_byte_more_than_published(server: Server, tmp_path: Path) -> None:
    server.behaviour.content = CONTENT * 4

    with pytest.raises(DatasetError, match="1024001 bytes came"):
        fetch(server, tmp_path)


def test_a_server_whose_file_is_too_short_is_given_up_after_a_few_attempts(server: Server, tmp_path: Path) -> None:
    (tmp_path / "data.bin.part").write_bytes(CONTENT[:1_000])
    server.behaviour.content = CONTENT[:500]

    with pytest.raises(DatasetError, match="the server refuses to go on from where we stopped"):
        fetch(server, tmp_path)

    assert server.behaviour.ranges_asked == ["bytes=1000-", None, "bytes=500-", None, "bytes=500-"]


def test_a_missing_file_is_the_servers_answer(server: Server, tmp_path: Path) -> None:
    server.behaviour.status = 404

    with pytest.raises(DatasetError, match=r"data\.bin: the server answers 404 Not Found"):
        fetch(server, tmp_path)

    assert len(server.behaviour.ranges_asked) == 1


def test_a_server_that_says_nothing_is_given_up_after_the_timeout(server: Server, tmp_path: Path) -> None:
    server.behaviour.stalls = True

    with pytest.raises(DatasetError, match="timed out"):
        fetch(server, tmp_path, timeout_s=0.05)


def test_an_unreachable_server_is_asked_once(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"cannot be reached: .* \(is this machine online\?\)"):
        download(FILE, base_url="http://127.0.0.1:1", into=tmp_path, progress=NoProgress())


def test_an_address_that_is_a_local_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data.bin").write_bytes(CONTENT)

    with pytest.raises(DatasetError, match="this is no web address"):
        download(FILE, base_url=f"file://{tmp_path}", into=tmp_path / "new", progress=NoProgress())


def test_whoever_watches_sees_resumed_bytes_counted_in(server: Server, tmp_path: Path) -> None:
    (tmp_path / "data.bin.part").write_bytes(CONTENT[:1_000])
    watcher = Watcher()

    download(FILE, base_url=server.url, into=tmp_path, progress=watcher)

    assert watcher.steps == [("data.bin from 127.0.0.1", len(CONTENT))]
    assert watcher.bytes_of_step == [len(CONTENT)]
