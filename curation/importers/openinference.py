"""OpenInference spans: keys such as ``llm.input_messages.0.message.role``, flattened or not, in the containers of OTel.

Arguments of calls are text as the model wrote them. As with OpenTelemetry, the history that every span repeats is read
once. Evaluations are annotations of another place; without them there is no outcome.
"""

from collections.abc import Iterator
from typing import Any

from curation.importers.face import Importer, Item, Slice
from curation.importers.gathered import keep_bytes
from curation.importers.otel_genai import FILLS as _FILLS
from curation.importers.otel_genai import slices, spans_of_head, traces_of
from curation.importers.span_calls import is_openinference
from curation.importers.traces import read_traces

STOP_RULE = "openinference.stop@1"
FILLS = _FILLS | {"stop": f"rule {STOP_RULE}"}


def sniff(head: bytes) -> str:
    """Whether one of the first spans of a file follows the conventions of OpenInference."""
    return "spans with OpenInference attributes" if any(map(is_openinference, spans_of_head(head))) else ""


def _build(_: Any, data: bytes, piece: Slice, __: int) -> Iterator[Item]:
    return read_traces(piece, data, STOP_RULE, traces_of)


IMPORTER = Importer("openinference", "1", sniff, slices, _build, keep_bytes)
