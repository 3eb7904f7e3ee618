"""What can go wrong at our own door.

CurationError
├── UsageError      what the user asked for cannot be done as asked
├── NotFoundError   nothing has that id, or several things do
└── StoreError      the store's bytes are not what their names say
    ├── MovedError  a data file is gone since the store was opened
    └── ErasedError what was to be written is about what is erased
"""


class CurationError(Exception):
    """Base of our errors: one line that names the value, the place and the way out."""


class UsageError(CurationError):
    """What the user asked for cannot be done as asked."""


class NotFoundError(CurationError):
    """Nothing has that id, or several things do."""


class StoreError(CurationError):
    """The store's bytes are not what their names say."""


class MovedError(StoreError):
    """A data file is gone that was there when the store was opened, as where another process erases."""


class ErasedError(StoreError):
    """What was to be written is about what is erased, as where another process erases."""
