/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls that pass the filter of vi_run --all. */
#ifndef VS_MARK_H
#define VS_MARK_H

/*
 * From now on connect(), accept(), accept4() and bind() of vs_real carry VS_ALL_MARK, so that vi_forward is not asked.
 * For the constructor, after vs_real_init().
 */
void vs_mark_calls(void);

#endif
