"""The server behind the page: where it listens, and that it listens nowhere else."""

from __future__ import annotations

import contextlib
import io
import socket
import warnings
from typing import Any

from axode.errors import InvalidArgument, NotApplicable
from axode.show.viewer.guard import LOCAL, Guard, guard_server

FIRST_PORT = 8080
TRIED = 100  # ports after it


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
    try:
        import viser
    except ImportError as error:
        raise NotApplicable(
            "the viewer needs viser, which is not installed.\n  Remedy: pip install axode[view]"
        ) from error
    _refuse_strange(host)
    if host not in LOCAL:
        warnings.warn(
            f"host {host}: anyone who reaches this machine sees the viewer and may drive it; "
            "127.0.0.1, the default, keeps it to this machine",
            stacklevel=3,
        )
    chosen = _free_port(host) if port is None else _asked_port(host, port)
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


def _asked_port(host: str, port: int) -> int:
    if not 0 <= port < 65536:
        raise InvalidArgument(f"port: expected a number from 0 to 65535, got {port}")
    if port and not _is_free(host, port):
        raise _port_in_use(host, port)
    return port


def _port_in_use(host: str, port: int) -> InvalidArgument:
    return InvalidArgument(
        f"port {port} on {host} is in use.\n  Remedy: close what uses it, name another one, or "
        "name none and get the next that is free"
    )


def _free_port(host: str) -> int:
    for port in range(FIRST_PORT, FIRST_PORT + TRIED):
        if _is_free(host, port):
            return port
    return 0  # whichever the system gives


def _refuse_strange(host: str) -> None:
    if not _is_free(host, 0):
        raise InvalidArgument(
            f"host: '{host}' is no address of this machine.\n  Remedy: 127.0.0.1 for this machine "
            "only, 0.0.0.0 for all who reach it"
        )


def _is_free(host: str, port: int) -> bool:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
        return True
    except OSError:
        return False
