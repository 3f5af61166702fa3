"""Step times, in an engine's process: some decode steps of one batch in SGLang's own loop."""

from harness.bench.course import Course, Stretch
from harness.bench.tasks import Stepped, Stepping
from harness.engine.engine import Engine

STRETCH = Stretch(settled_tokens=16, steps=32)


def measure(engine: Engine, wanted: Stepping) -> Stepped:
    """Run the steps; raises RuntimeError where not all requests run together."""
    course = Course(engine, wanted.batch_size, wanted.prompt_tokens, STRETCH)
    course.run()
    tokens = (course.tokens_after - course.tokens_before) * wanted.batch_size
    return Stepped(step_ms=course.seconds / STRETCH.steps * 1e3, tokens_per_s=tokens / course.seconds)
