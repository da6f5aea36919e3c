"""Pages that simulate: what is refused, and what is written; tests/browser opens them."""

from __future__ import annotations

import json
import tarfile
from dataclasses import replace

import numpy as np
import pytest

import axode as ax
from axode.cli import run as command
from axode.codegen.tape.tape import Tape
from tests.targets import hostile


@pytest.fixture(scope="module")
def model():
    return ax.gallery.build("unicycle").derive().compile()


def test_faults_of_arguments(model, tmp_path):
    with pytest.raises(ax.errors.InvalidArgument, match=r"path: a page ends in \.html or \.htm"):
        ax.page(model, tmp_path / "page.pdf")
    with pytest.raises(ax.errors.InvalidArgument, match="step: expected a positive number"):
        ax.page(model, tmp_path / "page.html", step=-1.0)
    with pytest.raises(ax.errors.InvalidArgument, match="input: a Callback runs in Python"):
        ax.page(model, tmp_path / "page.html", input=ax.Callback(lambda t, q, nu: [0.0, 0.0]))
    samples = ax.Sampled({"tau_drive": [0.0, 1.0], "tau_steer": [0.0, 0.0]}, period=0.1)
    for many in (samples, [[0.1, 0.0], [0.2, 0.0]]):
        with pytest.raises(ax.errors.InvalidArgument, match="a page takes one law, not samples"):
            ax.page(model, tmp_path / "page.html", input=many)
    with pytest.raises(ax.errors.InvalidArgument, match="keys: they change parameters, free ones"):
        ax.page(model, tmp_path / "page.html", keys={"ahead": "m"})
    with pytest.raises(ax.errors.UnknownName, match="a page has no key 'up'"):
        ax.page(model, tmp_path / "page.html", input=[0.1, 0.0], keys={"up": "m"})
    with pytest.raises(ax.errors.UnknownName, match="has no parameter 'mass'"):
        ax.page(model, tmp_path / "page.html", input=[0.1, 0.0], keys={"ahead": "mass"})
    with pytest.raises(ax.errors.UnknownName, match="speed_of_light"):
        ax.page(model, tmp_path / "page.html", signals=["speed_of_light"])
    assert not list(tmp_path.iterdir())


def test_numbers_that_are_not_finite_make_no_page(tmp_path):
    """Models from files may hold any numbers; LAPACK gave up."""
    hostile.cart().derive().compile().save(tmp_path / "cart.axm")
    header, blobs = hostile.split((tmp_path / "cart.axm").read_bytes())
    tapes = [Tape.from_bytes(blob) for blob in blobs]
    spoiled = [replace(t, constants=np.full_like(t.constants, np.nan)).to_bytes() for t in tapes]
    (tmp_path / "cart.axm").write_bytes(hostile.joined(header, spoiled))
    # the checks of its parameters are numbers of the file, too
    with pytest.raises(ax.InvalidArgument, match="no mechanism has such parameters"):
        ax.page(ax.load_model(tmp_path / "cart.axm"), tmp_path / "page.html")
    kept = [b if b"parameter_faults" in b else s for b, s in zip(blobs, spoiled, strict=True)]
    (tmp_path / "cart.axm").write_bytes(hostile.joined(header, kept))
    with pytest.raises(ax.NotApplicable, match="'cart' has accelerations that are not finite"):
        ax.page(ax.load_model(tmp_path / "cart.axm"), tmp_path / "page.html")
    assert not (tmp_path / "page.html").exists()


def test_the_command_writes_a_page(tmp_path, capsys):
    path = tmp_path / "wheel.html"
    assert command(["page", "unicycle", "-o", str(path), "--input", "tau_drive=0.1"]) == 0
    assert f"wrote {path}" in capsys.readouterr().out
    text = path.read_text()
    assert text.count("<script") == 4 and "http" not in text.replace("http-equiv", "")


def test_export_to_webassembly(model, tmp_path):
    written = model.export(tmp_path / "wheel.wasm", ["forward_dynamics", "mass_matrix"])
    assert [path.name for path in written] == ["wheel.wasm", "wheel.js", "wheel.d.ts"]
    assert written[0].read_bytes()[:4] == b"\0asm"
    assert '"./wheel.wasm"' in written[1].read_text()
    (package,) = model.export(tmp_path / "My wheel.tgz")
    with tarfile.open(package) as archive:
        names = {member.name for member in archive}
        about = json.load(archive.extractfile("package/package.json"))
    assert about["name"] == "my-wheel" and about["type"] == "module"
    assert names == {f"package/{n}" for n in (*about["files"], "package.json")}
