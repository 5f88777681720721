/* SPDX-License-Identifier: BSD-2-Clause */
#include "u_irq.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LIST_BYTES 4096

static int compare(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

/* Finds the interrupt of the device's pin; the kernel shows 0 if there is none.  Returns how many: 0 or 1. */
static int find_pin(const char *device, int *irqs, int max)
{
	char path[PATH_MAX];
	FILE *file;
	int irq = 0;

	snprintf(path, sizeof(path), "%s/irq", device);
	file = fopen(path, "re");
	if (file == NULL)
		return 0;
	if (fscanf(file, "%d", &irq) != 1)
		irq = 0;
	fclose(file);
	if (irq <= 0 || max < 1)
		return 0;
	irqs[0] = irq;
	return 1;
}

int u_irq_find(const char *device, int *irqs, int max)
{
	char path[PATH_MAX], *end;
	struct dirent *e;
	int n = 0;
	long irq;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/msi_irqs", device);
	dir = opendir(path);
	while (dir != NULL && n < max && (e = readdir(dir)) != NULL) {
		irq = strtol(e->d_name, &end, 10);
		if (end != e->d_name && *end == '\0' && irq > 0 && irq <= INT_MAX)
			irqs[n++] = (int)irq;
	}
	if (dir != NULL)
		closedir(dir);
	if (n == 0)
		return find_pin(device, irqs, max);
	qsort(irqs, (size_t)n, sizeof(*irqs), compare);
	return n;
}

int u_irq_move(const char *folder, int irq, const struct u_cpuset *cpus)
{
	char path[PATH_MAX], list[LIST_BYTES];
	size_t bytes = strlen(u_cpuset_text(cpus, list, sizeof(list) - 1));
	ssize_t wrote;
	int fd, rc = 0;

	snprintf(path, sizeof(path), "%s/%d/smp_affinity_list", folder, irq);
	list[bytes++] = '\n';
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	wrote = write(fd, list, bytes);
	if (wrote < 0)
		rc = -errno;
	else if ((size_t)wrote != bytes)
		rc = -EIO;
	close(fd);
	return rc;
}
