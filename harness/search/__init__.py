"""Random programs, what they reached, and the shortest that fails."""
