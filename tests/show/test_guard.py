"""Only the viewer's own page, with the session's token, looks at a viewer or drives it."""

from __future__ import annotations

import random
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

import axode as ax
from axode import gallery

viser = pytest.importorskip("viser", reason="pip install axode[view]")
client = pytest.importorskip("websockets.sync.client")
from websockets.exceptions import ConnectionClosed, InvalidStatus  # noqa: E402

SUBPROTOCOL = f"viser-v{viser.__version__}"
GARBAGE = 40  # connections that send what nothing can be made of


@pytest.fixture(scope="module")
def viewer() -> Iterator[Any]:
    model = gallery.build("four_bar").derive().compile(target="interpreter")
    with ax.view(model, port=0, open_browser=False, block=False) as opened:
        yield opened


def get(viewer: Any, path: str, **headers: str) -> tuple[int, Any]:
    request = urllib.request.Request(f"http://127.0.0.1:{viewer.port}{path}", headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.status, answer.headers
    except urllib.error.HTTPError as error:
        return error.code, error.headers


def cookie(viewer: Any) -> str:
    status, headers = get(viewer, viewer.url.partition(str(viewer.port))[2])
    assert status == 200
    given = headers["Set-Cookie"]
    assert "HttpOnly" in given and "SameSite=Strict" in given
    return given.partition(";")[0]


def connect(viewer: Any, *, origin: str | None = "own", host: str = "", token: bool = True) -> Any:
    headers = {"Cookie": cookie(viewer)} if token else {}
    own = f"127.0.0.1:{viewer.port}"
    options: dict[str, Any] = {"sock": None}
    if host:  # the name in the request is not where the connection goes
        import socket

        options["sock"] = socket.create_connection(("127.0.0.1", viewer.port))
    return client.connect(
        f"ws://{host or own}",
        origin=f"http://{host or own}" if origin == "own" else origin,
        additional_headers=headers,
        subprotocols=[SUBPROTOCOL],
        open_timeout=20,
        **options,
    )


def test_the_printed_address_opens_the_page_and_its_connection(viewer: Any) -> None:
    with connect(viewer) as connection:
        assert connection.recv(timeout=20)


def test_each_session_has_a_token_of_its_own(viewer: Any) -> None:
    model = gallery.build("four_bar").derive().compile(target="interpreter")
    with ax.view(model, port=0, open_browser=False, block=False) as other:
        assert other.url.partition("token=")[2] != viewer.url.partition("token=")[2]
        assert len(other.url.partition("token=")[2]) >= 20


WRITTEN_OTHERWISE = ["/%2e", "/.%2f", "/%5c", "/%69ndex.html", "/%2findex.html", "/./%2E/?"]
WRITTEN_OTHERWISE += ["//", "/..;/", "/index.html#", "/%252e", "/assets/../", "/favicon.ico"]


@pytest.mark.parametrize(
    "path", ["/", "/index.html", "/?token=guess", "/?token=", *WRITTEN_OTHERWISE]
)
def test_a_page_without_the_token_is_not_served(viewer: Any, path: str) -> None:
    status, headers = get(viewer, path)
    assert status == 403 and "Set-Cookie" not in headers


@pytest.mark.parametrize("asked", ["websocket", "WebSocket", ",websocket", "h2c, websocket"])
def test_a_connection_without_the_token_is_not_made(viewer: Any, asked: str) -> None:
    """However it is asked for, and by whatever address: a list was not taken for a connection."""
    words = {"Connection": "Upgrade", "Sec-WebSocket-Protocol": SUBPROTOCOL}
    words |= {"Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Version": "13"}
    assert get(viewer, "/assets/x", Upgrade=asked, **words)[0] == 403


@pytest.mark.parametrize(
    "options",
    [
        {"token": False},
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:1"},
        {"host": "evil.example"},
        {"host": "127.0.0.1.evil.example"},
    ],
)
def test_strangers_are_refused(viewer: Any, options: dict[str, Any]) -> None:
    """Another page, a name that was made to point here, or somebody who only guessed the port."""
    with pytest.raises(InvalidStatus) as caught:
        connect(viewer, **options)
    assert caught.value.response.status_code in (403, 421)


def test_a_name_that_points_here_serves_nothing(viewer: Any) -> None:
    query = viewer.url.partition(str(viewer.port))[2]
    assert get(viewer, query, Host="evil.example")[0] == 421
    assert get(viewer, query, Host=f"localhost:{viewer.port}")[0] == 200


def test_garbage_leaves_one_line(viewer: Any, capfd: Any) -> None:
    dice = random.Random(3)
    for number in range(GARBAGE):
        try:
            with connect(viewer) as connection:
                connection.send("text" if number % 2 else dice.randbytes(dice.randrange(1, 200)))
                time.sleep(0.01)
        except ConnectionClosed:
            pass
    with connect(viewer) as connection:  # and others are served as before
        assert connection.recv(timeout=20)
    said = capfd.readouterr()
    assert said.err.count("\n") == 1 and "ignored an invalid message" in said.err
    assert "Traceback" not in said.out


def test_values_that_no_slider_can_have_do_no_harm(opened_anew: Any, capfd: Any) -> None:
    """Well-formed messages, as a page may send them, with any value for every part of the panel."""
    import msgspec
    from viser._messages import GuiUpdateMessage

    parts = list(opened_anew._server.gui._gui_input_handle_from_uuid)
    assert len(parts) > 3
    with connect(opened_anew) as connection:
        for part in parts:
            for value in ("text", None, float("nan"), 1e300, [], {"a": 1}):
                message = GuiUpdateMessage(uuid=part, updates={"value": value})
                connection.send(msgspec.msgpack.encode(message.as_serializable_dict()))
        time.sleep(0.5)
    assert "Traceback" not in capfd.readouterr().err
    assert opened_anew._clock.is_alive()


@pytest.fixture
def opened_anew() -> Iterator[Any]:
    model = gallery.build("four_bar").derive().compile(target="interpreter")
    with ax.view(model, port=0, open_browser=False, block=False) as opened:
        yield opened


def test_only_the_page_reports_keys_that_come_up(viewer: Any) -> None:
    from axode.show.viewer.server import RELEASED

    released: list[int] = []
    viewer._server.axode_guard.on_release = lambda: released.append(1)
    assert get(viewer, f"/{RELEASED}")[0] == 403 and not released
    assert get(viewer, f"/{RELEASED}", Cookie=cookie(viewer))[0] == 204 and released == [1]
