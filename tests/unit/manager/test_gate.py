"""Who comes in, and who does not."""

from collections.abc import Iterator

import pytest
from fastapi.testclient import TestClient

from tests.unit.manager.conftest import TOKEN, Manager
from unlinkabledfl.errors import ConfigError
from unlinkabledfl.manager import Settings

HERE = "http://localhost:8765"


def test_health_needs_no_token(manager: Manager) -> None:
    assert manager(token=None).get("/api/health").json()["status"] == "ok"


@pytest.mark.parametrize(
    "path", ["/api/runs", "/api/schema", "/api/presets", "/api/runs/x/stream", "/api/nowhere", "/api"]
)
@pytest.mark.parametrize("token", [None, "", "wrong", TOKEN + "x", TOKEN[:-1], "ünïcode"])
def test_without_the_token_there_is_nothing(manager: Manager, path: str, token: str | None) -> None:
    given = {} if token is None else {b"Authorization": f"Bearer {token}".encode()}

    answer = manager(token=None).get(path, headers=given)

    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert answer.json()["problem"].startswith("the token is missing or wrong")


def test_the_token_does_not_count_in_an_address(manager: Manager) -> None:
    assert manager(token=None).get(f"/api/runs?token={TOKEN}").status_code == 401


def test_a_browser_exchanges_the_token_for_a_cookie_that_its_scripts_cannot_read(manager: Manager) -> None:
    browser = manager(token=None)

    answer = browser.post("/api/session", json={"token": TOKEN})

    assert answer.status_code == 204
    cookie = answer.headers["set-cookie"]
    assert TOKEN not in cookie
    assert cookie.startswith("unlinkabledfl-8765=")
    assert {"HttpOnly", "SameSite=strict", "Path=/api"} <= {part.strip() for part in cookie.split(";")}
    assert browser.get("/api/runs").status_code == 200


def test_a_wrong_token_makes_no_cookie(manager: Manager) -> None:
    answer = manager(token=None).post("/api/session", json={"token": "wrong"})

    assert answer.status_code == 401
    assert "set-cookie" not in answer.headers


def test_logging_out_takes_the_cookie_back(manager: Manager) -> None:
    browser = manager(token=None)
    browser.post("/api/session", json={"token": TOKEN})

    browser.delete("/api/session")

    assert browser.get("/api/runs").status_code == 401


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ({"Origin": HERE}, 404),
        ({}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "https://elsewhere.example"}, 403),
        ({"Origin": "http://localhost:3000"}, 403),
        ({"Origin": "http://localhost:8765.elsewhere.example"}, 403),
    ],
)
def test_with_the_cookie_only_the_page_itself_may_change_anything(
    manager: Manager, origin: dict[str, str], status: int
) -> None:
    browser = manager(token=None)
    browser.post("/api/session", json={"token": TOKEN})

    assert browser.delete("/api/runs/none", headers=origin).status_code == status


def test_a_script_with_the_token_needs_no_origin(client: TestClient) -> None:
    assert client.delete("/api/runs/none").status_code == 404


@pytest.mark.parametrize(
    "host", ["elsewhere.example", "localhost.elsewhere.example", "", "127.0.0.1.nip.io:8765", "[::2]"]
)
def test_a_host_name_that_was_pointed_here_is_refused(client: TestClient, host: str) -> None:
    assert client.get("/api/runs", headers={"Host": host}).status_code == 421
    assert client.get("/", headers={"Host": host}).status_code == 421


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:80", "127.0.0.1:8765", "[::1]:8765"])
def test_this_machine_has_several_names(client: TestClient, host: str) -> None:
    assert client.get("/api/runs", headers={"Host": host}).status_code == 200


def test_a_name_that_the_operator_gave_is_one_too(manager: Manager) -> None:
    assert manager(names=("lab.example",)).get("/api/runs", headers={"Host": "lab.example"}).status_code == 200


def test_no_other_site_is_told_that_it_may_read(client: TestClient) -> None:
    asked = {"Origin": "https://elsewhere.example", "Access-Control-Request-Method": "POST"}

    for answer in (client.options("/api/runs", headers=asked), client.get("/api/runs", headers=asked)):
        assert not [name for name in answer.headers if name.startswith("access-control")]


def test_every_answer_carries_the_headers_of_a_careful_page(manager: Manager) -> None:
    client = manager(token=None)

    for path in ("/", "/api/runs", "/api/health", "/nowhere"):
        headers = client.get(path).headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "'unsafe-eval'" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
    assert client.get("/api/runs").headers["cache-control"] == "no-store"


def test_a_body_that_announces_too_much_is_not_read(manager: Manager) -> None:
    answer = manager(body_max_bytes=1_000).post("/api/scenario/validate", content=b"x" * 1_001)

    assert answer.status_code == 413
    assert answer.json()["problem"] == "a request may have at most 1,000 bytes"


def test_a_body_that_announces_nothing_is_cut_off(manager: Manager) -> None:
    def pieces() -> Iterator[bytes]:
        yield from [b'{"scenario": {}, "x": "'] + [b"x" * 100] * 20

    answer = manager(body_max_bytes=1_000).post(
        "/api/scenario/validate", content=pieces(), headers={"Content-Type": "application/json"}
    )

    assert answer.status_code == 413


@pytest.mark.parametrize("token", ["", "two words", "line\nbreak", "ümlaut", "x" * 513])
def test_a_token_that_cannot_stand_in_a_header_is_refused(folder: object, token: str) -> None:
    with pytest.raises(ConfigError, match="visible ASCII") as found:
        Settings(runs=folder, token=token)  # type: ignore[arg-type]
    assert token not in str(found.value) or not token


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.4", "::", "lab.example"])
def test_listening_elsewhere_takes_a_long_token(folder: object, host: str) -> None:
    with pytest.raises(ConfigError, match="at least 24 characters"):
        Settings(runs=folder, token="short", host=host)  # type: ignore[arg-type]
    Settings(runs=folder, token="x" * 24, host=host)  # type: ignore[arg-type]


def test_the_token_is_not_in_what_settings_say_of_themselves(folder: object) -> None:
    assert TOKEN not in repr(Settings(runs=folder, token=TOKEN))  # type: ignore[arg-type]
