"""What verbs do over a whole store: read what is known, run a pure function on it, write what it says."""
