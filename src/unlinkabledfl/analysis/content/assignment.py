"""The assignment problem: rows to different columns, so that what the pairs are worth together is most.

The method of shortest augmenting paths (Kuhn, Munkres; in this form Jonker and Volgenant): rows are added one by one,
each along the path of least reduced cost through those that are there. It is a page of code, and scipy, which has the
same, is eighty times that in megabytes and nothing else here needs it.
"""

import numpy as np
import numpy.typing as npt

from unlinkabledfl.errors import LocalProtocolError

Costs = npt.NDArray[np.float64]


def best_assignment(worth: npt.NDArray[np.floating]) -> npt.NDArray[np.int64]:
    """Return the column of each row. There are at least as many columns as rows."""
    rows, columns = worth.shape
    if rows > columns:
        raise LocalProtocolError(f"{rows} rows cannot have {columns} columns of their own")
    cost = -worth.astype(np.float64)
    row_price, column_price = np.zeros(rows), np.zeros(columns)
    owner = np.full(columns, -1)
    for row in range(rows):
        _add(row, cost, row_price, column_price, owner)
    found = np.empty(rows, dtype=np.int64)
    taken = np.flatnonzero(owner >= 0)
    found[owner[taken]] = taken
    return found


def _add(row: int, cost: Costs, row_price: Costs, column_price: Costs, owner: npt.NDArray[np.int64]) -> None:
    """Give one more row a column, and move others to different ones where that is cheaper."""
    columns = cost.shape[1]
    distance = np.full(columns, np.inf)
    came_from = np.full(columns, -1)
    done = np.zeros(columns, dtype=bool)
    last, at, gone_s = -1, row, 0.0
    while True:
        reduced = gone_s + cost[at] - row_price[at] - column_price
        shorter = ~done & (reduced < distance)
        distance[shorter] = reduced[shorter]
        came_from[shorter] = last
        last = int(np.argmin(np.where(done, np.inf, distance)))
        gone_s = float(distance[last])
        done[last] = True
        if owner[last] < 0:
            break
        at = int(owner[last])
    settled = np.flatnonzero(done)
    saved = gone_s - distance[settled]
    column_price[settled] -= saved
    held = owner[settled] >= 0
    row_price[owner[settled[held]]] += saved[held]
    row_price[row] += gone_s
    while last >= 0:
        before = int(came_from[last])
        owner[last] = row if before < 0 else owner[before]
        last = before
