/*
 * Packs: several rows in one sample, by first fit.
 *
 * Rows are taken in a given order; each goes into the first pack that has room for it. Source: Johnson, "Near-optimal
 * bin packing algorithms", MIT 1973. Cost: O(log rows) each.
 */
#ifndef SPILLWAY_MODELS_ROWS_ROWS_PACK_H
#define SPILLWAY_MODELS_ROWS_ROWS_PACK_H

#include <stdint.h>

#include "base/error.h"

/* Pack p has rows[begins[p]] to rows[begins[p + 1] - 1], in the order in which they were taken. */
struct rows_pack {
    uint32_t *rows, *begins; /* malloc'ed */
    uint64_t count;          /* packs */
};

/* Packs rows[count] of sizes[count], each in [1, room]. Release with rows_pack_release(). Errors: STATUS_LIMIT above
 * 2^31 rows. */
MUST_CHECK enum status rows_pack_make(const uint32_t *rows, const uint32_t *sizes, uint64_t count, uint64_t room,
                                      struct rows_pack *out, struct error *err);
void rows_pack_release(struct rows_pack *pack);

#endif
