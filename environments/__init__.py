"""Where a call can be executed again."""
