"""Compiled objects on disk, one directory a user.

The directory holds machine code that will be run, so it must belong to the
user and to nobody else. Everything that goes wrong here only costs a
recompilation: it is told once as a warning and never stops a computation.

``AXODE_CACHE`` moves the directory; ``AXODE_CACHE=off`` disables it.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
import warnings
from dataclasses import dataclass
from pathlib import Path

MAGIC = b"axode-object 1\n"
LIMIT_BYTES = 256 * 2**20
_DIGEST_SIZE = hashlib.sha256().digest_size
_SUFFIX = ".o"
_ROOM: dict[Path, int] = {}  # bytes that may be written to a folder before it is looked at again


class CacheWarning(UserWarning):
    """The cache of compiled objects cannot be used; code is compiled afresh."""


def cache_directory() -> Path | None:
    """Where objects are kept; None if disabled by ``AXODE_CACHE=off``."""
    chosen = os.environ.get("AXODE_CACHE")
    if chosen is not None:
        return None if chosen.lower() in ("", "0", "off", "no", "none") else Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "axode"


@dataclass(frozen=True)
class ObjectCache:
    """Checked byte strings by key; the least recently used go when it is full."""

    directory: Path | None
    limit: int = LIMIT_BYTES

    def read(self, key: str) -> bytes | None:
        """The object stored under a key, if it is there and intact."""
        if self.directory is None:
            return None
        path = self.directory / (key + _SUFFIX)
        try:
            if not path.exists():
                return None
            self._refuse_foreign_directory(self.directory)
            data = path.read_bytes()
        except OSError as error:
            self._warn(f"cannot read {path}: {error}")
            return None
        start = len(MAGIC) + _DIGEST_SIZE
        payload = data[start:]
        if data[:start] != MAGIC + hashlib.sha256(payload).digest():
            self._warn(f"{path} is damaged; compiling afresh")
            return None
        with contextlib.suppress(OSError):
            os.utime(path)  # recently used
        return payload

    def write(self, key: str, payload: bytes) -> None:
        """Stores an object; readers see all of it or nothing."""
        if self.directory is None:
            return
        temporary = None
        try:
            self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._refuse_foreign_directory(self.directory)
            handle, temporary = tempfile.mkstemp(dir=self.directory, suffix=".part")
            with os.fdopen(handle, "wb") as file:
                file.write(MAGIC + hashlib.sha256(payload).digest() + payload)
            os.replace(temporary, self.directory / (key + _SUFFIX))
            temporary = None
            self._make_room(len(payload))
        except OSError as error:
            self._warn(f"cannot write to {self.directory}: {error}")
        finally:
            if temporary is not None:
                with contextlib.suppress(OSError):
                    os.unlink(temporary)

    def _make_room(self, written: int) -> None:
        """Look at the folder when it may be full; it may hold many thousand files."""
        assert self.directory is not None
        left = _ROOM.get(self.directory, 0) - written
        _ROOM[self.directory] = left if left > 0 else self._evict() // 2  # others write as well

    def _evict(self) -> int:
        """Remove what was not used for longest, if there is too much; how much room is left."""
        assert self.directory is not None
        files = []
        for path in self.directory.glob("*" + _SUFFIX):
            with contextlib.suppress(OSError):  # another process may evict as well
                status = path.stat()
                files.append((status.st_mtime, status.st_size, path))
        total = sum(size for _, size, _ in files)
        nearly_full = total > 15 * self.limit // 16  # then make room for a good while
        wanted = 3 * self.limit // 4 if nearly_full else self.limit
        for _, size, path in sorted(files):
            if total <= wanted:
                break
            with contextlib.suppress(OSError):
                path.unlink()
            total -= size
        return self.limit - total

    @staticmethod
    def _refuse_foreign_directory(directory: Path) -> None:
        """Others must not be able to put code there."""
        if not hasattr(os, "getuid"):
            return
        status = directory.stat()
        if status.st_uid != os.getuid():
            raise PermissionError(f"{directory} belongs to another user")
        if status.st_mode & 0o077:
            os.chmod(directory, 0o700)

    @staticmethod
    def _warn(reason: str) -> None:
        warnings.warn(f"Compiled code is not cached: {reason}.", CacheWarning, stacklevel=4)
