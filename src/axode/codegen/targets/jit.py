"""IR to running machine code on this computer, through the object cache.

Compile large modules in a process of their own, which Ctrl-C can end at once.

LLVM cannot be stopped while it compiles. Modules that take it long are handed to a second process,
IR in and object code out; the caller can stop waiting for it.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import IO, Any

import llvmlite
import llvmlite.binding as llvm

from axode.codegen.host import host
from axode.disk.object_cache import ObjectCache, cache_directory

# Bytes of IR from which a compilation takes most of a second, long against starting a process:
# without optimization, and with it.
LONG_QUICK, LONG = 8_000_000, 1_000_000
PATIENCE = 5.0  # [s] after which a compilation is announced
POLL = 0.2  # [s] between checks for an interrupt
CHECKS: list[Callable[[], None]] = []  # each raises if a Ctrl-C is held back elsewhere
_PROGRAM = "from axode.codegen.targets.jit import serve; serve()"


class LongCompilationWarning(UserWarning):
    """Code that takes long to compile; it is kept in the cache, and Ctrl-C stops it."""


def check_interrupts() -> None:
    """Raise if a Ctrl-C is held back elsewhere."""
    for check in CHECKS:
        check()


def compile_apart(name: str, ir: str, effort: int) -> bytes | None:
    """Compile IR in another process; None where there can be none, or where it fails.

    Args:
        name: Name of the function, for the announcement.
        ir: What to compile.
        effort: How much LLVM may do about it, 0 to 3.
    """
    if not sys.executable:
        return None
    try:
        # through a file: a pipe is no longer written to once `communicate` has timed out
        with (
            tempfile.TemporaryFile() as given,
            start_python(
                _PROGRAM, str(effort), stdin=_filled(given, ir), stderr=subprocess.DEVNULL
            ) as process,
        ):
            try:
                return _receive(process, name, ir)
            except BaseException:  # Ctrl-C above all
                process.kill()
                process.wait()
                raise
    except OSError:
        return None


def start_python(program: str, *arguments: str, **options: Any) -> subprocess.Popen[bytes]:
    """Start a Python that imports what this one does, but nothing from the working folder.

    Args:
        program: Its source.
        arguments: Its arguments.
        options: Those of `subprocess.Popen`; what it prints comes through a pipe.
    """
    folders = [folder for folder in sys.path if _is_elsewhere(folder)]
    folders.append(str(Path(__file__).parents[3]))  # of this package, wherever it came from
    environment = {**os.environ, **options.pop("env", {})}
    environment.pop("PYTHONPATH", None)  # `sitecustomize` is looked for there before anything runs
    program = f"import sys; sys.path[:] = {folders!r}; {program}"
    command = [sys.executable, "-P", "-c", program, *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, **options)


def find_program(name: str) -> str | None:
    """Find a program on the search path, but in no folder that depends on the working folder."""
    if os.path.dirname(name):
        found = shutil.which(name)
        return None if found is None else os.path.abspath(found)
    folders = [folder for folder in os.get_exec_path() if _is_elsewhere(folder)]
    return shutil.which(name, path=os.pathsep.join(folders))


def _is_elsewhere(folder: str) -> bool:
    """Return whether an entry of a search path names one folder, and not the working folder."""
    if not os.path.isabs(folder):
        return False
    try:
        return not os.path.samefile(folder, os.curdir)
    except OSError:  # there is no such folder, or no working folder
        return True


def _filled(file: IO[bytes], ir: str) -> IO[bytes]:
    file.write(ir.encode())
    file.seek(0)
    return file


def _receive(process: subprocess.Popen[bytes], name: str, ir: str) -> bytes | None:
    end = time.monotonic() + PATIENCE
    announced = False
    while True:
        try:
            code, _ = process.communicate(timeout=POLL)
            return code if process.returncode == 0 and code else None
        except subprocess.TimeoutExpired:
            check_interrupts()
        if time.monotonic() > end and not announced:
            announced = True
            warnings.warn(
                f"Compiling '{name}' takes long: it has {len(ir) >> 20} MiB of code. Ctrl-C stops "
                "it; once done, it is kept in the cache.",
                LongCompilationWarning,
                stacklevel=2,
            )


def serve() -> None:
    """Compile what comes in, as the other process; its standard streams are the pipes."""
    import signal

    from axode.codegen.targets import jit

    signal.signal(signal.SIGINT, signal.SIG_DFL)
    ir, effort = sys.stdin.buffer.read().decode(), int(sys.argv[1])
    sys.stdout.buffer.write(jit.compile_here("apart", ir, effort))


# LLVM contexts and the linker are not safe to enter from two threads. The one lock of everything
# that compiles; a fork waits for it, because a child could never take it from a thread it lacks.
LOCK = threading.RLock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=LOCK.acquire, after_in_parent=LOCK.release, after_in_child=LOCK.release
    )

# The linker wants every library to have a name of its own.
_LIBRARIES = itertools.count()
# An engine keeps 9 kB of every library that it ever had, and takes 110 kB itself.
LIBRARIES_PER_ENGINE = 16

# Code generation effort; 3 gives the same speed, 1 is slower code.
EFFORT = 2
# Beyond this many operations code is generated without optimization: a quarter of the time, for
# code that takes twice as long for single samples and a third longer for batches. Of a program
# whose longest tapes are beyond, the rest is optimised.
MOST_OPTIMISED = 100_000
# Quick code is not optimised either. It is used until it has run for as long as its optimization
# takes; that takes so much per operation [s], and a call at least so much.
OPTIMISING, LEAST_CALL = 60e-6, 50e-6
OBJECTS = b"axode objects\n"  # before two object files, and the size of the first one


@dataclass(frozen=True)
class LoadedCode:
    """Loaded machine code.

    Attributes:
        address: Where its entry starts.
        seconds: Time to compile or load it.
        cached: Whether it came from the disk cache.
        size: Bytes of the object file.
        quick: Whether optimised code computes the same faster.
    """

    address: int
    seconds: float
    cached: bool
    size: int
    quick: bool
    _library: Any  # unloads the code when it is dropped


def too_long(operations: Mapping[str, int]) -> frozenset[str]:
    """Choose the longest of several tapes, so that the others can be optimised together."""
    total, chosen = sum(operations.values()), set[str]()
    for name in sorted(operations, key=lambda name: -operations[name]):
        if total <= MOST_OPTIMISED:
            break
        chosen.add(name)
        total -= operations[name]
    return frozenset(chosen)


def load(
    name: str,
    identity: str,
    entry: str,
    ir: Callable[[], str],
    operations: int = 0,
    quick: bool = False,
    further: Callable[[], str] | None = None,
) -> LoadedCode:
    """Machine code for some IR, compiled unless the cache has it.

    Args:
        name: For LLVM's messages.
        identity: Names the IR uniquely, so that it need not be written to find the object.
        entry: Function to look up.
        ir: Writes the IR; only called on a cache miss.
        operations: How many there are in it, roughly.
        quick: Whether code that is not optimised does too, unless the cache has better.
        further: Writes IR of functions that are never optimised, and not among `operations`.
    """
    best = EFFORT if operations <= MOST_OPTIMISED else 0
    effort = 0 if quick and quick_is_exact() else best
    start = time.perf_counter()
    cache = ObjectCache(cache_directory())
    with LOCK:
        library, code = None, b""
        for tried in dict.fromkeys((best, effort)):
            known = cache.read(cache_key(f"{identity} effort {tried}"))
            library = None if known is None else _link_cached(name, entry, known)
            if known is not None and library is not None:
                effort, code = tried, known
                break
        cached = library is not None
        if library is None:
            rough = cache.read(cache_key(f"{identity} effort 0")) if effort and further else None
            code = _compile(name, ir(), effort)
            if further is not None:
                rest = _objects(rough)[-1] if rough else _compile(name, further(), 0)
                code = OBJECTS + len(code).to_bytes(8, "little") + code + rest
            cache.write(cache_key(f"{identity} effort {effort}"), code)
            library = _link(name, entry, code)
    seconds = time.perf_counter() - start
    return LoadedCode(library[entry], seconds, cached, len(code), effort < best, library)


def quick_is_exact() -> bool:
    """Return whether code has the same bits with and without optimization on this computer.

    Both fuse the same products and sums where one instruction selector generates all of it.
    """
    return host().triple.startswith("x86_64")


def _link(name: str, entry: str, code: bytes) -> Any:
    """Load an object file; the result unloads it when it is dropped."""
    number, builder = next(_LIBRARIES), llvm.JITLibraryBuilder()
    for part in _objects(code):
        builder.add_object_img(part)
    builder.export_symbol(entry).add_current_process()
    return builder.link(_linker(number), f"{name}-{number}")


def _objects(code: bytes) -> list[bytes]:
    """Split what is kept into object files, one or two."""
    if not code.startswith(OBJECTS):
        return [code]
    first = len(OBJECTS) + 8
    middle = first + int.from_bytes(code[len(OBJECTS) : first], "little")
    return [code[first:middle], code[middle:]]


def _link_cached(name: str, entry: str, code: bytes) -> Any:
    """Load an object file from the cache, or None if it is none: it is compiled again then."""
    try:
        return _link(name, entry, code)
    except RuntimeError:
        return None


def _compile(name: str, ir: str, effort: int) -> bytes:
    """Object code of IR; what takes long is compiled where Ctrl-C can stop it."""
    long = LONG if effort else LONG_QUICK
    code = compile_apart(name, ir, effort) if len(ir) > long else None
    return compile_here(name, ir, effort) if code is None else code


def compile_here(name: str, ir: str, effort: int = EFFORT) -> bytes:
    """Object code of IR, compiled in this process."""
    context = llvm.create_context()
    module = llvm.parse_assembly(ir, context)
    module.name = name
    module.verify()  # a mistake in the IR is an exception here and a crash later
    return bytes(_target_machine(effort).emit_object(module))


def cache_key(identity: str) -> str:
    """Key in the object cache of what this generator makes on this computer."""
    this = host()
    parts = [identity, this.triple, this.cpu, this.features, _versions(), _generator_digest()]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


@functools.cache
def _versions() -> str:
    return f"llvmlite {llvmlite.__version__} LLVM {llvm.llvm_version_info}"


@functools.cache
def _generator_digest() -> str:
    """Hash of the code generator itself: after an edit nothing stale is loaded."""
    digest = hashlib.sha256()
    folders = [resources.files("axode.codegen")]
    while folders:
        for item in sorted(folders.pop().iterdir(), key=lambda item: item.name):
            if item.is_dir():
                folders.append(item)
            elif item.name.endswith(".py"):
                digest.update(item.read_bytes())
    return digest.hexdigest()


@functools.cache
def _target_machine(effort: int = EFFORT) -> Any:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    _select_alike()
    this = host()
    relocation, reach = code_model(this.triple)
    return llvm.Target.from_triple(this.triple).create_target_machine(
        cpu=this.cpu, features=this.features, opt=effort, reloc=relocation, codemodel=reach
    )


def code_model(triple: str) -> tuple[str, str]:
    """Return how code for a platform is relocated, and how far it reaches.

    On ARM, code reaches 4 GiB; the linker may put its tables farther away. Mach-O, of Apple, has
    tables of addresses beside the code instead, which only code that can be moved uses.
    """
    if triple.startswith("aarch64"):
        return "static", "large"
    return "pic", "small" if _keeps_together(triple) else "jitdefault"


@functools.cache
def _select_alike() -> None:
    """Have instructions of quick code selected as those of optimised code, with the same bits."""
    llvm.set_option("", "-fast-isel=false")


def _linker(number: int) -> Any:
    """Engine for a library; it lives as long as the libraries that it has linked."""
    return _engine(number // LIBRARIES_PER_ENGINE)


@functools.lru_cache(maxsize=1)
def _engine(_: int) -> Any:
    together = _keeps_together(host().triple)
    return llvm.create_lljit_compiler(_target_machine(), use_jit_link=together)


def _keeps_together(triple: str) -> bool:
    """Return whether the linker puts code and its numbers next to each other: addresses are short.

    JITLink maps one region for an object. The older linker maps one per section, wherever there is
    room.
    """
    return triple.startswith("x86_64") and "linux" in triple
