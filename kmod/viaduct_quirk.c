// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Adapters whose doorbells may overtake stores, by their drivers. */
#include <linux/device.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/string.h>

#include "viaduct.h"

static int read_back = -1;
module_param(read_back, int, 0444);
MODULE_PARM_DESC(read_back,
		 "read across the link before each ring: 1 yes, 0 no, -1 if the driver needs it");

/*
 * Stores and doorbells of these take different ways through the controller of an endpoint, which has a unit of address
 * translation for each range, and nothing there keeps the order of posted writes between two units.
 */
static const struct {
	const char *driver; /* of the device below the NTB device */
	const char *source;
} early[] = {
	/* An endpoint that is one of the two hosts: it rings by an MSI. */
	{ "pci-vntb", "Linux 322617a06c97: seen on R-Car S4, window and MSI" },
	/* The host above such an endpoint, or either host of one that joins two: the endpoint passes on its stores. */
	{ "ntb_hw_epf", "no report; controllers as in 322617a06c97: R-Car S4, J721E, i.MX" },
};

/* Does the driver of the adapter need a read across the link between stores and a doorbell? */
bool vd_quirk_read_back(struct ntb_dev *ntb)
{
	const char *driver = dev_driver_string(ntb->pdev ? &ntb->pdev->dev : ntb->dev.parent);
	size_t i;

	for (i = 0; read_back < 0 && i < ARRAY_SIZE(early); i++) {
		if (strcmp(driver, early[i].driver))
			continue;
		dev_info(&ntb->dev, "doorbells are rung after a read across the link: %s (%s)\n",
			 early[i].driver, early[i].source);
		return true;
	}
	return read_back > 0;
}
