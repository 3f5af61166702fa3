"""A plugin's function, found by its module or its file."""

from pathlib import Path

import pytest

from harness.errors import RefusedConfiguration
from harness.patches.plugins import function_of


def test_of_a_file_in_a_folder_with_a_colon(tmp_path: Path) -> None:
    file = tmp_path / "10:30" / "hooks.py"
    file.parent.mkdir()
    file.write_text("def register():\n    return 5\n")
    assert function_of(f"{file}:register")() == 5
    with pytest.raises(RefusedConfiguration, match=r"10:30/hooks\.py has no function other"):
        function_of(f"{file}:other")


def test_of_a_module() -> None:
    assert function_of("os.path:join") is __import__("os").path.join
