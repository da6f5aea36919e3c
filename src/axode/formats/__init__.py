"""Mechanisms and meshes in the files of other programs."""
