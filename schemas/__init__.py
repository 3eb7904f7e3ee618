"""What things are: records, statements, selections, training rows. No I/O."""
