"""What a draft that lags is behind by, cut into forwards that fit into memory."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Span:
    """Positions of one request for which draft KV is to be written."""

    place: int
    """The request's place in its batch."""
    start: int
    end: int


def chunks(spans: Sequence[Span], most: int) -> Iterator[list[Span]]:
    """The spans in order, in lists of at most `most` positions together; a span that doesn't fit is cut."""
    chunk: list[Span] = []
    room = most
    for span in spans:
        start = span.start
        while start < span.end:
            end = min(span.end, start + room)
            chunk.append(Span(span.place, start, end))
            room -= end - start
            start = end
            if not room:
                yield chunk
                chunk, room = [], most
    if chunk:
        yield chunk
