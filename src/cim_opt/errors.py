"""The one exception type for errors that a user can put right."""

Location = tuple[str, int, int]


class UserError(Exception):
    """A mistake in the user's input, said in one line: what is wrong; the limit; what to do.

    `location` is (file, line, column), both counted from 1, where the input is text.
    The tools print `str(error)` and exit with 1; nothing else prints it.
    """

    def __init__(
        self,
        what: str,
        limit: str | None = None,
        remedy: str | None = None,
        location: Location | None = None,
    ) -> None:
        super().__init__(what)
        self.what = what
        self.limit = limit
        self.remedy = remedy
        self.location = location

    def message(self) -> str:
        """The error without its location: `what; limit; remedy`, leaving out what is not there."""
        return "; ".join(part for part in (self.what, self.limit, self.remedy) if part)

    def __str__(self) -> str:
        if self.location is None:
            return f"error: {self.message()}"
        file, line, column = self.location
        return f"{file}:{line}:{column}: error: {self.message()}"
