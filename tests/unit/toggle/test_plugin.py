"""The plugin as SGLang finds it: an entry point that needs nothing of the harness but the toggle."""

import subprocess
import sys
from importlib.metadata import entry_points

from harness.toggle import plugin


def test_the_entry_point_leads_to_it() -> None:
    (found,) = (entry for entry in entry_points(group="sglang.srt.plugins") if entry.name == "speculation_toggle")
    assert found.load() is plugin.register


def test_without_settings_nothing_is_imported_or_hooked() -> None:
    """In a process of its own: neither SGLang nor pytest, hypothesis and the rest of the harness."""
    program = """
import sys
from harness.toggle import plugin, policy, settings, support
plugin.register()
unwanted = {"sglang", "torch", "pytest", "hypothesis", "pydantic", "typer"}
loaded = {name.partition(".")[0] for name in sys.modules}
rooms = {name.split(".")[1] for name in sys.modules if name.startswith("harness.")}
print(sorted(unwanted & loaded), sorted(rooms))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env={})
    assert done.stdout.strip() == "[] ['toggle']"
