"""Validation of a patch before it is deployed: stages, quickest to fail first, and a verdict with its evidence."""
