/* SPDX-License-Identifier: BSD-2-Clause */
/* The library is its layers; a shared library needs one source of its own. */
typedef int vipl_has_no_code_of_its_own;
