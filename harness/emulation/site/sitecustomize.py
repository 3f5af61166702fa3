"""Installs the emulated device in each Python process that has this folder on its PYTHONPATH, such as a server's."""

import sys

if not any("resource_tracker" in argument for argument in sys.orig_argv):  # it imports nothing of SGLang
    from harness import emulation

    emulation.install()
