"""Folders that several commands ask for at once."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from harness.folders import make_writable


def test_many_at_once(tmp_path: Path) -> None:
    folder = tmp_path / "one" / "two"
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: make_writable("--output", folder), range(400)))
    assert list(folder.iterdir()) == []
