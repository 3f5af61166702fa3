"""What is under test: replacements of the toggled worker, diffs against SGLang's source, plugins, stacks of these."""
