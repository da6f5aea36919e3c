"""A folder as compressed parts small enough to be carried, and the folder again from its parts.

    python benchmarks/gpu/peers/parts.py SITE PART...

unpacks the parts into the folder SITE. Needs nothing but Python.
"""

from __future__ import annotations

import io
import lzma
import sys
import tarfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

PIECE = 2**25  # bytes that are compressed by themselves, so that all cores can help


def pack(folder: Path, name: str, target: Path, limit: int) -> list[Path]:
    """Compress a folder into `target/name-0`, ...; no part is larger than the limit of bytes."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as archive:
        archive.add(folder, arcname=".")
    content = data.getvalue()
    with ProcessPoolExecutor() as pool:
        pieces = list(pool.map(_compressed, _cut(content)))
    parts: list[Path] = []
    room = 0
    for number, piece in enumerate(pieces):
        if len(piece) > room:
            parts.append(target / f"{name}-{len(parts)}")
            parts[-1].mkdir(parents=True)
            room = limit
        if len(piece) > room:
            raise ValueError(f"{name}: a piece of {len(piece)} bytes is over the limit {limit}")
        (parts[-1] / f"{number:03d}-of-{len(pieces):03d}.xz").write_bytes(piece)
        room -= len(piece)
    return parts


def unpack(parts: list[Path], folder: Path) -> None:
    """The folder again; raises FileNotFoundError if a piece is missing."""
    pieces = {path.name: path for part in parts for path in sorted(part.glob("*.xz"))}
    wanted = int(next(iter(pieces))[-6:-3]) if pieces else 1
    names = [f"{number:03d}-of-{wanted:03d}.xz" for number in range(wanted)]
    missing = [name for name in names if name not in pieces]
    if missing:
        raise FileNotFoundError(f"not in {', '.join(map(str, parts))}: {', '.join(missing)}")
    with ProcessPoolExecutor() as pool:
        content = b"".join(pool.map(_read, [pieces[name] for name in names]))
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        archive.extractall(folder, filter="data")


def _cut(content: bytes) -> list[bytes]:
    return [content[at : at + PIECE] for at in range(0, len(content), PIECE)]


def _compressed(piece: bytes) -> bytes:
    return lzma.compress(piece, preset=9)


def _read(path: Path) -> bytes:
    return lzma.decompress(path.read_bytes())


if __name__ == "__main__":
    unpack([Path(part) for part in sys.argv[2:]], Path(sys.argv[1]))
