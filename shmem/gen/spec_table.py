# SPDX-License-Identifier: BSD-2-Clause
"""All routines of OpenSHMEM 1.6 by sections of the specification."""
import spec_access
import spec_group
import spec_setup

SECTIONS = [
    ("Set-up, end and queries (9.1)", spec_setup.SETUP),
    ("Threads (9.2)", spec_setup.THREADS),
    ("Symmetric memory (9.3)", spec_setup.MEMORY),
    ("Teams (9.4)", spec_setup.TEAMS),
    ("Contexts (9.5)", spec_setup.CONTEXTS),
    ("Remote memory access (9.6)", spec_access.RMA),
    ("Atomic operations (9.7)", spec_access.AMO),
    ("Signals (9.8)", spec_access.SIGNALS),
    ("Sessions (9.9)", spec_setup.SESSIONS),
    ("Collectives (9.10)", spec_group.COLLECTIVES),
    ("Point-to-point synchronization (9.11)", spec_group.SYNC),
    ("Order and completion (9.12)", spec_setup.ORDER),
    ("Locks (9.13)", spec_setup.LOCKS),
    ("Profiling (10)", spec_setup.PROFILING),
]


def families():
    for _, section in SECTIONS:
        yield from section


def routines():
    for family in families():
        yield from family.routines()
