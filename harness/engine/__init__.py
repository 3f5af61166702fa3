"""Boot, step, reset and close SGLang's real scheduler in this process."""
