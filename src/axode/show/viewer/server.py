"""The server behind the page: where it listens, and whom it lets in.

A browser lets any page of the web talk to servers of this machine. The server therefore asks each
request where it is meant to go (`Host`, which a page cannot choose but a name server can), each
connection which page began it (`Origin`), and all for a token that only the printed address has.
"""

from __future__ import annotations

import contextlib
import gzip
import http
import http.cookies
import io
import logging
import secrets
import socket
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

from axode.errors import InvalidArgument, require_package

FIRST_PORT = 8080
TRIED = 100  # ports after it
RELEASED = "axode-key-released"  # what the page asks for when a key comes up
# Viser reports pressed keys, not released ones.
SCRIPT = f"""<script>
addEventListener("keyup", (event) => {{ if (/^[jl]$/i.test(event.key)) fetch("{RELEASED}"); }});
addEventListener("blur", () => fetch("{RELEASED}"));
</script>""".encode()
# Where a vehicle is driven, the keys that live pages have besides drive too, and leave the camera.
DRIVING = b"""<script>
const same = { KeyW: "i", KeyS: "k", KeyA: "j", KeyD: "l", KeyQ: "u", KeyE: "o",
  ArrowUp: "i", ArrowDown: "k", ArrowLeft: "j", ArrowRight: "l" };
function drive(event) {
  const key = same[event.code], own = "input, textarea, select, [contenteditable], [role=slider]";
  if (!key || !event.isTrusted || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest && event.target.closest(own)) return;
  event.stopImmediatePropagation();
  event.preventDefault();
  const given = { key, code: "Key" + key.toUpperCase(), bubbles: true, repeat: event.repeat };
  event.target.dispatchEvent(new KeyboardEvent(event.type, given));
}
for (const kind of ["keydown", "keyup"]) addEventListener(kind, drive, true);
</script>"""
LOCAL = ("127.0.0.1", "localhost", "::1")
_PATCHING = threading.Lock()
_WORDS = (
    "This viewer of Axode is protected. Open the whole address that it printed, with its token.\n"
)


def serve(host: str, port: int | None, label: str) -> Any:
    """Start a viser server that prints nothing.

    Args:
        host: Address to listen on.
        port: Port to listen on; the first free one from 8080 by default, any free one for 0.
        label: Title above the panel.

    Raises:
        NotApplicable: if viser is not installed.
        InvalidArgument: if the port asked for is taken.
    """
    viser = require_package("viser", "the viewer needs viser", "view")
    if not _is_free(host, 0):
        raise InvalidArgument(
            f"host: '{host}' is no address of this machine.\n  Remedy: 127.0.0.1 for this machine "
            "only, 0.0.0.0 for all who reach it"
        )
    if host not in LOCAL:
        warnings.warn(
            f"host {host}: anyone who reaches this machine sees the viewer and may drive it; "
            "127.0.0.1, the default, keeps it to this machine",
            stacklevel=3,
        )
    chosen = port
    if chosen is None:
        ports = range(FIRST_PORT, FIRST_PORT + TRIED)
        chosen = next((one for one in ports if _is_free(host, one)), 0)  # 0: as the system likes
    elif not 0 <= chosen < 65536:
        raise InvalidArgument(f"port: expected a number from 0 to 65535, got {port}")
    elif chosen and not _is_free(host, chosen):
        raise _port_in_use(host, chosen)
    guard = Guard(host)
    # viser prints a banner
    with contextlib.redirect_stdout(io.StringIO()), guard_server(guard):
        server = viser.ViserServer(host=host, port=chosen, label=label, verbose=False)
    if port and server.get_port() != port:  # taken in between
        stop(server)
        raise _port_in_use(host, port)
    server.gui.configure_theme(show_logo=False, show_share_button=False, brand_color=(26, 71, 186))
    server.gui.main_panel.dock_right()  # beside the picture and not on it
    server.axode_guard = guard
    return server


def stop(server: Any) -> None:
    """Stop a server and all its threads, without output."""
    with contextlib.redirect_stdout(io.StringIO()):
        server.stop()
        server._thread_executor.shutdown(wait=True)


def _port_in_use(host: str, port: int) -> InvalidArgument:
    return InvalidArgument(
        f"port {port} on {host} is in use.\n  Remedy: close what uses it, name another one, or "
        "name none and get the next that is free"
    )


def _is_free(host: str, port: int) -> bool:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            # On Windows, reuse would take the port from the server that listens there.
            alone = getattr(socket, "SO_EXCLUSIVEADDRUSE", socket.SO_REUSEADDR)
            probe.setsockopt(socket.SOL_SOCKET, alone, 1)
            probe.bind((host, port))
        return True
    except OSError:
        return False


class Guard:
    """Accepts or refuses requests by their address, page and token.

    Attributes:
        token: Secret of this session, for the address that is printed.
        on_release: Called when a key that steers comes up.
        drives: Whether a vehicle is driven.
    """

    on_release: Callable[[], None] | None = None
    drives = False

    def __init__(self, host: str) -> None:
        self.token = secrets.token_urlsafe(16)
        self._names = {*LOCAL, host} if host in LOCAL else None  # else any name of the machine
        self._cookie = f"axode_{secrets.token_hex(4)}"
        self._reported = False

    def refusal(self, headers: Any, path: str) -> http.HTTPStatus | None:
        """Return why a request is refused; None if it may pass."""
        host = headers.get("Host", "")
        if self._names is not None and urlsplit(f"//{host}").hostname not in self._names:
            return http.HTTPStatus.MISDIRECTED_REQUEST
        origin = headers.get("Origin")
        if origin is not None and urlsplit(origin).netloc != host:
            return http.HTTPStatus.FORBIDDEN
        return None if self._is_known(headers, path) else http.HTTPStatus.FORBIDDEN

    def _is_known(self, headers: Any, path: str) -> bool:
        """Return whether a request carries the token, in its address or in its cookie."""
        given = parse_qs(urlsplit(path).query).get("token", [])
        with contextlib.suppress(http.cookies.CookieError):
            cookie = http.cookies.SimpleCookie(headers.get("Cookie", "")).get(self._cookie)
            given += [cookie.value] if cookie else []
        return any(secrets.compare_digest(one.encode(), self.token.encode()) for one in given)

    def hand_out(self, headers: Any) -> None:
        """Give the page a cookie, so that its connection carries the token too."""
        value = f"{self._cookie}={self.token}; HttpOnly; SameSite=Strict; Path=/"
        headers["Set-Cookie"] = value
        headers["Referrer-Policy"] = "no-referrer"  # the address holds the token
        headers["X-Frame-Options"] = "DENY"

    def report(self, error: BaseException | None) -> None:
        """Report an invalid message once, in one line."""
        if not self._reported:
            self._reported = True
            what = type(error).__name__ if error is not None else "no error"
            print(
                f"Axode's viewer ignored an invalid message from a page ({what}); further ones "
                "are not reported.",
                file=sys.stderr,
                flush=True,
            )


def _add_script(response: Any, script: bytes) -> None:
    """Let the page report released keys, and drive; a page of another form stays unchanged."""
    packed = response.headers.get("Content-Encoding") == "gzip"
    text = gzip.decompress(response.body) if packed else response.body
    text = text.replace(b"</head>", script + b"</head>", 1)
    response.body = gzip.compress(text) if packed else text
    del response.headers["Content-Length"]
    response.headers["Content-Length"] = str(len(response.body))


@contextlib.contextmanager
def guard_server(guard: Guard) -> Iterator[None]:
    """Let a guard check all requests of the server that is started inside."""
    import websockets.asyncio.server as module

    real: Any = module.serve

    def serve(handler: Any, *arguments: Any, process_request: Any = None, **options: Any) -> Any:
        asked = _asking(guard, process_request)
        logger = _silent_logger()
        return real(
            _careful(guard, handler), *arguments, process_request=asked, logger=logger, **options
        )

    with _PATCHING:
        module.serve = serve  # type: ignore[assignment,misc]
        try:
            yield
        finally:
            module.serve = real  # type: ignore[misc]


def _asking(guard: Guard, process_request: Callable[..., Any] | None) -> Callable[..., Any]:
    def asked(connection: Any, request: Any) -> Any:
        try:
            refusal = guard.refusal(request.headers, request.path)
        except Exception:  # headers that are given twice, addresses that are none
            refusal = http.HTTPStatus.BAD_REQUEST
        if refusal is not None:
            return connection.respond(refusal, _WORDS)
        if urlsplit(request.path).path == f"/{RELEASED}":
            if guard.on_release is not None:
                guard.on_release()
            return connection.respond(http.HTTPStatus.NO_CONTENT, "")
        response = process_request(connection, request) if process_request else None
        if response is not None and "html" in response.headers.get("Content-Type", ""):
            guard.hand_out(response.headers)
            _add_script(response, SCRIPT + (DRIVING if guard.drives else b""))
        return response

    return asked


def _careful(guard: Guard, handler: Callable[..., Any]) -> Callable[..., Any]:
    """A handler of connections whose faults are one line; the connection is closed."""

    async def handled(connection: Any) -> None:
        import asyncio

        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: guard.report(context.get("exception")))
        try:
            await handler(connection)
        except Exception as error:
            guard.report(error)

    return handled


def _silent_logger() -> logging.Logger:
    logger = logging.getLogger("axode.viewer.server")
    logger.propagate = False
    logger.addHandler(logging.NullHandler())
    return logger
