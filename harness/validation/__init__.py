"""Whether a patch is safe to deploy, with the evidence."""
