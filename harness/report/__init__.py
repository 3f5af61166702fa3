"""What a person sees of a trace."""
