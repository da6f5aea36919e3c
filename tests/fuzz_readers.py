"""Fuzz the readers of mechanisms and meshes: `python -m tests.fuzz_readers urdf --minutes 10`.

Valid texts are spoiled at random, in bytes, words, elements and nesting, and read in a process of
its own with at most 1 GB. Whatever is not an error of Axode's own is a fault: tracebacks, warnings
of other libraries, texts that take too long or too much memory, and the end of the process. The
text of each fault is kept.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import axode as ax
from tests.spoiled_texts import corpora, load

MEMORY = 1 << 30  # [bytes] that a reader may take
PATIENCE = 20  # [s] of processor time for one text
SILENCE = 300  # [s] after which a process that no signal interrupts is ended


def read_for(name: str, folder: Path, end: float, seed: int) -> None:
    """Read spoiled texts until a time; print one line of counts as JSON at the end."""
    dice, counts = random.Random(seed), Counter[str]()
    corpus = corpora()[name]
    for file, text in corpus.beside.items():
        (folder / file).write_text(text)
    while time.time() < end:
        suffix, data = corpus.draw(dice)
        path = folder / f"robot{suffix}"
        path.write_bytes(data)
        outcome = attempt(path, corpus.read)
        path.unlink()
        counts[outcome] += 1
        if outcome.startswith("fault"):
            number = sum(n for word, n in counts.items() if word.startswith("fault"))
            (folder / f"fault{number}{suffix}").write_bytes(data)
            print(json.dumps({"fault": outcome, "text": f"fault{number}{suffix}"}), flush=True)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(json.dumps({"counts": counts, "peak": peak}), flush=True)


def attempt(path: Path, read: Callable[[Path], object] = load) -> str:
    """Read one text; return what came of it."""
    signal.setitimer(signal.ITIMER_PROF, PATIENCE)
    faulthandler.dump_traceback_later(SILENCE, exit=True)
    try:
        read(path)
    except ax.AxodeError as error:
        return type(error).__name__
    except MemoryError:
        return "fault: MemoryError"
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        place = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
        return f"fault: {type(error).__name__} in {place}: {str(error)[:200]}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        faulthandler.cancel_dump_traceback_later()
    return "read"


def give_up(number: int, frame: object) -> None:
    """Raise in a reader that has taken its processor time."""
    raise TimeoutError(f"not done after {PATIENCE} s")


def limit() -> None:
    """Bound memory and time of this process; make warnings of other libraries errors."""
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    signal.signal(signal.SIGPROF, give_up)
    warnings.simplefilter("error")
    for category in (
        ax.errors.PlausibilityWarning,
        ax.errors.OmissionWarning,
        ax.errors.RequestNotMetWarning,
    ):
        warnings.simplefilter("ignore", category)


def fuzz(name: str, minutes: float, seed: int) -> bool:
    """Run a reader in processes of its own until the time is over; print what came of it."""
    folder = Path(tempfile.mkdtemp(prefix=f"fuzz-{name}-"))
    counts, faults, peak, end = Counter[str](), 0, 0, time.time() + 60 * minutes
    while time.time() < end:
        child = [sys.executable, "-m", "tests.fuzz_readers", name, "--seed", str(seed)]
        child += ["--until", str(end), "--folder", str(folder)]
        with subprocess.Popen(child, stdout=subprocess.PIPE, text=True) as process:
            finished = False
            for line in process.stdout or ():
                found = json.loads(line)
                finished = "counts" in found
                counts.update(found.get("counts", {}))
                peak = max(peak, found.get("peak", 0))
                if "fault" in found:
                    faults += 1
                    print(f"{name}: {found['fault']}; its text is {folder / found['text']}")
        if not finished:
            faults += 1
            kept = folder / f"ended{seed}.txt"
            for text in folder.glob("robot.*"):
                text.rename(kept)
            print(f"{name}: the process ended with {process.returncode}; its text is {kept}")
        seed += 1000
    listed = ", ".join(f"{count} {word}" for word, count in counts.most_common())
    print(f"{name}: {counts.total()} texts, {listed}; {faults} faults; {peak} MB", flush=True)
    return not faults


def main() -> None:
    """Fuzz the readers that are named, or all of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help=f"of {', '.join(corpora())}; all unless given")
    parser.add_argument("--minutes", type=float, default=10.0, help="for each")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--until", type=float, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.until:
        limit()
        read_for(given.names[0], given.folder, given.until, given.seed)
        return
    sound = [fuzz(name, given.minutes, given.seed) for name in given.names or corpora()]
    sys.exit(0 if all(sound) else 1)


if __name__ == "__main__":
    main()
