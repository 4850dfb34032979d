#include "models/rows/rows_set.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/random.h"
#include "base/try.h"
#include "models/rows/rows_order.h"

#define KEY_SPLIT UINT64_C(0x73706c6974)
#define KEY_EPOCH UINT64_C(0x65706f6368)

uint64_t rows_set_places(const struct rows_set *set, uint64_t row)
{
    const uint64_t length = rows_file_length(set->file, row), places = length > 0 ? length - 1 : 0;
    return places < set->choice.sequence ? places : set->choice.sequence;
}

static uint64_t learned_of_row(const struct rows_set *set, uint64_t row)
{
    return rows_file_count_learned(set->file, rows_file_begin(set->file, row) + 1, rows_set_places(set, row));
}

/* Finds the rows that are longer than a sample. */
static enum status find_long(struct rows_set *set, struct error *err)
{
    size_t capacity = 0;
    for (uint64_t row = 0; row < set->file->rows; row++) {
        if (rows_file_length(set->file, row) <= set->choice.sequence + 1) continue;
        set->long_rows++;
        if (!set->choice.skips_long) continue;
        TRY(array_reserve(&set->skipped, &capacity, set->skipped_count, sizeof *set->skipped, UINT32_MAX,
                          "skipped rows", err));
        set->skipped[set->skipped_count++] = (uint32_t)row;
    }
    return STATUS_OK;
}

/* Returns the row with `index` rows before it that are not skipped: index plus the skipped ones before it. */
static uint64_t used_row(const struct rows_set *set, uint64_t index)
{
    uint64_t low = 0, high = set->skipped_count;
    while (low < high) {
        const uint64_t middle = low + (high - low) / 2;
        if (set->skipped[middle] - middle <= index)
            low = middle + 1;
        else
            high = middle;
    }
    return index + low;
}

/* Returns a row by its place in the set. */
static uint64_t row_at(const struct rows_set *set, uint64_t place)
{
    const uint64_t at = set->first + place;
    return used_row(set, rows_order_at(set->choice.split_seed ^ KEY_SPLIT, set->used, at));
}

static enum status divide(struct rows_set *set, bool held_out, struct error *err)
{
    const double share = set->choice.held_out;
    uint64_t held = share > 0 ? (uint64_t)llround(share * (double)set->used) : 0;
    if (share > 0 && held == 0) held = 1;
    if (set->used <= held)
        return error_set(err, STATUS_BAD_INPUT, "%s: %" PRIu64 " rows%s are too few%s", set->file->name, set->used,
                         set->skipped_count > 0 ? " that are not longer than a sample" : "",
                         held > 0 ? " to hold some out for evaluations" : "");
    assert(!held_out || held > 0);
    set->first = held_out ? set->used - held : 0;
    set->rows = held_out ? held : set->used - held;
    return STATUS_OK;
}

/* Makes packs of the rows that have a place; counts the rest. */
static enum status make_packs(struct rows_set *set, uint32_t *rows, uint32_t *sizes, struct error *err)
{
    uint64_t count = 0;
    for (uint64_t place = 0; place < set->rows; place++) {
        const uint64_t row = row_at(set, place), size = rows_set_places(set, row);
        if (size == 0) continue;
        rows[count] = (uint32_t)row;
        sizes[count++] = (uint32_t)size;
    }
    if (count == 0) return error_set(err, STATUS_BAD_INPUT, "%s: no row has two tokens", set->file->name);
    return rows_pack_make(rows, sizes, count, set->choice.sequence, &set->pack, err);
}

static enum status pack(struct rows_set *set, struct error *err)
{
    uint32_t *const rows = alloc_zeroed(set->rows, sizeof *rows), *const sizes = alloc_zeroed(set->rows, sizeof *sizes);
    const enum status status = rows && sizes ? make_packs(set, rows, sizes, err)
                                             : error_memory(err, "rows", 2 * set->rows * sizeof *rows);
    free(rows);
    free(sizes);
    return status;
}

static void count(struct rows_set *set)
{
    for (uint64_t place = 0; place < set->rows; place++) {
        const uint64_t row = row_at(set, place);
        set->filled += rows_set_places(set, row);
        set->idle_rows += learned_of_row(set, row) == 0;
    }
}

enum status rows_set_make(const struct rows_file *file, const struct rows_choice *choice, bool held_out,
                          struct rows_set *out, struct error *err)
{
    struct rows_set set = {.file = file, .choice = *choice};
    enum status status = find_long(&set, err);
    set.used = file->rows - set.skipped_count;
    if (status == STATUS_OK) status = divide(&set, held_out, err);
    if (status == STATUS_OK && choice->packs) status = pack(&set, err);
    if (status != STATUS_OK) {
        rows_set_release(&set);
        return status;
    }
    set.samples = choice->packs ? set.pack.count : set.rows;
    count(&set);
    *out = set;
    return STATUS_OK;
}

void rows_set_release(struct rows_set *set)
{
    free(set->skipped);
    rows_pack_release(&set->pack);
    *set = (struct rows_set){0};
}

uint64_t rows_set_sample(const struct rows_set *set, uint64_t seed, uint64_t s)
{
    return rows_order_at(random_u64(seed ^ KEY_EPOCH, s / set->samples), set->samples, s % set->samples);
}

uint64_t rows_set_rows(const struct rows_set *set, uint64_t sample, uint32_t *one, const uint32_t **rows)
{
    assert(sample < set->samples);
    if (set->choice.packs) {
        *rows = set->pack.rows + set->pack.begins[sample];
        return set->pack.begins[sample + 1] - set->pack.begins[sample];
    }
    *one = (uint32_t)row_at(set, sample);
    *rows = one;
    return 1;
}

uint64_t rows_set_learned(const struct rows_set *set, uint64_t sample)
{
    uint32_t one;
    const uint32_t *rows;
    uint64_t learned = 0;
    const uint64_t count = rows_set_rows(set, sample, &one, &rows);
    for (uint64_t i = 0; i < count; i++) learned += learned_of_row(set, rows[i]);
    return learned;
}
