# SPDX-License-Identifier: BSD-2-Clause
"""All routines of OpenSHMEM 1.6 by sections of the specification."""
import osh_access
import osh_group
import osh_setup

SECTIONS = [
    ("Set-up, end and queries (9.1)", osh_setup.SETUP),
    ("Threads (9.2)", osh_setup.THREADS),
    ("Symmetric memory (9.3)", osh_setup.MEMORY),
    ("Teams (9.4)", osh_setup.TEAMS),
    ("Contexts (9.5)", osh_setup.CONTEXTS),
    ("Remote memory access (9.6)", osh_access.RMA),
    ("Atomic operations (9.7)", osh_access.AMO),
    ("Signals (9.8)", osh_access.SIGNALS),
    ("Sessions (9.9)", osh_setup.SESSIONS),
    ("Collectives (9.10)", osh_group.COLLECTIVES),
    ("Point-to-point synchronization (9.11)", osh_group.SYNC),
    ("Order and completion (9.12)", osh_setup.ORDER),
    ("Locks (9.13)", osh_setup.LOCKS),
    ("Profiling (10)", osh_setup.PROFILING),
]


def families():
    for _, section in SECTIONS:
        yield from section


def routines():
    for family in families():
        yield from family.routines()
