"""From records to training rows: candidates, checks, three kinds of rows, and the files and card of a build."""
