"""Finds, shrinks and replays bugs at the switch between speculative and plain decoding in SGLang."""
