"""Compiled code and what was made of descriptions on disk, one directory per user.

The directory holds machine code that will be run, so no other user may be able to put anything
there: it must belong to the user, must not be open to writers, and must not be a link; the same
holds for each file, which is judged after it was opened. Whatever fails here only costs a
recompilation: it is reported as a warning and never stops a computation. Windows has no such modes
and no handles of folders: there the user's own folder for applications is trusted, which the system
keeps from others, and so is a folder that ``AXODE_CACHE`` names.

``AXODE_CACHE`` moves the directory; ``AXODE_CACHE=off`` disables it.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import re
import stat
import sys
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from axode.disk.atomic import ABANDONED, OpenFolder, replace_private_file

OFF = ("", "0", "off", "no", "none")  # what turns a cache off
MAGIC = b"axode-object 2\n"
LIMIT_BYTES = 256 * 2**20
_START = len(MAGIC) + hashlib.sha256().digest_size
_SUFFIX = ".o"
_OWN = re.compile(r"[0-9a-f]{64}\.o")  # only such files are ever read, written or removed
_UNFINISHED = re.compile(r"[0-9a-f]{64}(\.o)?\.[0-9a-f]{16}\.part")
_ROOM: dict[Path, int] = {}  # bytes that may be written to a folder before it is looked at again
_HAS_OWNERS = hasattr(os, "geteuid")  # of files, and folders that can be opened


class CacheWarning(UserWarning):
    """The cache of compiled objects cannot be used; code is compiled again."""


def cache_directory() -> Path | None:
    """Where objects are kept; None if disabled by ``AXODE_CACHE=off`` or if there is no home.

    A folder below the working folder, whose content may come from anyone, is not taken.
    """
    chosen = os.environ.get("AXODE_CACHE")
    if chosen is not None and chosen.lower() in OFF:
        return None
    try:
        folder = Path(chosen or os.environ.get("XDG_CACHE_HOME") or "").expanduser()
        if chosen is None:
            folder = (folder if folder.is_absolute() else _usual_folder()) / "axode"  # as XDG says
    except RuntimeError:  # no HOME, and a user whom the system does not know
        _warn("there is no home folder; set AXODE_CACHE to a folder of your own")
        return None
    if not folder.is_absolute():
        _warn(
            f"'{folder}' is looked for in the working folder, whose code must not run; give "
            "AXODE_CACHE a full path"
        )
        return None
    return folder


def _usual_folder() -> Path:
    """Return where programs of this user keep what they can make again."""
    if sys.platform == "win32":
        local = Path(os.environ.get("LOCALAPPDATA", ""))
        return local if local.is_absolute() else Path.home() / "AppData" / "Local"
    return Path.home() / ("Library/Caches" if sys.platform == "darwin" else ".cache")


@dataclass(frozen=True)
class ObjectCache:
    """Checked byte strings by key; the least recently used go when it is full."""

    directory: Path | None
    limit: int = LIMIT_BYTES

    def read(self, key: str) -> bytes | None:
        """Read the object stored under a key, if it is there and intact.

        Args:
            key: 64 hexadecimal digits.
        """
        if self.directory is None:
            return None
        path = self.directory / (key + _SUFFIX)
        try:
            with _open_folder(self.directory) as folder:
                data = _read_own(path.name, folder, self.limit)
        except FileNotFoundError:
            return None
        except OSError as error:
            _warn(f"cannot read {path}: {_reason(error)}")
            return None
        if data[:_START] != _sign(key, data[_START:]):
            _warn(f"{path} is damaged; compiling again")
            return None
        return data[_START:]

    def write(self, key: str, payload: bytes) -> None:
        """Store an object; readers see all of it or nothing."""
        if self.directory is None:
            return
        try:
            self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            with _open_folder(self.directory) as folder:
                replace_private_file(key + _SUFFIX, _sign(key, payload) + payload, folder)
                self._make_room(len(payload), folder)
        except OSError as error:
            _warn(f"cannot write to {self.directory}: {_reason(error)}")

    def _make_room(self, written: int, folder: OpenFolder) -> None:
        """Look at the folder when it may be full; it may hold many thousand files."""
        assert self.directory is not None
        left = _ROOM.get(self.directory, 0) - written
        _ROOM[self.directory] = left if left > 0 else self._evict(folder) // 2  # others write too

    def _evict(self, folder: OpenFolder) -> int:
        """Remove what was not used for longest, if there is too much; how much room is left."""
        files = []
        for name in folder.names():
            place = folder.name(name)
            with contextlib.suppress(OSError):  # another process may evict as well
                status = os.stat(place, dir_fd=folder.handle, follow_symlinks=False)
                if _OWN.fullmatch(name):
                    files.append((status.st_mtime, status.st_size, name))
                elif _UNFINISHED.fullmatch(name) and time.time() - status.st_mtime > ABANDONED:
                    os.unlink(place, dir_fd=folder.handle)
        total = sum(size for _, size, _ in files)
        nearly_full = total > 15 * self.limit // 16  # then make room for a good while
        wanted = 3 * self.limit // 4 if nearly_full else self.limit
        for _, size, name in sorted(files):
            if total <= wanted:
                break
            with contextlib.suppress(OSError):
                os.unlink(folder.name(name), dir_fd=folder.handle)
            total -= size
        return self.limit - total


@contextlib.contextmanager
def _open_folder(directory: Path) -> Iterator[OpenFolder]:
    """Open a folder that only this user can write to; nothing about it is repaired.

    Raises:
        PermissionError: if it is a link, belongs to another user or is open to others.
    """
    if directory.is_symlink():
        raise PermissionError(f"{directory} is a link; name the folder itself in AXODE_CACHE")
    if not _HAS_OWNERS:
        if not directory.is_dir():
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        yield OpenFolder(directory, None)
        return
    folder = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        _require_private(os.fstat(folder), str(directory), "chmod 700 it if it is yours alone")
        yield OpenFolder(directory, folder)
    finally:
        os.close(folder)


def _require_private(status: os.stat_result, name: str, remedy: str) -> None:
    if not _HAS_OWNERS:
        return
    if status.st_uid != os.geteuid():
        raise PermissionError(f"{name} belongs to another user")
    if status.st_mode & 0o022:
        mode = stat.S_IMODE(status.st_mode)
        raise PermissionError(f"others can write to {name} (mode {mode:o}); {remedy}")


def _read_own(name: str, folder: OpenFolder, limit: int) -> bytes:
    """Read a file that only this user can have written."""
    flags = os.O_RDONLY | getattr(os, "O_BINARY", 0)
    flags |= getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    handle = os.open(folder.name(name), flags, dir_fd=folder.handle)
    with os.fdopen(handle, "rb") as file:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise PermissionError(f"{name} is not a plain file")
        _require_private(status, name, "remove it")
        if status.st_size > limit + _START:
            raise PermissionError(f"{name} is larger than the whole cache may be; remove it")
        data = file.read()
        with contextlib.suppress(OSError):
            os.utime(handle if _HAS_OWNERS else folder.name(name))  # recently used
        return data


def _sign(key: str, payload: bytes) -> bytes:
    """Begin a file with what only this payload under this key has."""
    return MAGIC + hashlib.sha256(key.encode() + payload).digest()


def _reason(error: OSError) -> str:
    return error.strerror or str(error)


def _warn(reason: str) -> None:
    warnings.warn(f"Compiled code is not cached: {reason}.", CacheWarning, stacklevel=4)
