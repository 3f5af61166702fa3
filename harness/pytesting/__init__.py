"""pytest on the machine that it finds: workers, GPUs, and what is left of a worker that died."""
