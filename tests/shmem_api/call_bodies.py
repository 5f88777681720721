# SPDX-License-Identifier: BSD-2-Clause
"""For each prototype with types, a body in C that calls the routine and checks what it did.

In a body NAME is the routine, T its type, N the type's name, CTX the context as an argument or
nothing, QUIET the call that completes its operations, V(pe, i) a value, SMALL(pe, i) one whose
products fit, OP an operation.
"""
RMA = {
    "put": """
	E *dest = slot(8 * sizeof(E)), source[8];
	fill(source, sizeof(source), me);
	NAME(CTX dest, source, 8, next);
	NAME(CTX NULL, NULL, 0, next);
	QUIET;
	shmem_barrier_all();
	CHECK(filled(dest, sizeof(source), prev));""",
    "get": """
	E *source = slot(8 * sizeof(E)), dest[8];
	fill(source, sizeof(dest), me);
	shmem_barrier_all();
	memset(dest, 0, sizeof(dest));
	NAME(CTX dest, source, 8, next);
	NAME(CTX NULL, NULL, 0, next);
	WAIT;
	CHECK(filled(dest, sizeof(dest), next));""",
    "p": """
	T *dest = slot(sizeof(T));
	NAME(CTX dest, V(me, 3), next);
	QUIET;
	shmem_barrier_all();
	CHECK(*dest == V(prev, 3));""",
    "g": """
	T *source = slot(sizeof(T));
	*source = V(me, 4);
	shmem_barrier_all();
	CHECK(NAME(CTX source, next) == V(next, 4));""",
    "iput": """
	E *dest = slot(8 * sizeof(E)), source[16];
	fill(source, sizeof(source), me);
	NAME(CTX dest, source, 2, 3, 4, next);
	NAME(CTX NULL, NULL, 1, 1, 0, next);
	QUIET;
	shmem_barrier_all();
	CHECK(strided(dest, 2, 3, 1, 4, sizeof(E), prev));""",
    "iget": """
	E *source = slot(16 * sizeof(E)), dest[8];
	fill(source, 16 * sizeof(E), me);
	shmem_barrier_all();
	memset(dest, 0, sizeof(dest));
	NAME(CTX dest, source, 2, 3, 4, next);
	NAME(CTX NULL, NULL, 1, 1, 0, next);
	CHECK(strided(dest, 2, 3, 1, 4, sizeof(E), next));""",
    "ibput": """
	E *dest = slot(16 * sizeof(E)), source[16];
	fill(source, sizeof(source), me);
	NAME(CTX dest, source, 3, 5, 2, 3, next);
	NAME(CTX NULL, NULL, 1, 1, 1, 0, next);
	QUIET;
	shmem_barrier_all();
	CHECK(strided(dest, 3, 5, 2, 3, sizeof(E), prev));""",
    "ibget": """
	E *source = slot(16 * sizeof(E)), dest[16];
	fill(source, 16 * sizeof(E), me);
	shmem_barrier_all();
	memset(dest, 0, sizeof(dest));
	NAME(CTX dest, source, 3, 5, 2, 3, next);
	NAME(CTX NULL, NULL, 1, 1, 1, 0, next);
	CHECK(strided(dest, 3, 5, 2, 3, sizeof(E), next));""",
    "put_signal": """
	E *dest = slot(8 * sizeof(E)), source[8];
	uint64_t *sig = slot(sizeof(*sig));
	fill(source, sizeof(source), me);
	NAME(CTX dest, source, 8, sig, 5, SHMEM_SIGNAL_SET, next);
	QUIET;
	CHECK(shmem_signal_wait_until(sig, SHMEM_CMP_EQ, 5) == 5);
	CHECK(filled(dest, sizeof(source), prev));
	shmem_barrier_all();
	NAME(CTX NULL, NULL, 0, sig, 2, SHMEM_SIGNAL_ADD, next);
	QUIET;
	CHECK(shmem_signal_wait_until(sig, SHMEM_CMP_NE, 5) == 7);""",
    "signal_add": """
	uint64_t *sig = slot(sizeof(*sig));
	*sig = 100;
	shmem_barrier_all();
	NAME(CTX sig, (uint64_t)me + 1, next);
	QUIET;
	CHECK(shmem_signal_wait_until(sig, SHMEM_CMP_NE, 100) == 101 + (uint64_t)prev);""",
    "signal_set": """
	uint64_t *sig = slot(sizeof(*sig));
	NAME(CTX sig, (uint64_t)me + 1, next);
	QUIET;
	CHECK(shmem_signal_wait_until(sig, SHMEM_CMP_NE, 0) == 1 + (uint64_t)prev);""",
    "signal_fetch": """
	uint64_t *sig = slot(sizeof(*sig));
	CHECK(NAME(sig) == 0);
	shmem_barrier_all();
	shmem_signal_set(sig, 9, next);
	shmem_barrier_all();
	CHECK(NAME(sig) == 9);""",
}

START = """
	T *dest = slot(sizeof(T));
	*dest = V(me, 0);
	shmem_barrier_all();"""
END = """
	QUIET;
	shmem_barrier_all();"""


def fetching(call, final, nbi_call=None):
    """The bodies of an operation that returns the old value: blocking, and with _nbi."""
    plain = START + f"\n\tCHECK({call} == V(next, 0));" + END + f"\n\tCHECK(*dest == {final});"
    nbi = START + f"""
	T fetch = 0;
	{nbi_call};
	QUIET;
	CHECK(fetch == V(next, 0));""" + END + f"\n\tCHECK(*dest == {final});"
    return plain, nbi


def posting(call, final):
    return START + f"\n\t{call};" + END + f"\n\tCHECK(*dest == {final});"


def amo_bodies():
    out = {}
    out["fetch"], out["fetch_nbi"] = fetching("NAME(CTX dest, next)", "V(me, 0)",
                                              "NAME(CTX &fetch, dest, next)")
    out["set"] = posting("NAME(CTX dest, V(me, 5), next)", "V(prev, 5)")
    out["swap"], out["swap_nbi"] = fetching("NAME(CTX dest, V(me, 6), next)", "V(prev, 6)",
                                            "NAME(CTX &fetch, dest, V(me, 6), next)")
    right = "V(next, 0), V(me, 7), next)"
    wrong = "V(next, 0) + 1, V(me, 8), next)"
    plain, nbi = fetching("NAME(CTX dest, " + right, "V(prev, 7)", "NAME(CTX &fetch, dest, " + right)
    out["compare_swap"] = plain.replace("\tCHECK(NAME", f"\tCHECK(NAME(CTX dest, {wrong} == V(next, 0));\n\tCHECK(NAME", 1)
    out["compare_swap_nbi"] = nbi.replace("\tNAME", f"\tNAME(CTX &fetch, dest, {wrong};\n\tQUIET;\n\tNAME", 1)
    out["fetch_inc"], out["fetch_inc_nbi"] = fetching("NAME(CTX dest, next)", "(T)(V(me, 0) + 1)",
                                                      "NAME(CTX &fetch, dest, next)")
    out["inc"] = posting("NAME(CTX dest, next)", "(T)(V(me, 0) + 1)")
    for op, sign in (("add", "+"), ("and", "&"), ("or", "|"), ("xor", "^")):
        final = f"(T)(V(me, 0) {sign} (T)(V(prev, 0) * 5 - 99))"
        value = "(T)(V(me, 0) * 5 - 99)"
        out[f"fetch_{op}"], out[f"fetch_{op}_nbi"] = fetching(
            f"NAME(CTX dest, {value}, next)", final, f"NAME(CTX &fetch, dest, {value}, next)")
        out[op] = posting(f"NAME(CTX dest, {value}, next)", final)
    out = {f"atomic_{name}": body for name, body in out.items()}
    for old, new in (("fetch", "fetch"), ("set", "set"), ("swap", "swap"), ("cswap", "compare_swap"),
                     ("finc", "fetch_inc"), ("inc", "inc"), ("fadd", "fetch_add"), ("add", "add")):
        out[old] = out[f"atomic_{new}"]
    return out


COLLECTIVE = {
    "alltoall": """
	E *dest = slot(2 * MAX_PES * sizeof(E)), *source = slot(2 * MAX_PES * sizeof(E)), all[2 * MAX_PES];
	fill(source, 2 * MAX_PES * sizeof(E), me);
	NAME(TEAM dest, source, 2 ACTIVE)CHECK0;
	for (int pe = 0; pe < npes; pe++) {
		fill(all, sizeof(all), pe);
		CHECK(memcmp(dest + 2 * pe, all + 2 * me, 2 * sizeof(E)) == 0);
	}
	shmem_barrier_all();
	NAME(TEAM NULL, NULL, 0 ACTIVE)CHECK0;""",
    "alltoalls": """
	E *dest = slot(4 * MAX_PES * sizeof(E)), *source = slot(6 * MAX_PES * sizeof(E)), all[6 * MAX_PES];
	fill(source, 6 * MAX_PES * sizeof(E), me);
	NAME(TEAM dest, source, 2, 3, 2 ACTIVE)CHECK0;
	for (int pe = 0; pe < npes; pe++) {
		fill(all, sizeof(all), pe);
		for (int i = 0; i < 2; i++)
			CHECK(memcmp(dest + (pe * 2 + i) * 2, all + (me * 2 + i) * 3, sizeof(E)) == 0);
	}
	shmem_barrier_all();
	NAME(TEAM NULL, NULL, 1, 1, 0 ACTIVE)CHECK0;""",
    "broadcast": """
	E *dest = slot(5 * sizeof(E)), *source = slot(5 * sizeof(E));
	fill(source, 5 * sizeof(E), me);
	NAME(TEAM dest, source, 5, npes - 1 ACTIVE)CHECK0;
	CHECK(filled(dest, 5 * sizeof(E), npes - 1) != (OLD && me == npes - 1));
	shmem_barrier_all();
	NAME(TEAM NULL, NULL, 0, 0 ACTIVE)CHECK0;""",
    "collect": """
	E *dest = slot(3 * MAX_PES * sizeof(E)), *source = slot(3 * sizeof(E)), *at = dest;
	size_t n = (size_t)(me + 1) % 3;
	fill(source, 3 * sizeof(E), me);
	NAME(TEAM dest, source, n ACTIVE)CHECK0;
	for (int pe = 0; pe < npes; at += (pe + 1) % 3, pe++)
		CHECK(filled(at, (size_t)((pe + 1) % 3) * sizeof(E), pe));
	shmem_barrier_all();
	NAME(TEAM NULL, NULL, 0 ACTIVE)CHECK0;""",
    "fcollect": """
	E *dest = slot(3 * MAX_PES * sizeof(E)), *source = slot(3 * sizeof(E));
	fill(source, 3 * sizeof(E), me);
	NAME(TEAM dest, source, 3 ACTIVE)CHECK0;
	for (int pe = 0; pe < npes; pe++)
		CHECK(filled(dest + 3 * pe, 3 * sizeof(E), pe));
	shmem_barrier_all();
	NAME(TEAM NULL, NULL, 0 ACTIVE)CHECK0;""",
    "reduce": """
	T *dest = slot(5 * sizeof(T)), *source = slot(5 * sizeof(T)), want[5];
	for (int i = 0; i < 5; i++) {
		source[i] = SMALL(me, i);
		want[i] = SMALL(0, i);
		for (int pe = 1; pe < npes; pe++) {
			T a = want[i], b = SMALL(pe, i);
			want[i] = (T)(OP);
		}
	}
	NAME(TEAM dest, source, 5 ACTIVE)CHECK0;
	for (int i = 0; i < 5; i++)
		CHECK(dest[i] == want[i] && source[i] == SMALL(me, i));
	shmem_barrier_all();
	NAME(TEAM source, source, 5 ACTIVE)CHECK0;
	for (int i = 0; i < 5; i++)
		CHECK(source[i] == want[i]);
	shmem_barrier_all();
	NAME(TEAM NULL, NULL, 0 ACTIVE)CHECK0;""",
    "scan": """
	T *dest = slot(5 * sizeof(T)), *source = slot(5 * sizeof(T)), want[5];
	for (int i = 0; i < 5; i++) {
		source[i] = SMALL(me, i);
		want[i] = 0;
		for (int pe = 0; pe < me + INCLUSIVE; pe++)
			want[i] += SMALL(pe, i);
		dest[i] = V(9, i);
	}
	NAME(TEAM dest, source, 5)CHECK0;
	for (int i = 0; i < 5; i++)
		CHECK(dest[i] == want[i] && source[i] == SMALL(me, i));
	shmem_barrier_all();
	NAME(TEAM source, source, 5)CHECK0;
	for (int i = 0; i < 5; i++)
		CHECK(source[i] == want[i]);
	NAME(TEAM NULL, NULL, 0)CHECK0;""",
}

# The previous PE sets elements 0, 2 and 3; element 1 is left out and never set.
SEVERAL = """
	static const int none[4] = { 1, 1, 1, 1 };
	int left[4] = { 0, 1, 0, 0 };
	const T values[4] = { 5, 5 + STEP, 5 + 2 * STEP, 5 + 3 * STEP };
	T *ivars = slot(4 * sizeof(T));
	for (int i = 3; i >= 0; i--)
		if (i != 1)
			shmem_N_atomic_set(&ivars[i], values[i], next);
	shmem_quiet();"""
ALL = """
	CALLED;
	for (int i = 0; i < 4; i++)
		CHECK(ivars[i] == (i == 1 ? 0 : values[i]));"""
ANY = SEVERAL + """
	for (int i = 0; i < 3; i++) {
		size_t found = SIZE_MAX;
		while (found == SIZE_MAX)
			found = NAME(ivars, 4, left, SHMEM_CMP_EQ, VALUE);
		CHECK(found < 4 && !left[found] && ivars[found] == values[found]);
		left[found] = 1;
	}
	CHECK(NAME(ivars, 4, none, SHMEM_CMP_EQ, VALUE) == SIZE_MAX);
	CHECK(NAME(NULL, 0, NULL, SHMEM_CMP_EQ, NOTHING) == SIZE_MAX);"""
SOME = SEVERAL + """
	size_t indices[4], found;
	for (size_t total = 0; total < 3; total += found) {
		found = NAME(ivars, 4, indices, left, SHMEM_CMP_EQ, VALUE);
		CHECK(found <= 3 - total);
		for (size_t i = 0; i < found; i++) {
			CHECK(indices[i] < 4 && !left[indices[i]]);
			CHECK(ivars[indices[i]] == values[indices[i]]);
			left[indices[i]] = 1;
		}
	}
	CHECK(NAME(ivars, 4, indices, none, SHMEM_CMP_EQ, VALUE) == 0);
	CHECK(NAME(NULL, 0, NULL, NULL, SHMEM_CMP_EQ, NOTHING) == 0);"""
UPDATE = """
	T *ivar = slot(sizeof(T));
	T minus = (T)-1;
	shmem_N_SET(ivar, 7, next);
	shmem_quiet();
	AWAIT;
	CHECK(*ivar == 7);"""
SYNC = {
    "wait_until": UPDATE.replace("AWAIT", "NAME(ivar, SHMEM_CMP_EQ, 7)") + """
	NAME(ivar, SHMEM_CMP_NE, 0);
	NAME(ivar, SHMEM_CMP_GT, 6);
	NAME(ivar, SHMEM_CMP_GE, 7);
	NAME(ivar, SHMEM_CMP_LT, 8);
	NAME(ivar, SHMEM_CMP_LE, 7);
	NAME(ivar, minus > 0 ? SHMEM_CMP_LT : SHMEM_CMP_GT, minus);""",
    "test": UPDATE.replace("AWAIT", "while (!NAME(ivar, SHMEM_CMP_EQ, 7))\n\t\t") + """
	CHECK(NAME(ivar, SHMEM_CMP_NE, 0) == 1 && NAME(ivar, SHMEM_CMP_NE, 7) == 0);
	CHECK(NAME(ivar, SHMEM_CMP_GT, 6) == 1 && NAME(ivar, SHMEM_CMP_GT, 7) == 0);
	CHECK(NAME(ivar, SHMEM_CMP_GE, 7) == 1 && NAME(ivar, SHMEM_CMP_GE, 8) == 0);
	CHECK(NAME(ivar, SHMEM_CMP_LT, 8) == 1 && NAME(ivar, SHMEM_CMP_LT, 7) == 0);
	CHECK(NAME(ivar, SHMEM_CMP_LE, 7) == 1 && NAME(ivar, SHMEM_CMP_LE, 6) == 0);
	CHECK(NAME(ivar, SHMEM_CMP_EQ, 7) == 1 && NAME(ivar, SHMEM_CMP_EQ, 6) == 0);
	CHECK(NAME(ivar, SHMEM_CMP_LT, minus) == (minus > 0));""",
    "wait": UPDATE.replace("AWAIT", "NAME(ivar, 0)") + "\n\t(void)minus;",
    "wait_until_all": SEVERAL + """
	NAME(NULL, 0, NULL, SHMEM_CMP_EQ, NOTHING);
	NAME(ivars, 4, none, SHMEM_CMP_EQ, VALUE);""" +
                      ALL.replace("CALLED", "NAME(ivars, 4, left, SHMEM_CMP_EQ, VALUE)"),
    "test_all": SEVERAL + """
	CHECK(NAME(NULL, 0, NULL, SHMEM_CMP_EQ, NOTHING) == 1);
	CHECK(NAME(ivars, 4, none, SHMEM_CMP_EQ, VALUE) == 1);
	CHECK(NAME(ivars, 4, NULL, SHMEM_CMP_EQ, VALUE) == 0);""" +
                ALL.replace("CALLED", "while (!NAME(ivars, 4, left, SHMEM_CMP_EQ, VALUE))\n\t\t"),
    "wait_until_any": ANY, "test_any": ANY, "wait_until_some": SOME, "test_some": SOME,
    "signal_wait_until": """
	uint64_t *sig = slot(sizeof(*sig));
	shmem_signal_set(sig, 11, next);
	shmem_quiet();
	CHECK(NAME(sig, SHMEM_CMP_GT, 10) == 11);
	CHECK(NAME(sig, SHMEM_CMP_LE, 11) == 11);""",
}
