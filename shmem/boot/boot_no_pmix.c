/* SPDX-License-Identifier: BSD-2-Clause */
/* In place of boot_pmix.c where its headers are missing: a launcher with PMIx alone is refused. */
#include <errno.h>
#include <stdlib.h>

#include "boot_back.h"

/* Does the launcher offer PMIx, and no PMI-1? */
static bool no_pmix_announced(void)
{
	return secure_getenv("PMIX_NAMESPACE") != NULL && secure_getenv("PMI_FD") == NULL;
}

/* Returns -ENOTSUP with a line, always. */
static int no_pmix_start(struct boot_job *job, char error[BOOT_TEXT_MAX])
{
	return boot_error(
		error, -ENOTSUP,
		"a launcher started this program with PMIx (PMIX_NAMESPACE is set), which "
		"this build of the library does not have: start it with oshrun -np N PROGRAM");
}

const struct boot_back boot_pmix = {
	.name = "PMIx",
	.announced = no_pmix_announced,
	.start = no_pmix_start,
};
