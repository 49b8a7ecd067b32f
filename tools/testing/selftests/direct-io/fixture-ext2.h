/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Fixture "ext2": an ext2, once for each pair of block sizes.
 */
FIXTURE(ext2) {
	struct dio_target *t;
	unsigned int lbs;
};

FIXTURE_VARIANT(ext2) {
	unsigned int lbs;
	unsigned int block_size;
};

FIXTURE_VARIANT_ADD(ext2, ext2_1k_on_512) { 512, 1024 };
FIXTURE_VARIANT_ADD(ext2, ext2_2k_on_512) { 512, 2048 };
FIXTURE_VARIANT_ADD(ext2, ext2_4k_on_512) { 512, 4096 };
FIXTURE_VARIANT_ADD(ext2, ext2_4k_on_4096) { 4096, 4096 };

FIXTURE_SETUP(ext2)
{
	self->t = dio_target(variant->lbs, variant->block_size);
	if (self->t->state < 0)
		SKIP(return, "%s", self->t->why);
	self->lbs = variant->lbs;
}

FIXTURE_TEARDOWN(ext2)
{
}
