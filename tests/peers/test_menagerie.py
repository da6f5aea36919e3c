"""MuJoCo Menagerie, if a folder with it is named: every file gives a model or a list of faults.

Set AXODE_MENAGERIE to a checkout of the collection; without it nothing here runs.
"""

import pytest

from tests.peers.menagerie import FILES, FOLDER, UNREADABLE, compare


@pytest.mark.skipif(not FILES, reason="AXODE_MENAGERIE names no folder with MJCF files")
@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(FOLDER)))
def test_a_file_gives_a_model_that_equals_mujoco_or_a_list(path):
    if compare(path)["outcome"] == UNREADABLE:
        pytest.skip("a mesh or a texture is not there")
