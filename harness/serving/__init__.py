"""A real server in processes of its own, and a real client that asks it over HTTP on loopback."""
