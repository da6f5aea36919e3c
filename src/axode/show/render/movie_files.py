"""Pictures one after the other to a file: GIF, MP4, WebM or animated PNG."""

from __future__ import annotations

import itertools
import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from axode.disk.atomic import as_path, stream_atomically
from axode.errors import InvalidArgument, NotApplicable, require_package

Image = npt.NDArray[np.uint8]

MOVIES = (".mp4", ".webm", ".gif", ".apng")
# The first one available is used; all of them play in browsers.
CODECS = {".mp4": ("libx264", "libopenh264"), ".webm": ("libvpx-vp9", "libvpx")}
OPTIONS = {
    "libx264": {"crf": "19", "preset": "veryfast"},
    "libopenh264": {"b": "4000000"},
    "libvpx-vp9": {"crf": "28", "b": "0", "deadline": "realtime", "cpu-used": "6", "row-mt": "1"},
    "libvpx": {"crf": "12", "b": "4000000", "deadline": "realtime", "cpu-used": "6"},
}
FASTEST_GIF = 50.0  # frames per second: viewers slow down faster ones
CLEAR = 255  # colour of a GIF that leaves a pixel as it was
COLOURS_OF_SD = 6  # BT.601, by its number in H.273: what the conversion from RGB uses


def write_movie(
    path: str | PathLike[str],
    frames: Iterable[Image],
    rate: float = 25.0,
    *,
    samples: Sequence[Image] = (),
) -> Path:
    """Write pictures to a movie, one at a time; an interrupted one leaves the old file as it was.

    Args:
        path: Ends in `.mp4`, `.webm`, `.gif` or `.apng`, which chooses the format.
        frames: Red, green and blue from 0 to 255, all of one size: (height, width, 3) each.
        rate: Frames per second.
        samples: Pictures with all colours that will occur, for the 255 colours of a GIF; the first
            frame unless given.

    Returns:
        The path.

    Raises:
        InvalidArgument: for another ending, a rate that the format has not, no frames, or frames
            that are not alike.
        NotApplicable: if the package that writes the format is not installed.
        FileError: if the file cannot be written.
    """
    file = check_movie(path, rate)
    remaining = iter(frames)
    first = next(remaining, None)
    if first is None:
        raise InvalidArgument(f"a movie needs at least one frame: nothing is written to '{file}'")
    alike = _alike(itertools.chain([first], remaining), np.shape(first))
    ending = file.suffix.lower()
    with stream_atomically(file) as stream:
        if ending == ".gif":
            _write_gif(stream, alike, rate, samples or [first])
        elif ending == ".apng":
            _write_apng(stream, alike, rate)
        else:
            _write_video(stream, alike, rate, ending)
    return file


def check_movie(path: str | PathLike[str], rate: float) -> Path:
    """Check that a movie can be written, before its frames are made.

    Raises:
        InvalidArgument: for another ending, or a rate that the format has not.
        NotApplicable: if the package that writes the format is not installed.
    """
    file = as_path(path)
    ending = file.suffix.lower()
    if ending not in MOVIES:
        raise InvalidArgument(f"a movie ends in {', '.join(MOVIES)}, unlike '{file}'")
    if not 0.01 <= rate <= 1000.0:
        raise InvalidArgument(f"rate: expected 0.01 to 1000 frames per second, got {rate:g}")
    if ending == ".gif":
        if rate > FASTEST_GIF:
            raise InvalidArgument(
                f"rate: a GIF shows at most {FASTEST_GIF:g} frames per second, got {rate:g}.\n"
                "  Remedy: a lower rate, or a file that ends in .mp4 or .webm"
            )
        need_pillow()
    elif ending in CODECS:
        _codec(ending)
    return file


def need_pillow() -> Any:
    """Return Pillow's module of images, or raise `NotApplicable` with the remedy."""
    return require_package("PIL.Image", "GIFs and clocks need Pillow", "movie")


def _alike(frames: Iterable[Image], shape: tuple[int, ...]) -> Iterator[Image]:
    for k, frame in enumerate(frames):
        if np.shape(frame) != shape or len(shape) != 3 or shape[2] != 3:
            raise InvalidArgument(
                f"frames: expected pictures (height, width, 3) of one size, got {np.shape(frame)} "
                f"as number {k} after {shape}"
            )
        yield np.ascontiguousarray(frame, np.uint8)


# MP4 and WebM ---------------------------------------------------------------------------------


def _codec(ending: str) -> str:
    instead = ", or a file that ends in .gif or .apng"
    av = require_package("av", f"movies that end in {ending} need PyAV", "movie", instead)
    for name in CODECS[ending]:
        if name in av.codecs_available:
            return name
    raise NotApplicable(
        f"this installation of PyAV has no encoder for {ending}: "
        f"{' and '.join(CODECS[ending])} are missing.\n"
        "  Remedy: pip install av, or a file that ends in .gif or .apng"
    )


def _write_video(stream: BinaryIO, frames: Iterable[Image], rate: float, ending: str) -> None:
    import av

    codec = _codec(ending)
    with av.open(stream, "w", format=ending[1:]) as container:
        video: Any = None
        for k, frame in enumerate(frames):
            even = _even(frame)
            if video is None:
                per_second = Fraction(rate).limit_denominator(1000)
                video = container.add_stream(codec, rate=per_second, options=OPTIONS[codec])
                video.height, video.width = even.shape[:2]
                video.pix_fmt = "yuv420p"
                video.codec_context.colorspace = COLOURS_OF_SD
            picture = av.VideoFrame.from_ndarray(even, format="rgb24")
            picture.pts = k
            picture.time_base = 1 / per_second
            container.mux(video.encode(picture))
        container.mux(video.encode(None))


def _even(frame: Image) -> Image:
    """A picture with even sides: the codecs keep one colour per four pixels."""
    height, width = frame.shape[:2]
    if height % 2 == 0 and width % 2 == 0:
        return frame
    return np.pad(frame, ((0, height % 2), (0, width % 2), (0, 0)), mode="edge")


# GIF ------------------------------------------------------------------------------------------


def _write_gif(
    stream: BinaryIO, frames: Iterable[Image], rate: float, samples: Sequence[Image]
) -> None:
    """Write a GIF that repeats for ever: one palette, and of each frame what has changed."""
    pillow = need_pillow()
    from PIL.GifImagePlugin import getdata

    palette = pillow.fromarray(np.concatenate(list(samples))).quantize(CLEAR)
    colours = bytes(palette.getpalette()[: 3 * CLEAR]).ljust(768, b"\0")
    shown: npt.NDArray[np.uint8] | None = None
    for k, frame in enumerate(frames):
        pixels = np.asarray(pillow.fromarray(frame).quantize(palette=palette, dither=0))
        if shown is None:
            size = struct.pack("<HH", frame.shape[1], frame.shape[0])
            stream.write(b"GIF89a" + size + b"\xf7\0\0" + colours)
            stream.write(b"!\xff\x0bNETSCAPE2.0\x03\x01\0\0\0")
        part, place = _changed(shown, pixels)
        image = pillow.fromarray(part, "P")
        # hundredths of a second that add up, whatever the rate
        delay = round(100.0 * (k + 1) / rate) - round(100.0 * k / rate)
        how = {"duration": 10 * delay, "transparency": CLEAR, "disposal": 1}
        for piece in getdata(image, place, **how):
            stream.write(piece)
        shown = pixels
    stream.write(b";")


def _changed(
    before: npt.NDArray[np.uint8] | None, now: npt.NDArray[np.uint8]
) -> tuple[npt.NDArray[np.uint8], tuple[int, int]]:
    """The part of a picture that changes, clear where it stays, and its left upper corner."""
    if before is None:
        return now, (0, 0)
    different = now != before
    window, place = _window(different)
    return np.where(different[window], now[window], np.uint8(CLEAR)), place


def _window(different: npt.NDArray[np.bool_]) -> tuple[tuple[slice, slice], tuple[int, int]]:
    """The smallest part with all differences, at least a pixel, and its left upper corner."""
    rows, columns = np.flatnonzero(different.any(1)), np.flatnonzero(different.any(0))
    top, bottom = (int(rows[0]), int(rows[-1])) if len(rows) else (0, 0)
    left, right = (int(columns[0]), int(columns[-1])) if len(columns) else (0, 0)
    return (slice(top, bottom + 1), slice(left, right + 1)), (left, top)


# animated PNG ---------------------------------------------------------------------------------


def _write_apng(stream: BinaryIO, frames: Iterable[Image], rate: float) -> None:
    """Write an animated PNG that repeats for ever, without loss."""
    delay = (1 / Fraction(rate)).limit_denominator(65535)
    numbers = itertools.count()
    shown: Image | None = None
    count = place = 0
    for frame in frames:
        count += 1
        part, (left, top) = frame, (0, 0)
        if shown is None:
            stream.write(b"\x89PNG\r\n\x1a\n")
            size = struct.pack(">II", frame.shape[1], frame.shape[0])
            _chunk(stream, b"IHDR", size + b"\x08\x02\0\0\0")
            place = stream.tell()
            _chunk(stream, b"acTL", struct.pack(">II", 0, 0))
        else:
            window, (left, top) = _window((frame != shown).any(2))
            part = frame[window]
        control = struct.pack(">5I", next(numbers), part.shape[1], part.shape[0], left, top)
        control += struct.pack(">HHBB", delay.numerator, delay.denominator, 0, 0)
        _chunk(stream, b"fcTL", control)
        if shown is None:
            _chunk(stream, b"IDAT", _packed_rows(part))
        else:
            _chunk(stream, b"fdAT", struct.pack(">I", next(numbers)) + _packed_rows(part))
        shown = frame
    _chunk(stream, b"IEND", b"")
    stream.seek(place)
    _chunk(stream, b"acTL", struct.pack(">II", count, 0))


def _packed_rows(picture: Image) -> bytes:
    """Rows as differences from the ones above, compressed."""
    flat = picture.reshape(len(picture), -1)
    rows = np.full((len(flat), 1 + flat.shape[1]), 2, np.uint8)
    rows[0, 1:] = flat[0]
    np.subtract(flat[1:], flat[:-1], out=rows[1:, 1:])
    return zlib.compress(rows.tobytes(), 4)


def _chunk(stream: BinaryIO, kind: bytes, data: bytes) -> None:
    check = zlib.crc32(kind + data)
    stream.write(struct.pack(">I", len(data)) + kind + data + struct.pack(">I", check))
