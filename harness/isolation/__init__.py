"""Engines in processes of their own: what they do there can't take the parent with it."""
