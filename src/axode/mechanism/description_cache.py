"""Keep on disk what was made of a description, for the next process that derives it.

Entries are named by a digest of all data of the description, of the options, of the source of this
package and of the versions of the libraries that it computes with. They lie in the folder of
compiled code and are as safe as that: `ObjectCache` says how. Functions of Python have no digest;
what holds them is derived again in each process.

``AXODE_CACHE=off`` turns this off along with compiled code, ``AXODE_MODEL_CACHE=off`` this alone.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from importlib import resources
from importlib.util import find_spec
from typing import Any

import numpy as np

from axode.disk.object_cache import OFF, ObjectCache, cache_directory
from axode.mechanism.mechanism import Mechanism

LIBRARIES = ("casadi", "numpy")  # whose results entries are


class NoDigest(Exception):
    """A value whose content is not known, such as a function of Python."""


@dataclass(frozen=True)
class DescriptionCache:
    """What was made of one description with some options, by name.

    Attributes:
        digest: Digest of the description, the options and the code.
    """

    digest: str

    @classmethod
    def of(cls, mechanism: Mechanism, *options: Any) -> DescriptionCache | None:
        """Return that of a description; None if it is turned off or if there is no digest."""
        chosen = os.environ.get("AXODE_MODEL_CACHE")
        if (chosen is not None and chosen.lower() in OFF) or cache_directory() is None:
            return None
        if type(mechanism) is not Mechanism:
            return None
        try:
            parts = [_code_digest(), digest_of(mechanism), digest_of(options)]
        except (NoDigest, RecursionError):
            return None
        return cls(hashlib.sha256(b"".join(parts)).hexdigest())

    def part(self, what: str) -> DescriptionCache:
        """Return the cache of what depends on a further choice."""
        return DescriptionCache(self._key(what))

    def read(self, what: str) -> bytes | None:
        """Read an entry, if it is there and intact."""
        return ObjectCache(cache_directory()).read(self._key(what))

    def write(self, what: str, data: bytes) -> None:
        """Write an entry; where that fails, the next process makes it again."""
        ObjectCache(cache_directory()).write(self._key(what), data)

    def _key(self, what: str) -> str:
        text = json.dumps(["description", self.digest, what])
        return hashlib.sha256(text.encode()).hexdigest()


def digest_of(value: Any) -> bytes:
    """Digest plain data, to the last bit of each number.

    Raises:
        NoDigest: for a function, an array of objects, or an object of a class that is not Axode's.
    """
    return _Digests().of(value)


class _Digests:
    """Digests of values that share parts: formulas refer to the same parameters over and over."""

    def __init__(self) -> None:
        self._known: dict[int, bytes] = {}

    def of(self, value: Any) -> bytes:
        if isinstance(value, str):
            data = b"s" + value.encode("utf-8", "surrogatepass")
        elif value is None or isinstance(value, bool | np.bool_):
            data = b"b" + str(value).encode()
        elif isinstance(value, int | np.integer):
            data = b"i" + str(int(value)).encode()
        elif isinstance(value, float | np.float64):
            data = b"f" + struct.pack("<d", value)
        elif isinstance(value, tuple | list):
            data = b"l" + b"".join(map(self.of, value))
        elif isinstance(value, Mapping):
            data = b"d" + b"".join(self.of(x) for pair in value.items() for x in pair)
        elif isinstance(value, np.ndarray) and value.dtype.kind in "fiub":
            data = f"a{value.dtype.str}{value.shape}".encode() + value.tobytes()
        else:
            return self._of_object(value)
        return hashlib.sha256(data).digest()

    def _of_object(self, value: Any) -> bytes:
        known = self._known.get(id(value))  # all of them live as long as the description
        if known is not None:
            return known
        kind = type(value)
        if not is_dataclass(kind) or not kind.__module__.startswith("axode."):
            raise NoDigest(kind.__name__)
        data = f"o{kind.__module__}.{kind.__qualname__}".encode()
        data += b"".join(self.of(getattr(value, field.name)) for field in fields(value))
        made = self._known[id(value)] = hashlib.sha256(data).digest()
        return made


@cache
def _code_digest() -> bytes:
    """Digest the source of this package, and which libraries it computes with."""
    digest = hashlib.sha256()
    for name in LIBRARIES:
        spec = find_spec(name)
        if spec is not None and spec.origin is not None:
            status = os.stat(spec.origin)  # reading versions takes ten times as long
            digest.update(f"{spec.origin} {status.st_size} {status.st_mtime_ns}".encode())
    folders = [resources.files("axode")]
    while folders:
        for item in sorted(folders.pop().iterdir(), key=lambda item: item.name):
            if item.name.endswith(".py"):
                digest.update(item.name.encode() + item.read_bytes())
            elif item.is_dir() and item.name != "__pycache__":
                folders.append(item)
    return digest.digest()
