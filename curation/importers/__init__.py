"""From log files to records: one file a format, each a pure iterator of what it read and what it could not."""
