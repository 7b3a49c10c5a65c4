"""Where an operation stands in the user's text, for error messages."""

from xdsl.dialects.builtin import FileLineColLoc
from xdsl.ir import Operation

from cim_opt.errors import Location


def location_of(op: Operation) -> Location | None:
    """(file, line, column) of `op`, or of the nearest operation around it that has one.

    An operation that a pass made has no place of its own unless the pass copied one
    (`location=op.location`); the operation around it is then the best that can be shown.
    None when nothing around it came from text.
    """
    current: Operation | None = op
    while current is not None:
        place = current.location
        if isinstance(place, FileLineColLoc):
            return place.filename.data, place.line.data, place.column.data
        current = current.parent_op()
    return None
