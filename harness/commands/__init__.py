"""The commands of `toggle-harness`, one a file."""
