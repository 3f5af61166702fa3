"""The pages are in step with what they describe."""

import re
import shlex
import sys
from pathlib import Path

import pytest
import typer
import yaml
from typer.cli import get_docs_for_click
from typer.main import get_command

from harness import cli

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "cases").rglob("*.md"))]
RECIPES = ROOT / "docs" / "ci"


def test_the_command_line_is_described_as_it_is() -> None:
    """Made by `typer harness.cli utils docs --name toggle-harness --output docs/cli.md`."""
    command = get_command(cli.app)
    made = get_docs_for_click(obj=command, ctx=typer.Context(command), name="toggle-harness")
    assert (ROOT / "docs" / "cli.md").read_text() == f"{made.strip()}\n"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) < 150


def commands() -> list[str]:
    """The validate commands of the recipes."""
    steps = yaml.safe_load((RECIPES / "validate.yml").read_text())["jobs"]["validate"]["steps"]
    (github,) = (step["run"] for step in steps if "harness.cli validate" in step.get("run", ""))
    (hook,) = yaml.safe_load((RECIPES / "pre-commit-config.yaml").read_text())["repos"][0]["hooks"]
    filled = github.replace("${{ inputs.profile || 'standard' }}", "standard")
    filled = filled.replace("${{ matrix.gpu }}", "0").replace("${{ matrix.worker }}", "v1")
    return [filled.replace("patches/*.diff", "/no/such.diff"), f"{hook['entry']} /no/such.diff"]


@pytest.mark.parametrize("command", commands())
def test_recipes_are_commands_that_there_are(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    """Of a patch that there is, they would run; of one that there isn't, nothing else is wrong."""
    words = shlex.split(command)
    monkeypatch.setattr(sys, "argv", ["toggle-harness", *words[words.index("validate") :]])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 2
    assert capsys.readouterr().err == "error: /no/such.diff: No such file or directory\n"
