"""The best way to pair rows with columns."""

import numpy as np

from longspan.shapes import FloatArray


def assign(scores: FloatArray) -> float:
    """The largest sum of entries (R, C), at most one of each row and each column: Jonker and Volgenant 1987.

    Row by row, the shortest path by which the rows before make room; time grows with R²C.

    >>> assign(np.array([[3.0, 2.0], [2.0, 0.0]]))
    4.0
    """
    cost = -scores if len(scores) <= scores.shape[1] else -scores.T
    rows, columns = cost.shape
    # The column behind the last stands for the row that comes next.
    row_price, column_price = np.zeros(rows), np.zeros(columns + 1)
    owner = np.full(columns + 1, -1)
    for row in range(rows):
        here = columns
        owner[here] = row
        distance, before = np.full(columns + 1, np.inf), np.full(columns + 1, columns)
        seen = np.zeros(columns + 1, bool)
        while owner[here] >= 0:
            seen[here] = True
            slack = cost[owner[here]] - row_price[owner[here]] - column_price[:-1]
            nearer = np.append(~seen[:-1] & (slack < distance[:-1]), False)
            distance[nearer], before[nearer] = slack[nearer[:-1]], here
            reach = np.where(seen, np.inf, distance)[:-1]
            here = int(np.argmin(reach))
            row_price[owner[seen]] += reach[here]
            column_price[seen] -= reach[here]
            distance[~seen] -= reach[here]
        while here != columns:
            owner[here] = owner[before[here]]
            here = before[here]
    paired = np.flatnonzero(owner[:-1] >= 0)
    return float(-cost[owner[paired], paired].sum())
