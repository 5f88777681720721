// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The PCI device: probing, interrupts, the operations that its profile has. */
#include <linux/interrupt.h>
#include <linux/module.h>

#include "ivn.h"

static char *profile = "plain";
module_param(profile, charp, 0444);
MODULE_PARM_DESC(
	profile,
	"rules of a chip: plain, plx, amd, intel, idt, switchtec, epf, noroom or unaligned");

static const struct ntb_dev_ops plain_ops = {
	.link_is_up = ivn_link_is_up,
	.link_enable = ivn_link_enable,
	.link_disable = ivn_link_disable,
	.mw_count = ivn_mw_count,
	.mw_get_align = ivn_mw_get_align,
	.mw_set_trans = ivn_mw_set_trans,
	.peer_mw_count = ivn_peer_mw_count,
	.peer_mw_get_addr = ivn_peer_mw_get_addr,
	.db_valid_mask = ivn_db_valid_mask,
	.db_vector_count = ivn_db_vector_count,
	.db_vector_mask = ivn_db_vector_mask,
	.db_read = ivn_db_read,
	.db_clear = ivn_db_clear,
	.db_read_mask = ivn_db_read_mask,
	.db_set_mask = ivn_db_set_mask,
	.db_clear_mask = ivn_db_clear_mask,
	.peer_db_set = ivn_peer_db_set,
};

static void add_spads(struct ntb_dev_ops *ops)
{
	ops->spad_count = ivn_spad_count;
	ops->spad_read = ivn_spad_read;
	ops->spad_write = ivn_spad_write;
	ops->peer_spad_read = ivn_peer_spad_read;
	ops->peer_spad_write = ivn_peer_spad_write;
}

static void add_msgs(struct ntb_dev_ops *ops)
{
	ops->msg_count = ivn_msg_count;
	ops->msg_inbits = ivn_msg_inbits;
	ops->msg_outbits = ivn_msg_outbits;
	ops->msg_read_sts = ivn_msg_read_sts;
	ops->msg_clear_sts = ivn_msg_clear_sts;
	ops->msg_set_mask = ivn_msg_set_mask;
	ops->msg_clear_mask = ivn_msg_clear_mask;
	ops->msg_read = ivn_msg_read;
	ops->peer_msg_write = ivn_peer_msg_write;
}

static void choose_ops(struct ivn_dev *ivn)
{
	ivn->ops = plain_ops;
	if (ivn->profile->spads)
		add_spads(&ivn->ops);
	if (ivn->profile->msgs)
		add_msgs(&ivn->ops);
	if (ivn->profile->flags & IVN_DB_ADDR)
		ivn->ops.peer_db_addr = ivn_peer_db_addr;
	if (ivn->profile->flags & IVN_NO_VECTORS) {
		ivn->ops.db_vector_count = NULL;
		ivn->ops.db_vector_mask = NULL;
	}
	if (ivn->profile->flags & IVN_BY_SENDER) {
		ivn->ops.mw_set_trans = NULL;
		ivn->ops.peer_mw_set_trans = ivn_peer_mw_set_trans;
	}
#ifdef IVN_NTB_DMA_DEV
	ivn->ops.get_dma_dev = ivn_get_dma_dev;
#endif
	ivn->ntb.ops = &ivn->ops;
	ivn->ntb.topo = NTB_TOPO_SWITCH;
	if (ivn->profile->flags & IVN_B2B)
		ivn->ntb.topo = ivn->port ? NTB_TOPO_B2B_DSD : NTB_TOPO_B2B_USD;
}

static void due_work(struct irq_work *work)
{
	struct ivn_dev *ivn = container_of(work, struct ivn_dev, work);

	ivn_link_check(ivn);
	ivn_db_replay(ivn);
	ivn_msg_check(ivn);
}

static irqreturn_t vector_irq(int irq, void *data)
{
	struct ivn_vector *vector = data;
	struct ivn_dev *ivn = vector->ivn;

	if (vector->idx < ivn->doorbells) {
		ivn_db_raise(ivn, vector->idx);
	} else if (vector->idx == ivn->link_vector) {
		ivn_link_check(ivn);
		ivn_msg_check(ivn);
	}
	return IRQ_HANDLED;
}

static void free_irqs(struct ivn_dev *ivn)
{
	while (ivn->irqs > 0) {
		ivn->irqs--;
		free_irq(pci_irq_vector(ivn->ntb.pdev, ivn->irqs), &ivn->vectors[ivn->irqs]);
	}
	irq_work_sync(&ivn->work);
	pci_free_irq_vectors(ivn->ntb.pdev);
}

static int request_irqs(struct ivn_dev *ivn)
{
	struct pci_dev *pdev = ivn->ntb.pdev;
	unsigned int count = ivn->link_vector + 1;
	int rc;

	rc = pci_alloc_irq_vectors(pdev, count, count, PCI_IRQ_MSIX);
	if (rc < 0)
		return rc;
	while (ivn->irqs < count) {
		struct ivn_vector *vector = &ivn->vectors[ivn->irqs];

		vector->ivn = ivn;
		vector->idx = ivn->irqs;
		rc = request_irq(pci_irq_vector(pdev, ivn->irqs), vector_irq, 0, "ntb_hw_ivshmem",
				 vector);
		if (rc) {
			free_irqs(ivn);
			return rc;
		}
		ivn->irqs++;
	}
	return 0;
}

static int read_header(struct ivn_dev *ivn)
{
	struct device *dev = &ivn->ntb.pdev->dev;
	u64 slots;

	if (ivn_head(ivn, IVN_H_MAGIC) != IVN_MAGIC) {
		dev_info(dev, "no NTB link in this shared memory\n");
		return -ENODEV;
	}
	if (ivn_head(ivn, IVN_H_VERSION) != IVN_VERSION) {
		dev_err(dev, "version %u of the link, not %u\n", ivn_head(ivn, IVN_H_VERSION),
			IVN_VERSION);
		return -EPROTO;
	}
	ivn->window_bytes = (resource_size_t)1 << ivn_head(ivn, IVN_H_WINDOW_LOG2);
	ivn->windows = min_t(u32, ivn_head(ivn, IVN_H_WINDOWS), ivn->profile->windows);
	ivn->doorbells = min_t(u32, ivn_head(ivn, IVN_H_DOORBELLS), ivn->profile->doorbells);
	ivn->link_vector = ivn_head(ivn, IVN_H_DOORBELLS);
	ivn->port = readl(ivn->regs + IVSHMEM_POSITION);
	slots = 1 + IVN_PORTS * (u64)ivn_head(ivn, IVN_H_WINDOWS);
	if (ivn->port >= IVN_PORTS || ivn->link_vector > IVN_DOORBELLS || !ivn->windows ||
	    ivn->windows > IVN_WINDOWS ||
	    slots > pci_resource_len(ivn->ntb.pdev, 2) / ivn->window_bytes) {
		dev_err(dev, "port %u, %u doorbells, %llu slots: not a link for this driver\n",
			ivn->port, ivn->link_vector, slots);
		return -EPROTO;
	}
	return 0;
}

static int map_bars(struct ivn_dev *ivn)
{
	struct pci_dev *pdev = ivn->ntb.pdev;

	ivn->bus = pci_resource_start(pdev, 2);
	ivn->regs = pcim_iomap(pdev, 0, 0);
	ivn->shared = devm_ioremap(&pdev->dev, ivn->bus, IVN_PORT_BASE + IVN_PORTS * IVN_PORT_SIZE);
	return ivn->regs && ivn->shared ? 0 : -ENOMEM;
}

static struct ivn_dev *create(struct pci_dev *pdev)
{
	struct ivn_dev *ivn = devm_kzalloc(&pdev->dev, sizeof(*ivn), GFP_KERNEL);

	if (!ivn)
		return NULL;
	ivn->ntb.pdev = pdev;
	spin_lock_init(&ivn->lock);
	init_irq_work(&ivn->work, due_work);
	ivn->profile = ivn_profile_find(profile);
	pci_set_drvdata(pdev, ivn);
	return ivn;
}

/*
 * The device is registered first, because interrupts need its client lock.  Events that a client misses while its
 * vectors are not requested yet come with due_work().
 */
static int start(struct ivn_dev *ivn)
{
	int rc;

	ivn_link_init(ivn);
	ivn_msg_init(ivn);
	ivn_db_init(ivn);
	rc = ivn_mem_init(ivn);
	if (rc)
		goto err_mem;
	rc = ntb_register_device(&ivn->ntb);
	if (rc)
		goto err_mem;
	rc = request_irqs(ivn);
	if (rc)
		goto err_device;
	ivn_db_replay_all(ivn);
	return 0;

err_device:
	ntb_unregister_device(&ivn->ntb);
	irq_work_sync(&ivn->work);
err_mem:
	ivn_mem_fini(ivn);
	return rc;
}

static int probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct ivn_dev *ivn = create(pdev);
	int rc;

	if (!ivn)
		return -ENOMEM;
	rc = pcim_enable_device(pdev);
	if (rc)
		return rc;
	pci_set_master(pdev);
	rc = dma_set_mask_and_coherent(&pdev->dev, DMA_BIT_MASK(64));
	if (rc)
		return rc;
	rc = map_bars(ivn);
	if (rc)
		return rc;
	rc = read_header(ivn);
	if (rc)
		return rc;
	choose_ops(ivn);
	rc = start(ivn);
	if (rc)
		return rc;
	dev_info(&pdev->dev, "port %u, %s: %u windows of %pa bytes, %u doorbells\n", ivn->port,
		 ivn->profile->name, ivn->windows, &ivn->window_bytes, ivn->doorbells);
	return 0;
}

static void remove(struct pci_dev *pdev)
{
	struct ivn_dev *ivn = pci_get_drvdata(pdev);

	ntb_unregister_device(&ivn->ntb);
	ivn_link_disable(&ivn->ntb);
	free_irqs(ivn);
	ivn_mem_fini(ivn);
}

static const struct pci_device_id ids[] = { { PCI_DEVICE(PCI_VENDOR_ID_REDHAT_QUMRANET, 0x1110) },
					    {} };
MODULE_DEVICE_TABLE(pci, ids);

static struct pci_driver driver = {
	.name = "ntb_hw_ivshmem",
	.id_table = ids,
	.probe = probe,
	.remove = remove,
};

static int __init ivn_load(void)
{
	if (!ivn_profile_find(profile)) {
		pr_err("ntb_hw_ivshmem: there is no profile %s\n", profile);
		return -EINVAL;
	}
	return pci_register_driver(&driver);
}
module_init(ivn_load);

static void __exit ivn_unload(void)
{
	pci_unregister_driver(&driver);
}
module_exit(ivn_unload);

MODULE_DESCRIPTION("NTB over QEMU's ivshmem-doorbell, for tests");
MODULE_LICENSE("Dual BSD/GPL");
