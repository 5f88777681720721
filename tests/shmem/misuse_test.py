#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Wrong programs, wrong settings and dying PEs end the job at once, with one line that says why.

usage: misuse_test.py PROGRAM OSHRUN
"""
import os
import re
import subprocess
import sys

# The name of the error, does it need SHMEM_DEBUG?, the exit status, and a pattern of the only line.
CASES = [
    ("no_such_pe", False, 1, r"PE \d on host0: shmem_long_p: there is no PE 2; the PEs are 0 to 1"),
    ("negative_pe", False, 1, r"PE \d on host0: shmem_long_g: there is no PE -1; the PEs are 0 to 1"),
    ("pe_of_a_team", False, 1, r"PE 0 .*shmem_ctx_long_p: there is no PE 1; the PEs of the context's team are 0 to 0"),
    ("private_address", False, 1, r"shmem_long_p: 8 bytes at 0x[0-9a-f]+, for PE 0, are not symmetric"),
    ("past_the_heap", False, 1, r"shmem_long_put: 8796093022208 bytes at 0x[0-9a-f]+, for PE 0, are not symmetric"),
    ("not_aligned", False, 1, r"shmem_long_atomic_add: the object at 0x[0-9a-f]+ is not aligned to its 8 bytes"),
    ("lock_twice", False, 1, r"PE 0 .*shmem_set_lock: the lock at 0x[0-9a-f]+ is held by this PE already"),
    ("lock_of_another", False, 1, r"PE 1 .*shmem_clear_lock: the lock at 0x[0-9a-f]+ is not held by this PE"),
    ("lock_overwritten", False, 1, r"PE 0 .*shmem_set_lock: the lock at 0x[0-9a-f]+ is held by this PE already, or was overwritten"),
    ("lock_not_aligned", False, 1, r"shmem_set_lock: the lock at 0x[0-9a-f]+ is not aligned to its 8 bytes"),
    ("team_destroyed_twice", False, 1, r"shmem_team_destroy: 0x[0-9a-f]+ is no team, or was destroyed already"),
    ("free_twice", False, 1, r"shmem_free: 0x[0-9a-f]+ was not allocated in the symmetric heap, or is freed already"),
    ("free_of_a_variable", False, 1, r"shmem_free: 0x[0-9a-f]+ was not allocated in the symmetric heap"),
    ("use_after_free", True, 1, r"shmem_long_p: 8 bytes at 0x[0-9a-f]+, for PE 0, are not in an allocated block"),
    ("past_a_block", True, 1, r"shmem_long_put: 8000 bytes at 0x[0-9a-f]+, for PE 0, are not in an allocated block"),
    ("different_routines", True, 1, r"shmem_(barrier_all: PE 1 is in shmem_long_sum_reduce|long_sum_reduce: PE 0 is in shmem_barrier_all)"),
    ("different_lengths", True, 1, r"shmem_long_sum_reduce: the length is \d+ bytes? here and \d+ at PE \d"),
    ("different_roots", True, 1, r"shmem_long_broadcast: the root is \d here and \d at PE \d"),
    ("different_sizes", True, 1, r"shmem_malloc: the length is \d bytes? here and \d at PE \d"),
    ("session_bits", True, 1, r"shmem_ctx_session_start: options 0x\w+ and config_mask 0x0 are not those of OpenSHMEM 1.6"),
    ("collect_of_too_much", False, 1, r"shmem_long_collect: \d+ bytes at 0x[0-9a-f]+, for PE \d, are not symmetric"),
    ("forged_offset", False, 1, r"PE 0 .*split_strided: PE 1 says that its part of the team is at offset 0x10000000000 of its"),
    ("messages_overwritten", False, 1, r"PE 0 .*shmem_(calloc|barrier_all): a message of PE 1 was overwritten"),
    ("different_sources", True, 1, r"shmem_long_sum_reduce: source 0x[0-9a-f]+ is not the symmetric address that PE \d gave"),
    ("private_source", True, 1, r"shmem_long_sum_reduce: 80 bytes at 0x[0-9a-f]+, for PE \d, are not symmetric"),
    ("stride_of_an_iput", False, 1, r"shmem_long_iput: 9223372036854775815 bytes at 0x[0-9a-f]+, for PE 0, are not symmetric"),
    ("count_of_a_put", False, 1, r"shmem_long_put: more bytes than there can be, at 0x"),
    ("count_of_a_reduction", False, 1, r"shmem_long_sum_reduce: more bytes than there can be, at 0x"),
    ("count_of_a_broadcast", False, 1, r"shmem_long_broadcast: more bytes than there can be, at 0x"),
    ("count_of_an_alltoalls", False, 1, r"shmem_long_alltoalls: more bytes than there can be, at 0x"),
    ("after_finalize", False, 1, r"shmem_long_p: called before shmem_init or after shmem_finalize"),
    ("barrier_after_finalize", False, 1, r"shmem_barrier_all: called before shmem_init or after shmem_finalize"),
    ("set_after_finalize", False, 1, r"shmem_sync: called before shmem_init or after shmem_finalize"),
    *((f"child_{name}", False, 0, rf"shmem: {routine}: called in a child of fork\(\), which is no PE")
      for name, routine in (("puts", "shmem_long_p"), ("adds", "shmem_long_atomic_inc"), ("allocates", "shmem_malloc"),
                            ("reduces", "a routine for a team"), ("waits", "shmem_barrier_all"),
                            ("finalizes", "shmem_finalize"))),
    ("put_without_context", False, 1, r"PE \d .*shmem_ctx_long_put: the context is SHMEM_CTX_INVALID"),
    ("strided_put_without_context", False, 1, r"PE \d .*shmem_ctx_long_iput: the context is SHMEM_CTX_INVALID"),
    ("get_without_context", False, 1, r"PE \d .*shmem_ctx_long_g: the context is SHMEM_CTX_INVALID"),
    ("add_without_context", False, 1, r"PE \d .*shmem_ctx_long_atomic_add: the context is SHMEM_CTX_INVALID"),
    ("signal_without_context", False, 1, r"PE \d .*shmem_ctx_long_put_signal: the context is SHMEM_CTX_INVALID"),
    ("too_much", False, 0, r"shmem_malloc: 1099511627776 bytes do not fit .* raise SHMEM_SYMMETRIC_SIZE"),
    ("killed", False, 134, r"PE 1 on host0 was killed by signal 6 \(Aborted\)"),
]

# Likewise between two hosts: operations that PEs of one host do by a copy of the processor, and PEs
# that end before the others.
AT_ITS_END = r"waits for PE 0, which is at its end: it has called shmem_finalize or exit"
EXIT = r"exit, which implies shmem_finalize, is called while PE 1 is in"
NEAR_TOO = [
    ("exit_in_the_middle", rf"PE (1 .*shmem_barrier_all: {AT_ITS_END}|0 .*{EXIT} a barrier or sync)"),
    ("finalize_in_the_middle", rf"PE (1 .*shmem_sync_all: {AT_ITS_END}|"
                               r"0 .*shmem_finalize is called while PE 1 is in a barrier or sync)"),
    ("exit_with_a_lock", rf"PE 1 .*shmem_set_lock: {AT_ITS_END}"),
    ("exit_before_a_team_sync", rf"PE 1 .*shmem_team_sync: {AT_ITS_END}"),
    ("exit_before_reductions", rf"PE (1 .*shmem_long_sum_reduce: {AT_ITS_END}|0 .*{EXIT} a reduction)"),
    ("finalize_before_a_broadcast", r"PE 0 .*shmem_finalize is called while PE 1 is in a broadcast"),
    ("different_routines", r"PE (0 .*shmem_barrier_all: PE 1 is in a reduction instead|"
                           r"1 .*shmem_long_sum_reduce: PE 0 is in a barrier or sync instead)"),
    ("messages_of_zeros", r"PE 0 .*shmem_(barrier_all|team_sync): a message of PE 1 was overwritten.*"),
    ("zeros_before_the_first", r"PE 0 .*shmem_team_sync: a message of PE 1 was overwritten.*"),
]
FAR_CASES = [
    ("get_to_null", r"PE 0 .*shmem_get64: the memory here that it reads or writes is NULL"),
    ("get_of_blocks_to_null", r"PE 0 .*shmem_iget64: the memory here that it reads or writes is NULL"),
    ("put_from_null", r"PE 0 .*shmem_put64: the memory here that it reads or writes is NULL"),
    ("long_put_from_null", r"PE 0 .*shmem_put64: the memory here that it reads or writes is NULL"),
    ("fetch_to_null", r"PE 0 .*shmem_long_atomic_fetch_inc_nbi: the memory here that it reads or writes is NULL"),
    *NEAR_TOO,
]

# Variables and hosts that are wrong, and a pattern of the line.
WINDOW = r"no symmetric heap of \d+ bytes .*the window of this host is too small or in use; lower SHMEM_SYMMETRIC_SIZE"
SETTINGS = [
    ({"SHMEM_SYMMETRIC_SIZE": "much"}, r"SHMEM_SYMMETRIC_SIZE is \"much\"; expected a number"),
    ({"SHMEM_SYMMETRIC_SIZE": "-1"}, r"SHMEM_SYMMETRIC_SIZE is \"-1\"; expected a number"),
    ({"SHMEM_SYMMETRIC_SIZE": "900t"}, r"no symmetric heap of \d+ bytes: this machine allows \d+; lower SHMEM_SYMMETRIC_SIZE"),
    ({"SHMEM_VIADUCT_REDUCE": "x"}, r"SHMEM_VIADUCT_REDUCE is \"x\"; expected auto, flat, rounds, shared, ring"),
    ({"SHMEM_VIADUCT_BARRIER": "x"}, r"SHMEM_VIADUCT_BARRIER is \"x\"; expected auto"),
    ({"SHMEM_SYMMETRIC_SIZE": "800m", "--window": "64M"}, WINDOW),
    ({"SHMEM_SYMMETRIC_SIZE": "800m", "--window": "64M", "--hosts": "2"}, WINDOW),
]


def run(command, more):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False,
                          timeout=60, env={**os.environ, **more})
    return done.returncode, done.stderr


def no_room_for_a_connection(program, oshrun):
    """Windows that have room for the heaps but not for a connection: the line says what to change."""
    for pages in range(0, 200, 2):
        # All processes of a user may have 15 parts in 16 of a window.
        window = (194 * 256 + pages) * 16 // 15 * 4
        rc, text = run([oshrun, "-np", "2", "--window", f"{window}K", program, "different_routines"],
                       {"SHMEM_SYMMETRIC_SIZE": "1m"})
        if rc != 1 or not re.search("no symmetric heap|cannot be made symmetric", text):
            remedy = "; lower VIADUCT_RING_BYTES, or raise VIADUCT_WINDOW_BYTES or ulimit -n, of the agent$"
            return re.search("no connection to PE .*(RESOURCE|REJECT)" + remedy, text, re.MULTILINE) is not None and \
                ("REJECT" not in text or
                 re.search("no room for a connection of PE . here" + remedy, text, re.MULTILINE) is not None) or print(text)
    return False


def main():
    program, oshrun = sys.argv[1:3]
    failed = 0
    for name, debug, status, pattern in CASES:
        rc, text = run([oshrun, "-np", "2", program, name], {"SHMEM_DEBUG": "1"} if debug else {})
        # Each of the PEs that have left the job says so.
        if rc != status or not re.search(pattern, text) or len(set(text.splitlines())) != 1:
            failed += 1
            print(f"{name}: status {rc}, not {status}, or not this line alone:\n{text}")
    for hosts, cases in (("2", FAR_CASES), ("1", NEAR_TOO)):
        for name, pattern in cases:
            rc, text = run([oshrun, "--hosts", hosts, "-np", "2", program, name], {})
            if rc != 1 or not re.fullmatch(rf"oshrun: {pattern}\n", text):
                failed += 1
                print(f"{name} on {hosts} hosts: status {rc}, or not this line alone:\n{text}")
    if not no_room_for_a_connection(program, oshrun):
        failed += 1
        print("no window was too small for a connection alone, or its line is another")
    for setting, pattern in SETTINGS:
        options = [word for name, value in setting.items() if name.startswith("--") for word in (name, value)]
        rc, text = run([oshrun, "-np", "2", *options, program, "none"],
                       {name: value for name, value in setting.items() if not name.startswith("--")})
        if rc != 1 or not re.fullmatch(rf"oshrun: PE \d on host\d: .*{pattern}.*\n", text):
            failed += 1
            print(f"{setting}: status {rc}, or not this line alone:\n{text}")
    rc, text = run([program, "none"], {})
    if rc == 0 or not re.fullmatch("shmem: no launcher started this program: start it with oshrun .*\n", text):
        failed += 1
        print(f"without a launcher: status {rc}\n{text}")
    print(f"{len(CASES) + len(FAR_CASES) + len(NEAR_TOO) + len(SETTINGS) + 2} cases, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
