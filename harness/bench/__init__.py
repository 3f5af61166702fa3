"""Measurements: what the harness costs, as ratios within one run where possible."""
