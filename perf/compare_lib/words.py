# SPDX-License-Identifier: BSD-2-Clause
"""What a comparison found, in a sentence: where Viaduct is ahead of the other libraries, and where not."""
from .outcome import AHEAD, BEHIND, EVEN
from .rows import HIGHER, UNSURE

NAMES = {"ucx": "UCX {}", "newer_ucx": "UCX {}", "newer_ucx_cma": "UCX {} with one copy", "openmpi": "Open MPI {}",
         "newer_openmpi": "Open MPI {}", "mpich": "MPICH {}", "newer_mpich": "MPICH {}", "libfabric": "libfabric {}",
         "newer_libfabric": "libfabric {}"}  # sockets are no library
TEXTS = {AHEAD: "is ahead of all in", EVEN: "is even in", BEHIND: "is behind in", UNSURE: "is undecided in"}
NO_PEER = "no figure could be compared with that of another library; scripts/setup --peers brings some"


def name_of(peer, versions):
    return NAMES[peer].format(versions.get(peer.removesuffix("_cma"), "")).replace("  ", " ").rstrip()


def standing_of(rows, versions):
    """(the worst outcome, the name of the value and whom it is that in comparison with), from rows with the same value."""
    peers = {peer: (outcome, row["peer_ratios"].get(peer)) for row in rows for peer, outcome in row["peer_outcomes"].items()
             if peer in NAMES}
    found = {outcome for outcome, _ in peers.values()}
    worst = next((outcome for outcome in (BEHIND, UNSURE, EVEN, AHEAD) if outcome in found), None)
    name, what = rows[0]["name"], "rate" if rows[0]["better"] == HIGHER else "time"
    if worst not in (BEHIND, EVEN):
        return worst, name
    whom = ", ".join(f"{ratio:.2f} of the {what} of {name_of(peer, versions)}"
                     for peer, (outcome, ratio) in peers.items() if outcome == worst)
    return worst, f"{name} ({whom})"


def place_in_words(rows, versions):
    """A placement's part of the sentence; None where there are no libraries."""
    same, figures = {}, {}
    for row in rows:
        same.setdefault(row["key"], []).append(row)
    for some in same.values():
        worst, name = standing_of(some, versions)
        figures.setdefault(worst, []).append(name)
    return "; ".join(f"{text} {', '.join(figures[worst])}" for worst, text in TEXTS.items() if worst in figures) or None


def in_words(made, versions):
    """The last line of a report."""
    places = {}
    for row in made:
        places.setdefault(row["placement"], []).append(row)
    said = [f"{place}: Viaduct {text}" for place, rows in places.items() if (text := place_in_words(rows, versions))]
    return ". ".join(said) or NO_PEER
