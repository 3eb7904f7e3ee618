"""What went wrong at which decision, with evidence out of the record: one label a file, pure functions only."""
