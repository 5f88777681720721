# SPDX-License-Identifier: BSD-2-Clause
"""What perf/compare_sockets requires of the figures."""
from dataclasses import dataclass
from statistics import median

from . import stats
from .sock_steps import AUTO, K, M, OFF, SLEEP, TCP, VI, VIPL

HELD, MISSED, UNSURE = "held", "MISSED", "unsure"


@dataclass(frozen=True)
class Row:
    figure: str
    ours: tuple            # way and key
    theirs: tuple = None   # None: the value itself counts
    must: float = 1.0
    goal: float = 1.0
    most: bool = True      # the limits are the most that it may be, else the least
    minus: bool = False    # a difference counts instead of a ratio

    def value(self, a_round):
        """What the limits are for, of one round; None when it is not known."""
        mine = a_round.get(self.ours)
        if mine is None or self.theirs is None:
            return mine
        other = a_round.get(self.theirs)
        if not other:
            return None
        return mine - other if self.minus else mine / other


ROWS = (
    Row("64 B, polled, over a VIPL send", (VI, "pingpong.poll.64"), (VIPL, "pingpong.poll.64"), 1.3, 1.05),
    Row("64 B, polled, over TCP", (VI, "pingpong.poll.64"), (TCP, "pingpong.poll.64"), 0.10, 0.06),
    Row("64 B, asleep (VIADUCT_WAIT=block), over TCP", (SLEEP, "pingpong.block.64"), (TCP, "pingpong.block.64"), 1.1, 1.0),
    Row("64 B, blocking calls, over TCP", (VI, "pingpong.block.64"), (TCP, "pingpong.block.64"), 1.1, 1.0),
    Row("64 B, one processor, over TCP", (VI, "pingpong.block.same.64"), (TCP, "pingpong.block.same.64"), 1.1, 1.0),
    Row("64 B, not promoted, over TCP", (OFF, "pingpong.poll.64"), (TCP, "pingpong.poll.64"), 1.02, 1.0),
    Row("1 busy of 256 in epoll, over a ping-pong", (VI, "epoll.poll.256"), (VI, "pingpong.poll.64"), 2.0, 1.5),
    Row("stream, 64 KiB, over vi_bw", (VI, f"stream.{64 * K}"), (VIPL, f"stream.{64 * K}"), 0.9, 1.0, most=False),
    Row("stream, 1 MiB, over vi_bw", (VI, f"stream.{M}"), (VIPL, f"stream.{M}"), 0.9, 1.0, most=False),
    Row("stream, 64 KiB, over TCP", (VI, f"stream.{64 * K}"), (TCP, f"stream.{64 * K}"), 2.0, 3.0, most=False),
    Row("stream, 1 MiB, over TCP", (VI, f"stream.{M}"), (TCP, f"stream.{M}"), 2.0, 3.0, most=False),
    Row("short connections, over TCP", (AUTO, "connect.64"), (TCP, "connect.64"), 0.95, 0.98, most=False),
    Row("a call about no socket, more than without, ns", (OFF, "call"), (TCP, "call"), 5.0, 2.0, minus=True),
    Row("redis, 1 client, over TCP", (AUTO, "redis.1"), (TCP, "redis.1"), 2.0, 3.0, most=False),
    Row("redis, 50 clients, over TCP", (AUTO, "redis.50"), (TCP, "redis.50"), 1.3, 1.6, most=False),
    Row("memcached, 50 clients, over TCP", (AUTO, "memcached.50"), (TCP, "memcached.50"), 1.3, 1.6, most=False),
    Row("nginx, keep-alive, over TCP", (AUTO, "nginx.keep"), (TCP, "nginx.keep"), 1.2, 1.5, most=False),
    Row("nginx, a connection each, over TCP", (AUTO, "nginx.close"), (TCP, "nginx.close"), 0.95, 1.0, most=False),
    Row("100 idle, processor time in 10 s, ms", (VI, "idle.100"), None, 10.0, 10.0),
)


def group(row):
    """The step that measures it."""
    return row.ours[1].split(".")[0]


def judge(limit, values, most):
    """held or MISSED when the whole interval of the median lies on one side of the limit."""
    if len(values) < stats.ENOUGH:
        return UNSURE
    low, high = stats.interval(values)
    inside, outside = (high <= limit, low > limit) if most else (low >= limit, high < limit)
    return HELD if inside else MISSED if outside else UNSURE


def outcome(row, rounds):
    values = [v for r in rounds if (v := row.value(r)) is not None]
    found = {"figure": row.figure, "must": row.must, "goal": row.goal, "limits": "most" if row.most else "least",
             "rounds": len(values), "value": None, "low": None, "high": None, "spread": None,
             "must_outcome": UNSURE, "goal_outcome": UNSURE}
    if values:
        low, high = stats.interval(values)
        found.update(value=median(values), low=low, high=high, spread=stats.spread(values),
                     must_outcome=judge(row.must, values, row.most), goal_outcome=judge(row.goal, values, row.most))
    return found
