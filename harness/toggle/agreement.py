"""Ranks of tensor parallelism decide alike, each with the environment of its node."""

from datetime import timedelta
from typing import Any

import torch.distributed as dist

from harness.toggle.settings import PREFIX, BadSetting, Settings

PATIENCE = timedelta(minutes=2)
"""How much later than others a rank may come: all have just loaded the draft, and captured its graphs, together."""


def check_agreement(settings: Settings, group: Any) -> None:
    """Raise BadSetting unless all ranks of a `GroupCoordinator` (distributed/parallel_state.py) have these settings.

    Ranks that decide differently wait for each other in the next forward, for ever. A rank without a toggle never comes
    here, and a gather alone would wait for it.
    """
    if group.world_size == 1:
        return
    try:
        dist.monitored_barrier(group.cpu_group, timeout=PATIENCE)
    except RuntimeError as error:
        raise BadSetting(f"not all ranks have a toggle: set the {PREFIX} variables on every node") from error
    everyones = [""] * group.world_size
    dist.all_gather_object(
        everyones, " ".join(f"{name}={value}" for name, value in settings.environment().items()), group.cpu_group
    )
    for rank, others in enumerate(everyones):
        if others != everyones[0]:
            raise BadSetting(f"rank 0 has {everyones[0]}, rank {rank} has {others}: set the same on every node")
