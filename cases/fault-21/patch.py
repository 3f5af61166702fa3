"""Fault 21: the inputs of a plain graph are copied for the requests alone.

`GraphInputBuffers.populate_from_forward_batch` first resets what padded rows write to and how long they are. A
preparation of one's own must, too.
"""

from bisect import bisect_left
from typing import Any

from harness.toggle import plain_target
from harness.toggle.plain_target import PlainGraphRunner, attributes

WORKER = "v1"


class OwnPreparation(PlainGraphRunner):
    """Copies what a decode forward of a dense model reads."""

    def replay_prepare(self, forward_batch: Any, pp_proxy_tensors: Any = None) -> None:
        """Fill the first rows of the smallest graph that fits."""
        inputs, requests = self.buffers, forward_batch.batch_size
        size = self.capture_bs[bisect_left(self.capture_bs, requests)]
        self.raw_bs, self.raw_num_token, self.bs = requests, requests, size
        for name in ("input_ids", "positions", "req_pool_indices", "seq_lens", "seq_lens_cpu", "out_cache_loc"):
            getattr(inputs, name)[:requests].copy_(getattr(forward_batch, name))
        self.attn_backend.init_forward_metadata_replay_cuda_graph(
            size,
            inputs.req_pool_indices[:size],
            inputs.seq_lens[:size],
            forward_batch.seq_lens_sum + size - requests,
            None,
            self.capture_forward_mode,
            None,
            seq_lens_cpu=inputs.seq_lens_cpu[:size],
        )


def worker(toggled: type) -> type:
    """The toggled class, with a preparation of its own."""

    class Fault(toggled):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            with attributes(plain_target, PlainGraphRunner=OwnPreparation):
                super().__init__(*args, **kwargs)

    return Fault
