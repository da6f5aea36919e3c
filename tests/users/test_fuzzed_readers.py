"""Every reader of mechanism files on a few spoiled texts; `make soak` tries thousands."""

import random
import warnings

import pytest

from tests.spoiled_texts import corpora
from variants import further

pytest.importorskip("resource", reason="Windows limits no memory")
fuzz_readers = pytest.importorskip("tests.fuzz_readers")

READERS = ("toml", "extends", "urdf", "mjcf", "sdf", "meshes")


@pytest.mark.parametrize("name", READERS)
def test_texts_that_are_right_are_read(name, tmp_path):
    corpus = corpora()[name]
    for file, text in corpus.beside.items():
        (tmp_path / file).write_text(text)
    for suffix, texts in corpus.texts.items():
        path = tmp_path / f"robot{suffix}"
        for text in texts[-4:]:
            path.write_bytes(text.encode(corpus.encoding))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                assert fuzz_readers.attempt(path, corpus.read) == "read", text


@pytest.mark.parametrize("seed", [1, *map(further, range(2, 6))])
@pytest.mark.parametrize("name", READERS)
def test_only_our_own_errors_come_out_of_spoiled_texts(name, seed, tmp_path):
    corpus, dice = corpora()[name], random.Random(seed)
    for _ in range(25):
        suffix, data = corpus.draw(dice)
        path = tmp_path / f"robot{suffix}"
        path.write_bytes(data)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            outcome = fuzz_readers.attempt(path, corpus.read)
        assert not outcome.startswith("fault"), f"{outcome}\n{path.read_bytes()!r}"


def test_a_reader_that_fails_is_a_fault(tmp_path, monkeypatch):
    path = tmp_path / "robot.urdf"
    monkeypatch.setattr(fuzz_readers.ax, "load", lambda path: {}["missing"])
    assert fuzz_readers.attempt(path).startswith("fault: KeyError in test_fuzzed_readers.py")
    monkeypatch.setattr(fuzz_readers.ax, "load", lambda path: [0] * (1 << 60))
    assert fuzz_readers.attempt(path) == "fault: MemoryError"
