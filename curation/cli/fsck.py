"""``curate fsck``: read everything again."""

from curation.cli.options import JsonOption, StoreOption


def fsck(store: StoreOption = None, as_json: JsonOption = False) -> None:
    """Check every row, file and link; nothing is repaired.

    A row is compared with its name, a file of the store with the log of its table. What `curate forget` erased is
    counted, and not wrong.
    """
    import msgspec

    from curation.cli.options import find_store
    from curation.cli.output import finish
    from curation.store.fsck import check

    class Bad(msgspec.Struct):
        id: str
        table: str
        problem: str

    class FsckResult(msgspec.Struct):
        checked: int
        erased: dict[str, int]
        bad: list[Bad]

    checked = check(store or find_store())
    result = FsckResult(checked.rows, checked.erased, [Bad(*problem) for problem in checked.problems])
    finish(result, as_json=as_json, wrong=bool(result.bad))
