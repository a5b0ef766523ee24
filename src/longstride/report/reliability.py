"""A reliability diagram: how often answers were right that a scorer gave a probability.

What always holds: the same bins make the same file; a scorer on the diagonal is calibrated; the legend has each
scorer's expected calibration error, over the bins that are drawn.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from longstride.core.errors import require
from longstride.stats.agreement import Bin


def draw_reliability(scorers: Mapping[str, Sequence[Bin]], path: str | Path) -> None:
    """Writes an SVG: a curve a scorer, dots by how many answers a bin has.

    Args:
        scorers: by name, what `stats.agreement.reliability` says.
        path: of the file.

    Raises:
        MissingExtra: matplotlib is not installed.
    """
    require("matplotlib", "plot")
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.5, 3.6), layout="constrained")
    ax = figure.subplots()
    ax.plot([0, 1], [0, 1], color="0.7", linewidth=1)
    for name, bins in scorers.items():
        total = sum(b.count for b in bins)
        error = sum(b.count * abs(b.score - b.right) for b in bins) / total
        x, y = [b.score for b in bins], [b.right for b in bins]
        (line,) = ax.plot(x, y, label=f"{name} ({error:.3f})", linewidth=1)
        ax.scatter(x, y, [4 + 80 * b.count / total for b in bins], color=line.get_color())
    ax.set_xlabel("score")
    ax.set_ylabel("share that was right")
    figure.legend(loc="outside right upper", frameon=False, fontsize="small", title="calibration error")
    with rc_context({"svg.hashsalt": Path(path).stem}):
        figure.savefig(path, format="svg", metadata={"Date": None})
