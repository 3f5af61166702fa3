"""The fixed toggle: speculation off above a threshold of running requests, on at or below it. Deployable alone."""
