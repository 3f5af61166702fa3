"""The report of a validation: for a browser, a program, a CI system and a pull request."""
