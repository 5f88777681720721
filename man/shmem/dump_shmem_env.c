/* SPDX-License-Identifier: BSD-2-Clause */
/* Prints the variables of OpenSHMEM for the manual page. */
#include <stdio.h>
#include <stdlib.h>

#include "osh_env.h"

int main(void)
{
	clearenv(); /* it prints values too */
	osh_env_print();
	return ferror(stdout) ? 1 : 0;
}
