"""Folders that one process at a time may write to."""

from __future__ import annotations

import contextlib
import os
import weakref
from pathlib import Path

from axode.errors import FileError

try:
    import fcntl
except ModuleNotFoundError:
    fcntl = None  # type: ignore[assignment]
    import msvcrt  # of Windows

_PLAIN = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_held: weakref.WeakSet[FolderLock] = weakref.WeakSet()


class FolderLock:
    """Exclusive use of a folder until `release`, or until the process ends, however it ends.

    The lock file is empty and stays: what counts is that the system knows who holds it.

    Args:
        folder: The folder.

    Raises:
        FileError: if another process has it, or nothing can be written there, also because the lock
            file is a link.
    """

    def __init__(self, folder: Path) -> None:
        path = folder / "_lock"
        try:
            self._handle = os.open(path, os.O_RDWR | os.O_CREAT | _PLAIN, 0o666)
        except OSError as error:
            reason = "it is a link" if path.is_symlink() else error.strerror or error
            raise FileError(f"cannot write '{path}': {reason}") from error
        try:
            _lock(self._handle)
        except BlockingIOError as error:
            owner = _owner(os.fstat(self._handle).st_ino)
            self.release()
            raise FileError(
                f"'{folder}' is being written by another process{owner}.\n"
                "  Remedy: wait until it ends, or name another folder"
            ) from error
        except OSError:  # a file system without locks
            pass
        _held.add(self)

    def release(self) -> None:
        """Let others write; a second call does nothing."""
        handle, self._handle = self._handle, -1
        if handle >= 0:
            os.close(handle)

    def __del__(self) -> None:
        with contextlib.suppress(OSError, AttributeError):
            self.release()


def _lock(handle: int) -> None:
    """Lock a file until it is closed.

    Raises:
        BlockingIOError: if another process has locked it.
        OSError: if files cannot be locked.
    """
    if fcntl is not None:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return
    try:
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined, unused-ignore]
    except PermissionError as error:
        raise BlockingIOError(*error.args) from error


def _owner(inode: int) -> str:
    """Who holds the lock of a file, where the system lists it."""
    with contextlib.suppress(OSError, IndexError):
        for line in Path("/proc/locks").read_text("utf-8").splitlines():
            entries = line.split()
            if entries[1] == "FLOCK" and entries[5].rpartition(":")[2] == str(inode):
                return f" (process {entries[4]} of this machine)"
    return ""


def _release_in_child() -> None:
    """Close what a forked process has inherited: it would hold the locks of a parent that died."""
    for lock in list(_held):
        lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_release_in_child)
