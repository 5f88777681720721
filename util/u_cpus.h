/* SPDX-License-Identifier: BSD-2-Clause */
/* Lists of processors as text: "2,3", "2-5", "0,4-7". */
#ifndef U_CPUS_H
#define U_CPUS_H

#define U_CPUS_END 1024 /* processors have lower numbers */

/*
 * Reads a list of up to `most` processors, in the order given, also one that is named twice; an empty text names
 * none.  Returns 0, or an error that leaves the outputs: -EINVAL when the text is no such list, or names a processor
 * from U_CPUS_END on; -E2BIG when it names more than `most`.
 */
int u_cpus_parse(const char *text, unsigned int most, int *cpus_out, unsigned int *count_out);

#endif
