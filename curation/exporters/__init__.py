"""Records in the formats of others: pure functions of a record and what is known beside it."""
