"""A shop's help desk, played by scripts: jobs, policies that make mistakes, and the loop that runs them for real."""
