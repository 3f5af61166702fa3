"""The stage of the search: random programs over the configuration grid, for the time that is left."""

from harness.report import facts
from harness.search.search import Plan as SearchPlan
from harness.search.search import Search
from harness.validation.ending import Ending
from harness.validation.lab import Lab, coverage_of
from harness.validation.profile import Least
from harness.validation.stage import INTERRUPTED, Coverage, Stage
from harness.validation.tokens import grid_of

NAME = "search"


def searched(lab: Lab, seconds: float, earlier: Stage | None = None) -> Stage:
    """Search until something fails, or for `seconds`; `earlier` was interrupted, and this one goes on behind it."""
    ending, plan = Ending(lab, NAME), lab.plan
    before = earlier.coverage if earlier else Coverage()
    configs = grid_of(plan, lab.workers[0] if len(lab.workers) == 1 else None)
    begin = before.configurations % len(configs)
    search = Search(
        SearchPlan(
            grid=(*configs[begin:], *configs[:begin]),
            device=plan.device,
            seed=plan.seed + before.programs,
            seconds=seconds,
            threads=plan.at_once,
            gpus=plan.gpus,
            shrink_seconds=plan.profile.budget.shrink,
            limits=plan.limits,
        )
    )
    finding = search.run(lab.watch, lab.pools)
    now = coverage_of(search.progress)
    coverage = before + now
    coverage = coverage.model_copy(update={"configurations": min(coverage.configurations, len(configs))})
    if finding is not None:
        stage = ending.found(finding, f"a random program, shrunk: {facts.in_full(finding.ran.outcome)}")
    elif search.interrupted:
        stage = ending.unproven(INTERRUPTED)
    else:
        said = (
            f"{coverage.programs} random programs on {coverage.configurations} of {len(configs)} configurations, "
            f"{coverage.crossing} of them across the threshold"
        )
        if coverage.refused:
            said += f"; the patch refuses {len(coverage.refused)}: {next(iter(coverage.refused.values()))}"
        if _enough(coverage, plan.profile.budget.least, len(configs)):
            stage = ending.passed(said)
        else:
            stage = ending.unproven(f"{said}: too few; run it again, or with a longer profile")
    spent = stage.seconds + (earlier.seconds if earlier else 0)
    return stage.model_copy(update={"coverage": coverage, "seconds": spent})


def _enough(seen: Coverage, least: Least, of_grid: int) -> bool:
    """A patch may refuse what it can't do right, but not most of it."""
    reached = seen.configurations + len(seen.refused)
    many = seen.programs >= least.programs and reached >= least.share_of_grid * of_grid
    return bool(seen.crossing) and many and len(seen.refused) <= seen.configurations
