"""Files that claim more than they hold, or hold more than they claim, and silent pipes."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import textwrap
import time
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import axode as ax
from axode.cli.trajectories import load_columns
from axode.results import storage
from axode.results.trajectory import Trajectory
from tests.results import runs

resource = pytest.importorskip("resource", reason="Windows limits no memory")

MEMORY = 1500 << 20  # bytes of address space for what must be refused before it is read

SOUND = """\
[body.b]
mass = 1
inertia = "point"
[joint.j]
type = "prismatic"
parent = "ground"
child = "b"
"""


@pytest.fixture
def refusal(tmp_path: Path):
    """The error that a file raises, read in a process with little memory."""

    def read(path: Path, how: str = "ax.Trajectory.load") -> str:
        code = f"""
        import resource
        from pathlib import Path
        import axode as ax
        import pyarrow.parquet
        from axode.cli.trajectories import load_columns
        from axode.results.storage import load
        resource.setrlimit(resource.RLIMIT_AS, ({MEMORY}, {MEMORY}))
        try:
            {how}(Path({str(path)!r}))
        except ax.FileError as error:
            print(error)
        """
        environment = {
            **os.environ,
            "ARROW_DEFAULT_MEMORY_POOL": "system",
            "OPENBLAS_NUM_THREADS": "1",
        }
        done = subprocess.run(
            [sys.executable, "-P", "-c", textwrap.dedent(code)],
            text=True,
            capture_output=True,
            timeout=60,
            env=environment,
        )
        assert done.returncode == 0 and done.stdout, done.stderr[-2000:]
        return done.stdout

    return read


def bomb(path: Path, members: dict[str, np.ndarray | bytes], compression: int) -> None:
    with zipfile.ZipFile(path, "w", compression) as file:
        for name, content in members.items():
            with file.open(f"{name}.npy", "w", force_zip64=True) as member:
                if isinstance(content, bytes):
                    member.write(content)
                else:
                    np.lib.format.write_array(member, content)


def zeros(count: int) -> bytes:
    """An .npy header of so many doubles, and none of them."""
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        stream, {"descr": "<f8", "fortran_order": False, "shape": (count,)}
    )
    return stream.getvalue()


def header(run: Trajectory) -> np.ndarray:
    return np.array(storage._header(run))


def test_an_archive_that_unpacks_to_gigabytes(tmp_path, refusal):
    """4 MB of zeros, packed a thousand times smaller than they are."""
    path = tmp_path / "bomb.npz"
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as file,
        file.open("time.npy", "w", force_zip64=True) as member,
    ):
        member.write(zeros(50 << 20))
        for _ in range(400):
            member.write(bytes(1 << 20))
    assert "unpack to 400 MiB, more than 50 times" in refusal(path)
    assert "unpack to 400 MiB" in refusal(path, "load_columns")


def test_an_array_that_is_not_there(tmp_path, refusal):
    """NumPy makes room for what a header says before it reads."""
    path = tmp_path / "lie.npz"
    bomb(path, {storage.KEY: header(runs.one()), "time": zeros(1 << 40), "values": zeros(8)}, 0)
    assert "'time' has another size than its header says" in refusal(path)


def parquet(path: Path, rows: int, shape: list[int], columns: int = 2) -> None:
    zero = pa.array(np.zeros(rows))
    names = [f"c{k}" for k in range(columns)]
    fields = [pa.field(name, pa.float64(), nullable=False) for name in names]
    about = json.loads(storage._header(runs.one())) | {"shape": shape}
    schema = pa.schema(fields, metadata={storage.KEY: json.dumps(about), storage.DIGEST: "0"})
    table = pa.Table.from_arrays([zero] * columns, schema=schema)
    pq.write_table(table, path, compression="zstd", use_dictionary=False)


def test_a_table_with_other_rows_than_described(tmp_path, refusal):
    path = tmp_path / "bomb.parquet"
    parquet(path, 4 << 20, [41, 1])
    assert "4194304 rows of 2 columns instead of 41 of 2" in refusal(path)


def test_a_table_that_unpacks_to_gigabytes(tmp_path, monkeypatch):
    path = tmp_path / "bomb.parquet"
    parquet(path, 4 << 20, [4 << 20, 1])
    monkeypatch.setattr(storage, "MAX_PACKED", 1 << 20)
    monkeypatch.setattr(pq.ParquetFile, "read", lambda *_: pytest.fail("it was read"))
    with pytest.raises(ax.FileError, match=r"kB unpack to 32 MiB, more than 50 times"):
        Trajectory.load(path)


def test_values_packed_as_a_dictionary_are_refused(tmp_path):
    """One number and a count of repetitions take no room in the file at all."""
    path = tmp_path / "dictionary.parquet"
    run = runs.one()
    run.save(path)
    table = pq.read_table(path)
    pq.write_table(table, path, use_dictionary=True)
    with pytest.raises(ax.FileError, match="is not one of plain numbers"):
        Trajectory.load(path)


@pytest.mark.parametrize("how", ["ax.load", "ax.load_model", "ax.Trajectory.load", "load_columns"])
def test_a_pipe_that_nobody_fills_is_not_waited_for(tmp_path, monkeypatch, how):
    monkeypatch.setattr("axode.disk.bounded.TIMEOUT", 0.2)
    ending = {"ax.load": "toml", "ax.load_model": "axm"}.get(how, "npz")
    readers = {
        "ax.load": ax.load,
        "ax.load_model": ax.load_model,
        "ax.Trajectory.load": Trajectory.load,
        "load_columns": load_columns,
    }
    path = tmp_path / f"pipe.{ending}"
    os.mkfifo(path)
    with pytest.raises(ax.FileError, match="pipe"):
        readers[how](path)


def test_a_pipe_that_is_filled_is_read(tmp_path):
    path = tmp_path / "pipe.toml"
    os.mkfifo(path)
    text = SOUND
    with subprocess.Popen(
        [sys.executable, "-P", "-c", f"open({str(path)!r}, 'w').write({text!r})"]
    ):
        assert [body.name for body in ax.load(path).bodies] == ["b"]


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="there is no /dev/zero")
@pytest.mark.parametrize("name", ["m.axm", "m.toml", "m.npz", "m.csv"])
def test_a_link_to_an_endless_device(tmp_path, name):
    path = tmp_path / name
    path.symlink_to("/dev/zero")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    reader = {".axm": ax.load_model, ".toml": ax.load}.get(path.suffix, load_columns)
    with pytest.raises(ax.FileError):
        reader(path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # kB


def test_large_model_files_are_not_read(tmp_path):
    path = tmp_path / "m.axm"
    with path.open("wb") as file:
        file.write(b"axode-model\n")
        file.truncate(1 << 40)
    with pytest.raises(ax.FileError, match="is larger than 512 MiB, as no model is"):
        ax.load_model(path)


@pytest.mark.parametrize(
    "key",
    ["a." * 30_000 + "a = 1", "[" + "a." * 30_000 + "a]", "x = { " + '"a" . ' * 20 + "a = 1 }"],
)
def test_keys_of_very_many_parts_are_refused_before_they_are_kept(tmp_path, key):
    """30 000 dots took 3.6 GB: every beginning of the key was kept."""
    path = tmp_path / "dots.toml"
    path.write_text('name = "x"\n' + key + "\n")
    with pytest.raises(ax.FileError, match="line 2: a key has more than 16 parts"):
        ax.load(path)


@pytest.mark.parametrize("unit", ['\\"', '\\"""\n', "'\n"])
def test_strings_without_end_are_looked_for_once(tmp_path, unit):
    """2 MB of them took hours, for the rest of the file was searched from each quote."""
    path = tmp_path / "quotes.toml"
    path.write_text(unit * (200_000 // len(unit)))
    began = time.process_time()
    with pytest.raises(ax.FileError, match="line 1"):
        ax.load(path)
    assert time.process_time() - began < 5.0


@pytest.mark.parametrize("text", ["x = [" + "1," * 600_000 + "]", "[a.b.c.d.e.f]\n" * 100_000])
def test_very_many_words_are_refused_before_they_are_kept(tmp_path, text):
    """2 million numbers took 0.7 GB, 100 000 long headers 1 GB."""
    path = tmp_path / "words.toml"
    path.write_text(text)
    with pytest.raises(ax.FileError, match="has more than 500000 names and numbers"):
        ax.load(path)


def test_dots_in_strings_and_comments_are_no_keys(tmp_path):
    dots = "a." * 50 + "a"
    path = tmp_path / "dots.toml"
    path.write_text(f'# {dots}\nname = "{dots}" # "{dots}\n{SOUND}')
    assert ax.load(path).name == dots


def test_a_chain_too_long_for_code_without_loops_is_refused_early():
    bot = ax.Mechanism("chain")
    before = "ground"
    for k in range(1001):
        bot.add_body(f"b{k}", mass=1.0, inertia=(1, 1, 1))
        bot.add_joint(f"j{k}", ax.Revolute("y"), parent=before, child=f"b{k}")
        before = f"b{k}"
    with pytest.raises(ax.NotApplicable, match=r"'chain' has 1001 speeds.*at most 1000"):
        bot.derive()


def test_names_of_columns_are_printable(tmp_path):
    path = tmp_path / "run.npz"
    run = runs.one()
    text = str(header(run)).replace(run.names[0], "\\u001b[2J")
    members = {storage.KEY: np.array(text), "time": run.time, "values": run.values}
    bomb(path, members, zipfile.ZIP_STORED)
    with pytest.raises(ax.FileError, match="expected printable text") as caught:
        Trajectory.load(path)
    assert "\x1b" not in str(caught.value)


@pytest.mark.parametrize("damage", [b"(", b"'", b"{", b"\xff", b"\n", b"L"])
def test_headers_that_cannot_be_parsed(tmp_path, damage):
    """NumPy reads them as Python's words: a bracket that stays open is a TokenError."""
    path = tmp_path / "run.npz"
    sound = zeros(0)
    for place in range(10, len(sound), 7):
        header_of_time = sound[:place] + damage + sound[place + 1 :]
        bomb(path, {storage.KEY: header(runs.one()), "time": header_of_time, "values": sound}, 0)
        with pytest.raises(ax.FileError):
            Trajectory.load(path)
