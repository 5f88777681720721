/* SPDX-License-Identifier: BSD-2-Clause */
/* Arbitrary bytes against the validator of control messages; what it accepts must be in bounds. */
#include <stdlib.h>
#include <string.h>

#include "w_cm.h"
#include "w_ctl.h"
#include "w_tool.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must_end(const char *text, size_t size)
{
	if (memchr(text, 0, size) == NULL)
		abort();
}

static void must_fit(const struct w_addr *addr)
{
	if (addr->disc_len > W_DISC_MAX)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* An exact copy on the heap: the sanitizer sees a read past its end. */
	uint8_t *copy = malloc(size ? size : 1);
	int type;

	memcpy(copy, data, size);
	type = w_ctl_check(copy, (uint32_t)size);
	switch (type) {
	case W_HELLO:
		must_end(((struct w_hello *)(void *)copy)->program, W_NAME_MAX);
		break;
	case W_CONNECT:
	case W_LISTEN:
	case W_PEER:
		must_fit(&((struct w_connect *)(void *)copy)->local);
		break;
	case W_NAME:
		must_end(((struct w_name *)(void *)copy)->name, W_NAME_MAX);
		break;
	case W_TELL:
	case W_TOLD:
		if (((struct w_tell *)(void *)copy)->body_len > W_TELL_MAX)
			abort();
		break;
	case W_CM_REQ:
		must_fit(&((struct w_cm *)(void *)copy)->remote);
		break;
	default:
		break;
	}
	free(copy);
	return 0;
}
