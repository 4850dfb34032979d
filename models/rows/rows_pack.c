/* A tournament of the packs' used places finds the first with room. Rows are then sorted by pack, by counting. */
#include "models/rows/rows_pack.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/tournament.h"
#include "base/try.h"

#define ROWS_MAX (UINT64_C(1) << 31)

/* Chooses a pack for each row; *packs: one more than the last. */
static enum status choose(const uint32_t *sizes, uint64_t count, uint64_t room, uint32_t *pack_of, uint64_t *packs,
                          struct error *err)
{
    struct arena arena = {0};
    struct tournament used;
    *packs = 0;
    if (count == 0) return STATUS_OK;
    const enum status status = tournament_create(&arena, (uint32_t)count, 0, &used, err);
    for (uint64_t i = 0; i < count && status == STATUS_OK; i++) {
        assert(sizes[i] >= 1 && sizes[i] <= room);
        const uint32_t pack = tournament_first(&used, (double)(room - sizes[i]));
        tournament_set(&used, pack, tournament_get(&used, pack) + sizes[i]);
        pack_of[i] = pack;
        if (pack >= *packs) *packs = (uint64_t)pack + 1;
    }
    arena_release(&arena);
    return status;
}

static void sort(const uint32_t *rows, const uint32_t *pack_of, uint64_t count, struct rows_pack *out)
{
    for (uint64_t i = 0; i < count; i++) out->begins[pack_of[i] + 1]++;
    for (uint64_t p = 0; p < out->count; p++) out->begins[p + 1] += out->begins[p];
    for (uint64_t i = 0; i < count; i++) out->rows[out->begins[pack_of[i]]++] = rows[i];
    for (uint64_t p = out->count; p > 0; p--) out->begins[p] = out->begins[p - 1];
    out->begins[0] = 0;
}

enum status rows_pack_make(const uint32_t *rows, const uint32_t *sizes, uint64_t count, uint64_t room,
                           struct rows_pack *out, struct error *err)
{
    struct rows_pack pack = {0};
    if (count > ROWS_MAX)
        return error_set(err, STATUS_LIMIT, "%" PRIu64 " rows are too many to be packed (limit is %" PRIu64 ")",
                         count, ROWS_MAX);
    uint32_t *pack_of = alloc_zeroed(count + 1, sizeof *pack_of);
    pack.rows = alloc_zeroed(count + 1, sizeof *pack.rows);
    enum status status =
        pack_of && pack.rows ? STATUS_OK : error_memory(err, "packs of rows", 2 * count * sizeof *pack_of);
    if (status == STATUS_OK) status = choose(sizes, count, room, pack_of, &pack.count, err);
    if (status == STATUS_OK) pack.begins = alloc_zeroed(pack.count + 1, sizeof *pack.begins);
    if (status == STATUS_OK && !pack.begins)
        status = error_memory(err, "packs of rows", pack.count * sizeof *pack.begins);
    if (status == STATUS_OK) {
        sort(rows, pack_of, count, &pack);
        *out = pack;
    } else {
        rows_pack_release(&pack);
    }
    free(pack_of);
    return status;
}

void rows_pack_release(struct rows_pack *pack)
{
    free(pack->rows);
    free(pack->begins);
    *pack = (struct rows_pack){0};
}
