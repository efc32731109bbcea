"""The Python in the guide runs, in both languages."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from conftest import ROOT


@pytest.mark.parametrize("name", ["docs/guide/python.md", "docs/zh/guide/python.md"])
def test_the_python_of_the_guide_runs(name: str, tmp_path: Path) -> None:
    programs = re.findall(r"```python\n(.*?)```", (ROOT / name).read_text(encoding="utf-8"), re.DOTALL)
    assert programs
    for program in programs:
        exec(compile(program, name, "exec"), {})
    assert (tmp_path / "ds_zero3.json").is_file()
