/* SPDX-License-Identifier: BSD-2-Clause */
/* selftest: this end judges its port and cable, the other end helps; or both are processes of this command. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pst.h"
#include "pt.h"

#define FOLDER_MAX 64u

/* ---- what is known of the adapter --------------------------------------------------------------- */

/*
 * The folder in sysfs of the adapter on its bus: the device of the node is that of the NTB core, whose parent it is.
 */
static bool folder_find(const struct pt_port *t, char folder[FOLDER_MAX])
{
	struct stat st;

	if (t->adapter < 0 || fstat(t->adapter, &st) != 0)
		return false;
	snprintf(folder, FOLDER_MAX, "/sys/dev/char/%u:%u/device/..", major(st.st_rdev),
		 minor(st.st_rdev));
	return true;
}

/* The first line of a file there, or "". */
static void sysfs_line(const char *folder, const char *name, char *to, size_t size)
{
	char path[FOLDER_MAX + 16];
	FILE *f;

	to[0] = '\0';
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	f = fopen(path, "re");
	if (f == NULL)
		return;
	if (fgets(to, (int)size, f) == NULL)
		to[0] = '\0';
	to[strcspn(to, "\n")] = '\0';
	fclose(f);
}

/* The name of the driver that has the adapter's function, or "". */
static void driver_name(const char *folder, char *to, size_t size)
{
	char path[FOLDER_MAX + 16], link[256];
	const char *base;
	ssize_t n;

	to[0] = '\0';
	snprintf(path, sizeof(path), "%s/driver", folder);
	n = readlink(path, link, sizeof(link) - 1);
	if (n <= 0)
		return;
	link[n] = '\0';
	base = strrchr(link, '/');
	snprintf(to, size, "%.*s", (int)size - 1, base != NULL ? base + 1 : link);
}

static void place_find(const struct pt_port *t, struct pst_place *out)
{
	char folder[FOLDER_MAX], vendor[12], chip[12];
	struct utsname u;

	memset(out, 0, sizeof(*out));
	snprintf(out->device, sizeof(out->device), "%s", t->device);
	if (uname(&u) == 0) {
		snprintf(out->kernel, sizeof(out->kernel), "%s", u.release);
		snprintf(out->machine, sizeof(out->machine), "%s", u.machine);
	}
	if (!folder_find(t, folder))
		return;
	driver_name(folder, out->driver, sizeof(out->driver));
	sysfs_line(folder, "vendor", vendor, sizeof(vendor));
	sysfs_line(folder, "device", chip, sizeof(chip));
	if (vendor[0] != '\0')
		snprintf(out->chip, sizeof(out->chip), "%s:%s", vendor, chip);
}

/* ---- both ends ---------------------------------------------------------------------------------- */

static void verdict_show(void *arg, const struct pst_verdict *v)
{
	(void)arg;
	pst_text_verdict(stdout, v);
	fflush(stdout);
}

static int json_write(const char *path, const struct pst_report *r, const struct pst_place *place)
{
	FILE *f = fopen(path, "we");
	int err = f == NULL ? -errno : pst_json(f, r, place);

	if (f != NULL && fclose(f) != 0 && err == 0)
		err = -errno;
	return err == 0 ? EXIT_OK : pt_fail("writing %s: %s", path, pt_error(err));
}

static int judge(struct pt_port *t, const struct pst_cfg *cfg, const char *json)
{
	struct pst_report *r = calloc(1, sizeof(*r));
	struct pst_place place;
	int rc = r == NULL ? pt_fail("%s", pt_error(-ENOMEM)) : EXIT_OK;

	if (rc != EXIT_OK)
		return rc;
	pst_judge(cfg, r);
	place_find(t, &place);
	pst_text(stdout, r, &place);
	if (json != NULL)
		rc = json_write(json, r, &place);
	if (r->broken != 0)
		rc = EXIT_FAIL;
	free(r);
	return rc;
}

static int help(struct pt_port *t, const struct pst_cfg *cfg)
{
	int err = pst_help(cfg);

	if (err == -ENOTCONN)
		return pt_fail("%s: the link went down before the end", t->device);
	if (err == -EALREADY)
		return pt_fail(
			"the peer runs selftest --serve, too; one host serves, the other judges");
	if (err == -ETIMEDOUT)
		return pt_fail(
			"%s: the link is up, but no vi_port selftest has answered; start it on the other "
			"host, without --serve",
			t->device);
	if (err != 0)
		return pt_fail("%s: %s", t->device, pt_error(err));
	puts("served: the other end has the report");
	return EXIT_OK;
}

int pt_selftest(struct pt_port *t, bool serves, double seconds, const char *json)
{
	struct pst_cfg cfg = { .port = t->port,
			       .seconds = seconds,
			       .lost_ns = PST_LOST_NS,
			       .gone_ns = PST_GONE_NS,
			       .heard = verdict_show };
	int rc = pt_up(t);

	if (rc != EXIT_OK)
		return rc;
	return serves ? help(t, &cfg) : judge(t, &cfg, json);
}

/* ---- alone -------------------------------------------------------------------------------------- */

/* The other end: a process that ends with this one. */
static int help_alone(const char *device, double timeout, pid_t parent)
{
	struct pt_port t;
	int rc;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent || freopen("/dev/null", "w", stdout) == NULL)
		return EXIT_FAIL;
	rc = pt_open(&t, device, timeout);
	if (rc == EXIT_OK)
		rc = pt_selftest(&t, true, 0, NULL);
	pt_close(&t);
	return rc;
}

/* The report counts; a helper whose judge has given up says so, too. */
int pt_selftest_alone(const char *kind, double timeout, double seconds, const char *json)
{
	char device[96];
	pid_t parent = getpid(), child;
	struct pt_port t;
	int rc;

	snprintf(device, sizeof(device), "%.60s:alone-%d", kind, (int)parent);
	fflush(NULL);
	child = fork();
	if (child < 0)
		return pt_fail("starting the other end: %s", pt_error(-errno));
	if (child == 0)
		_exit(help_alone(device, timeout, parent));
	rc = pt_open(&t, device, timeout);
	if (rc == EXIT_OK)
		rc = pt_selftest(&t, false, seconds, json);
	pt_close(&t);
	if (rc != EXIT_OK)
		kill(child, SIGTERM);
	waitpid(child, NULL, 0);
	return rc;
}
