"""What counting a program gives."""

from dataclasses import dataclass


@dataclass(frozen=True)
class CountReport:
    """Counts of one program, with the meaning of the names as in `SimdramReport`.

    Numbers are whole unless a mean over unknown scalars went into them.
    """

    bbops: float
    aap: float
    ap: float
    limited_seconds: float
    unlimited_seconds: float
    energy_nj: float
    host_seconds: float
    transposed_bytes: float
    read_bytes: float
    transposed_seconds: float
    read_seconds: float
    utilisation: float
    rows_peak: int
    unknown_scalars: bool
    """Whether products with unknown scalars went in as means."""

    @property
    def commands(self) -> float:
        """AAP and AP."""
        return self.aap + self.ap
