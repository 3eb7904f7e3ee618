"""The command line: one file a verb, each a thin edge over one function."""
