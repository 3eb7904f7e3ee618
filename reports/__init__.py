"""What a selection did: counts, shares and what is missing, as a record, a page and Markdown."""
