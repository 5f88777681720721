// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Makes, when it is loaded, an error that a checker of the debug kernel must report: tests/vm/debug_test.py.
 *
 * Each kind is an intended error; none harms the machine beyond the checker's report.
 */
#include <linux/dma-mapping.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/platform_device.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

static char *kind = "";
module_param(kind, charp, 0444);
MODULE_PARM_DESC(kind, "memory, undefined, locks, sleep, leak, dma");

static DEFINE_MUTEX(first);
static DEFINE_MUTEX(second);
static DEFINE_SPINLOCK(spin);
static volatile unsigned int table[4];

static int use_after_free(void)
{
	volatile char *memory = kmalloc(64, GFP_KERNEL);

	if (!memory)
		return -ENOMEM;
	kfree((void *)memory);
	(void)memory[8];
	return 0;
}

static int index_beyond(void)
{
	(void)table[strlen(kind)]; /* index 9, which neither compiler nor sparse can know */
	return 0;
}

static int lock_in_both_orders(void)
{
	mutex_lock(&first);
	mutex_lock(&second);
	mutex_unlock(&second);
	mutex_unlock(&first);
	mutex_lock(&second);
	mutex_lock(&first);
	mutex_unlock(&first);
	mutex_unlock(&second);
	return 0;
}

static int sleep_with_spinlock(void)
{
	spin_lock(&spin);
	might_sleep();
	spin_unlock(&spin);
	return 0;
}

/* The only reference is lost: later code of the module overwrites it, on the stack and in registers too. */
static noinline int lose_memory(void)
{
	void *volatile memory = kmalloc(4000, GFP_KERNEL);

	return memory ? 0 : -ENOMEM;
}

static int unmap_what_is_not_mapped(void)
{
	struct platform_device *pdev = platform_device_register_simple("flaw", -1, NULL, 0);
	int rc;

	if (IS_ERR(pdev))
		return PTR_ERR(pdev);
	rc = dma_coerce_mask_and_coherent(&pdev->dev, DMA_BIT_MASK(64));
	if (!rc)
		dma_unmap_single(&pdev->dev, 0x100000, 64, DMA_TO_DEVICE);
	platform_device_unregister(pdev);
	return rc;
}

static int __init flaw_init(void)
{
	static const struct {
		const char *name;
		int (*act)(void);
	} kinds[] = {
		{ "memory", use_after_free },	  { "undefined", index_beyond },
		{ "locks", lock_in_both_orders }, { "sleep", sleep_with_spinlock },
		{ "leak", lose_memory },	  { "dma", unmap_what_is_not_mapped },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		if (!strcmp(kind, kinds[i].name))
			return kinds[i].act();
	}
	return -EINVAL;
}

static void __exit flaw_exit(void) {}

module_init(flaw_init);
module_exit(flaw_exit);
MODULE_DESCRIPTION("errors that a kernel with checkers has to report");
MODULE_LICENSE("Dual BSD/GPL");
