"""The engine configurations that this harness answers for."""

from harness.configuration import CAPTURED_SIZES, EngineConfig, Toggle, Worker

WORKERS = {
    "none": {"worker": Worker.NONE},
    "none-overlap": {"worker": Worker.NONE, "overlap": True},
    "v1": {"worker": Worker.V1},
    "V2": {"worker": Worker.V2},
    "V2-page-4": {"worker": Worker.V2, "page_size": 4},
    "V2-page-16": {"worker": Worker.V2, "page_size": 16},
}
GRAPHS = {"graphs": {}, "no-graphs": {"graphs": ()}}
DTYPES = ("float32", "bfloat16")

GRID = {
    f"{worker}-{graphs}-{dtype}": EngineConfig(**WORKERS[worker], **GRAPHS[graphs], dtype=dtype)
    for worker in WORKERS
    for graphs in GRAPHS
    for dtype in DTYPES
}
"""By name, e.g. `v1-no-graphs-bfloat16`."""

TOGGLED_WORKERS = {
    "v1": {"worker": Worker.V1},
    "v1-topk-1": {"worker": Worker.V1, "topk": 1},
    "v1-topk-1-page-4": {"worker": Worker.V1, "topk": 1, "page_size": 4},
    "v1-topk-1-page-16": {"worker": Worker.V1, "topk": 1, "page_size": 16},
    "V2": {"worker": Worker.V2},
    "V2-page-4": {"worker": Worker.V2, "page_size": 4},
    "V2-page-16": {"worker": Worker.V2, "page_size": 16},
}

TOGGLED = {
    f"{worker}-{graphs}-{dtype}": EngineConfig(
        **TOGGLED_WORKERS[worker],
        **{"graphs": CAPTURED_SIZES} | GRAPHS[graphs],
        dtype=dtype,
        max_running_requests=20,
        toggle=Toggle(threshold=5),
    )
    for worker in TOGGLED_WORKERS
    for graphs in GRAPHS
    for dtype in DTYPES
}
"""With the toggle, and room for more requests than the largest captured size."""

PLAIN = {
    f"{name}-plain": config.model_copy(update={"toggle": Toggle(threshold=5, strategy="plain")})
    for name, config in TOGGLED.items()
}
"""The same with strategy plain."""
PLAIN_SAMPLE = ("v1-topk-1-page-4-no-graphs-float32-plain", "V2-page-4-graphs-float32-plain")
"""Of these what runs every time."""
