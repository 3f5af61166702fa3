"""I7: a captured graph is replayed with what it was captured for."""

from harness.checks.base import Check, Findings, Violation
from harness.observation import Compared, Replay

TOLERANCE = {"float32": 2e-2, "bfloat16": 1.0, "float16": 0.25}
"""Largest difference of a logit between replay and eager, whose kernels may differ; the pair's margins are above 14."""


class Graphs(Check):
    """Size, mode, tokens, padding and addresses of a replay, and its result against an eager forward's.

    `CudaGraphRunner.{can_run,replay_prepare}` (model_executor/cuda_graph_runner.py) checks neither mode nor token
    count. Padded rows must write to slot 0 and have the fill length; the engine poisons them before each preparation,
    so that leaving them as they were shows. The KV indices that a draft's steps list must fit what was captured for
    them (`FlashInferMultiStepDraftBackend.init_cuda_graph_state`, layers/attention/flashinfer_backend.py): the kernel
    that writes them goes on behind its end. Results are compared once for each captured size after each switch, for
    the target; SGLang's own draft extend differs between graph and eager (cases/upstream), so that it isn't compared.
    """

    name = "I7-graphs"

    def at_replay(self, replay: Replay) -> Findings:
        """Compare the batch with the graph."""
        model = replay.model
        if replay.captured_size < replay.batch_size:
            yield Violation(f"captured size of the {model}'s graph", f">= {replay.batch_size}", replay.captured_size)
        if replay.captured_mode != replay.mode:
            yield Violation(f"forward mode of a batch on the {model}'s graph", replay.captured_mode, replay.mode)
        expected = replay.batch_size * replay.tokens_each
        if replay.tokens != expected and not (replay.ragged and replay.tokens <= expected):
            yield Violation(f"tokens of {replay.batch_size} requests on the {model}'s graph", expected, replay.tokens)
        if replay.room is not None and replay.listed > replay.room:
            yield Violation(f"KV indices that a step of the {model}'s graph lists", f"<= {replay.room}", replay.listed)
        for name in replay.moved:
            yield Violation(f"address of the {model}'s captured {name}", "that of capture", "another")
        if replay.padded_slots is None or replay.padded_lengths is None:
            return
        slots, lengths = replay.values("padded_slots"), replay.values("padded_lengths")
        if any(slots):
            yield Violation(f"KV slots of padded rows, {model},", 0, sorted(set(slots)))
        if any(length != replay.fill_length for length in lengths):
            yield Violation(f"lengths of padded rows, {model},", replay.fill_length, sorted(set(lengths)))

    def compared(self, compared: Compared) -> Findings:
        """Compare logits."""
        if compared.replayed.shape != compared.eager.shape:
            yield Violation("shape of a replay's logits", tuple(compared.eager.shape), tuple(compared.replayed.shape))
            return
        difference = float((compared.replayed.float() - compared.eager.float()).abs().max())
        if not difference <= TOLERANCE[self.config.dtype]:
            tokens = [logits.argmax(-1)[:8].tolist() for logits in (compared.eager, compared.replayed)]
            what = f"a replay of {compared.mode}, {compared.batch_size} requests, by {difference:.3g} off eager: tokens"
            yield Violation(what, tokens[0], tokens[1])
