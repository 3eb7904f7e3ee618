"""Published JSON Schemas, one file each."""
