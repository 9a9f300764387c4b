"""Beside pyproject.toml for the one thing that it cannot say: the generated files that belong into PREFIX/share."""

import os
import sys

from setuptools import setup

HERE = os.path.dirname(os.path.abspath(__file__))
BUILT = "build/share"
os.chdir(HERE)
sys.path.insert(0, HERE)

from cortex_tools.manual import share  # noqa: E402 (found once the path is set; needs nothing but Python)

folders: dict[str, list[str]] = {}
for path in share.write(BUILT):
    folders.setdefault(os.path.dirname(path), []).append(f"{BUILT}/{path}")
setup(data_files=[(f"share/{folder}", sorted(files)) for folder, files in sorted(folders.items())])
