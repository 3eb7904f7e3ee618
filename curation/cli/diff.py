"""``curate diff``: two runs side by side."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from curation.cli.options import JsonOption, StoreOption

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from curation.difference import Difference, Shown


def diff(
    left: Annotated[str, typer.Argument(metavar="ID", help="A trajectory or attempt, by its id or as a log calls it.")],
    right: Annotated[str, typer.Argument(metavar="ID", help="The one to compare it with.")],
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show two runs side by side from where they part, and say why.

    Attempts or forks; ids may be shortened. Two messages are the same where a model sees the same.
    """
    from curation.cli.options import open_store
    from curation.cli.output import finish, open_console
    from curation.difference import compare
    from curation.masking import masked_struct
    from curation.store.lookup import resolve_trajectory

    opened = open_store(store)
    found = masked_struct(compare(opened, resolve_trajectory(opened, left), resolve_trajectory(opened, right)))
    if as_json:
        finish(found, as_json=True)
    else:
        _print(open_console(), found)


def _print(console: Any, found: "Difference") -> None:
    """What parts them, what is known of both, then their messages in columns of half the width."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from curation.cli.tables import pairs

    own = {"message": found.message, "where": found.where, "why": found.why, "related": found.related}
    own["same_task"] = {True: "yes", False: "no, or another start state", None: None}[found.same_task]
    console.print(pairs({name: value for name, value in own.items() if value is not None}))
    console.print(_sides(found))
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), expand=True)
    for title in ("left", "right"):
        table.add_column(title, ratio=1, overflow="fold")
    for row in found.rows:
        table.add_row(_cell(row.left), _cell(row.right, like=row.same), end_section=True)
    if found.rows:
        console.print(table)


def _sides(found: "Difference") -> "Table":
    """What is known of one side or the other, a fact a line."""
    import msgspec
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    from curation.cli.tables import word
    from schemas.display import clean

    left, right = msgspec.to_builtins(found.left), msgspec.to_builtins(found.right)
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column(style="dim", no_wrap=True)
    for title in ("left", "right"):
        table.add_column(title, overflow="fold")
    for name in left:
        if left[name] is not None or right[name] is not None:
            table.add_row(name, *(Text(clean(word(value))) for value in (left[name], right[name])))
    return table


def _cell(shown: "Shown | None", *, like: bool = False) -> "Text":
    """A message as text: nothing of it has a meaning to the terminal."""
    from rich.text import Text

    from curation.cli.tables import word
    from schemas.display import clean

    if shown is None:
        return Text("(over)", style="dim")
    cell = Text(f"{shown.message} {shown.role}", style="bold")
    if like:
        return cell.append(" (the same)", style="dim")
    plain = "not bold"
    for label, text in (("reasoning: ", shown.reasoning), ("", shown.text), ("error: ", shown.error)):
        if text:
            cell.append(f"\n{label}{clean(word(text))}", style=plain)
    for call in shown.calls:
        cell.append(f"\n-> {clean(word(call))}", style=plain)
    return cell
