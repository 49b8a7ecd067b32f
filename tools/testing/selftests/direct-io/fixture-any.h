/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Fixture "any": an ext2 or a bare block device, once for each pair of block sizes.
 */
FIXTURE(any) {
	struct dio_target *t;
	unsigned int lbs;
};

FIXTURE_VARIANT(any) {
	unsigned int lbs;
	unsigned int block_size;
};

FIXTURE_VARIANT_ADD(any, ext2_1k_on_512) { 512, 1024 };
FIXTURE_VARIANT_ADD(any, ext2_2k_on_512) { 512, 2048 };
FIXTURE_VARIANT_ADD(any, ext2_4k_on_512) { 512, 4096 };
FIXTURE_VARIANT_ADD(any, ext2_4k_on_4096) { 4096, 4096 };
FIXTURE_VARIANT_ADD(any, bdev_512) { 512, 0 };
FIXTURE_VARIANT_ADD(any, bdev_4096) { 4096, 0 };

FIXTURE_SETUP(any)
{
	self->t = dio_target(variant->lbs, variant->block_size);
	if (self->t->state < 0)
		SKIP(return, "%s", self->t->why);
	self->lbs = variant->lbs;
}

FIXTURE_TEARDOWN(any)
{
}
