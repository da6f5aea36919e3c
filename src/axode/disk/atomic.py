"""Write files whole or not at all; all of Axode writes files through this module."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import secrets
import stat
import time
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import BinaryIO

from axode.errors import FileError, shortened

try:
    import fcntl
except ModuleNotFoundError:  # Windows, where open files can be neither renamed nor removed
    fcntl = None  # type: ignore[assignment]
    import msvcrt  # of Windows

Bytes = bytes | bytearray | memoryview
_NUMBERED = 16  # drafts of one file, by processes that write it at the same time or were killed
ABANDONED = 3600.0  # [s] after which an unfinished file that is not locked is taken for abandoned
PATIENCE = 0.5  # [s] for readers and virus scanners to close the file that is replaced, on Windows


def as_path(path: object) -> Path:
    """Return a path, or raise a `FileError` that shows what was given instead."""
    if isinstance(path, str | PathLike):
        return Path(path)
    raise FileError(f"expected the path of a file, got {shortened(path)}.")


def system_path(path: object) -> Path:
    """Return a path that the system accepts.

    Raises:
        FileError: if it is no path.
        ValueError: if it holds a zero byte, with the same message on every version of Python.
    """
    found = as_path(path)
    if "\0" in str(found):
        raise ValueError("embedded null byte")
    return found


def write_atomically(path: str | PathLike[str], data: Bytes, *, follow: bool = True) -> None:
    """Write a file next to its place and rename it.

    Args:
        path: The file.
        data: All of it.
        follow: Whether a link is followed. It is replaced otherwise, as it must be where the name
            is not the user's.

    Raises:
        FileError: if the disk or the folder refuses; what was there before is still there.
    """
    try:
        replace_file(path, data, follow=follow)
    except (OSError, ValueError) as error:  # ValueError: a path with a zero byte in it
        reason = getattr(error, "strerror", None) or error
        raise FileError(f"cannot write '{path}': {reason}") from error


def replace_file(path: str | PathLike[str], data: Bytes, *, follow: bool = True) -> None:
    """Write a file next to its place and rename it; an interrupted write leaves nothing behind.

    A new file has the mode that the umask leaves. One that was there keeps its own, and no other
    user can read what takes its place before. A device or a pipe is written to directly, where
    links are followed. What a killed process left is removed when the same file is written again.

    Raises:
        OSError: if the disk or the folder refuses; what was there before is still there.
    """
    with _replaced(path, follow=follow) as file:
        file.write(data)


@contextlib.contextmanager
def stream_atomically(path: str | PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file that takes its place when the block ends, and is removed if the block fails.

    It can be read back and written at any place, as formats with an index need it.

    Raises:
        FileError: if the disk or the folder refuses; what was there before is still there.
    """
    try:
        system_path(path)
    except ValueError as error:
        raise FileError(f"cannot write '{path}': {error}") from error
    try:
        with _replaced(path) as file:
            yield file
    except OSError as error:
        raise FileError(f"cannot write '{path}': {error.strerror or error}") from error


@contextlib.contextmanager
def _replaced(path: str | PathLike[str], *, follow: bool = True) -> Iterator[BinaryIO]:
    target = system_path(path)
    target = Path(os.path.realpath(target)) if follow else target
    there = os.lstat(target) if os.path.lexists(target) else None
    found = there.st_mode if there else 0
    if stat.S_ISDIR(found):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if follow and found and not stat.S_ISREG(found):
        whole = io.BytesIO()
        yield whole
        _write_to_device(target, whole.getbuffer())
        return
    kept = there if stat.S_ISREG(found) else None
    draft, file = _create_draft(target, 0o600 if kept else 0o666)
    with _removed_on_failure(draft), file:
        yield file
        file.flush()
        os.fsync(file.fileno())
        if kept:
            _take_over(kept, draft if fcntl is None else file.fileno())
        if fcntl is None:
            file.close()
        _replace(draft, target)


def _take_over(there: os.stat_result, draft: Path | int) -> None:
    """Give a draft the permissions of a file, and its owner and group where the system allows it.

    Never the right to run as its owner: what is written here is data. Who may read is in doubt
    where the group cannot be kept, and the group's permissions are left out.
    """
    mode = there.st_mode & 0o777
    if hasattr(os, "chown"):
        with contextlib.suppress(OSError):  # only the superuser may
            os.chown(draft, there.st_uid, -1)
        try:
            os.chown(draft, -1, there.st_gid)
        except OSError:
            mode &= ~0o070
    os.chmod(draft, mode)


def _create_draft(target: Path, mode: int) -> tuple[Path, BinaryIO]:
    """Create a draft that is locked while it is open; remove those that were abandoned."""
    start = os.fsencode(target.name)[:200].decode(errors="ignore")
    drafts = [
        target.with_name(f".{start}.axode-{end}.part")
        for end in (*range(_NUMBERED), secrets.token_hex(8))
    ]
    for draft in drafts:
        _remove_abandoned(draft)
    for draft in drafts:
        with contextlib.suppress(FileExistsError):
            file = _created(draft, mode)
            if fcntl is None:
                return draft, file
            with contextlib.suppress(OSError):  # a file system without locks
                fcntl.flock(file, fcntl.LOCK_EX)
            if os.fstat(file.fileno()).st_nlink:  # else it was taken for abandoned
                return draft, file
            file.close()
    raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))


def _remove_abandoned(draft: Path) -> None:
    """Remove a draft whose process has ended."""
    with contextlib.suppress(OSError):  # there is none, or its process lives
        if fcntl is None:
            if time.time() - os.lstat(draft).st_mtime > ABANDONED:
                os.unlink(draft)
            return
        handle = os.open(draft, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            status = os.fstat(handle)
            # what was opened may be in its place by now, and another draft may have this name
            if stat.S_ISREG(status.st_mode) and os.path.samestat(status, os.lstat(draft)):
                os.unlink(draft)
        finally:
            os.close(handle)


@dataclass(frozen=True)
class OpenFolder:
    """A folder whose files are named; it is opened where the system opens folders.

    Attributes:
        path: Where it is.
        handle: The open folder, so that none can be put in its place; None on Windows.
    """

    path: Path
    handle: int | None

    def name(self, file: str) -> str:
        """Return what names a file, for functions that are given the handle as `dir_fd`."""
        return str(self.path / file) if self.handle is None else file

    def names(self) -> list[str]:
        """Return what is in the folder."""
        return os.listdir(self.path if self.handle is None else self.handle)


def replace_private_file(name: str, data: Bytes, folder: OpenFolder) -> None:
    """Write a file that only this user can read, in a folder that is open; it may be lost.

    It does not wait for the disk: what reads such files must notice damage by itself.

    Raises:
        OSError: if the disk or the folder refuses; what was there before is still there.
    """
    draft, target = folder.name(f"{name}.{secrets.token_hex(8)}.part"), folder.name(name)
    with _removed_on_failure(draft, folder.handle):
        with _created(draft, 0o600, folder.handle) as file:
            file.write(data)
        _replace(draft, target, folder.handle)


def _replace(draft: str | Path, target: str | Path, folder: int | None = None) -> None:
    """Rename a draft; where open files cannot be replaced, wait for others to close the target."""
    end = time.monotonic() + PATIENCE
    within = {} if folder is None else {"src_dir_fd": folder, "dst_dir_fd": folder}
    while True:
        try:
            return os.replace(draft, target, **within)
        except PermissionError:
            if fcntl is not None or time.monotonic() > end:
                raise
            time.sleep(PATIENCE / 50)


def _created(path: str | Path, mode: int, folder: int | None = None) -> BinaryIO:
    """Create and open a file that must not exist, not as a link either."""
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    return os.fdopen(os.open(path, flags, mode, dir_fd=folder), "w+b")


@contextlib.contextmanager
def _removed_on_failure(path: str | Path, folder: int | None = None) -> Iterator[None]:
    try:
        yield
    except BaseException:  # Ctrl-C too
        with contextlib.suppress(OSError):
            os.unlink(path, dir_fd=folder)
        raise


def _write_to_device(target: Path, data: Bytes) -> None:
    """Write to a device or a pipe; a pipe without a reader is an error."""
    patient = getattr(os, "O_NONBLOCK", 0)  # not on Windows, where nothing waits for a reader
    handle = os.open(target, os.O_WRONLY | patient | getattr(os, "O_BINARY", 0))
    if patient:
        os.set_blocking(handle, True)
    with os.fdopen(handle, "wb") as file:
        file.write(data)


# locks between processes --------------------------------------------------------------------------


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
