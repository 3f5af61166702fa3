"""Acceptance as a number that one chooses, for models whose weights are made up."""

VARIABLE = "SGLANG_SIMULATE_ACC_LEN"


def environment(accept_length: float | None) -> dict[str, str]:
    """Variables that make each verify of a spec step accept so many tokens a request, the bonus token included.

    From 1 to steps + 1; SGLang cuts what is more. A fraction is met on average: a step accepts the next whole number
    below or above, the same for all its requests. `generate_simulated_accept_index` (speculative/spec_utils.py) does
    it, for v1 (eagle_info.py) and V2 (eagle_info_v2.py) at the end of `verify`, after all the work of a real one: plain
    steps, which verify nothing, are as they are. Every token is 100 then. The variable is read once, when SGLang is
    imported, so that it must be set before.
    """
    return {} if accept_length is None else {VARIABLE: f"{accept_length:g}"}
