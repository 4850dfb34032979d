#include "models/network/tensor_share.h"

#include <assert.h>
#include <string.h>

#include "base/extreme.h"

struct tensor_share tensor_share_of(const struct tensor_spec *whole, const struct tensor_spec *slice, uint32_t pieces)
{
    struct tensor_share share = {.outer = 1, .joined = 1, .size = whole->elements, .part = whole->elements, .inner = 1,
                                 .pieces = 1};
    assert(whole->rank == slice->rank && whole->joined == slice->joined);
    for (uint32_t d = 0; d < whole->rank; d++) {
        if (whole->shape[d] == slice->shape[d]) continue;
        share = (struct tensor_share){.outer = 1, .joined = whole->joined, .size = whole->shape[d] / whole->joined,
                                      .part = slice->shape[d] / whole->joined, .inner = 1,
                                      .pieces = pieces > 0 ? pieces : 1, .cut = true};
        for (uint32_t i = 0; i < d; i++) share.outer *= whole->shape[i];
        for (uint32_t i = d + 1; i < whole->rank; i++) share.inner *= whole->shape[i];
    }
    return share;
}

struct tensor_range tensor_share_range(uint64_t size, uint64_t part, uint32_t rank)
{
    const uint64_t first = part * rank < size ? part * rank : size;
    return (struct tensor_range){first, size - first < part ? size - first : part};
}

/* Copies numbers `of` a piece, line by line, one way or the other. */
static void copy_piece(const struct tensor_share *share, uint32_t piece, uint64_t number_bytes, struct tensor_range of,
                       char *part, char *whole, bool cuts)
{
    const struct tensor_range range = share->cut ? tensor_share_range(share->size, share->part, piece)
                                                 : (struct tensor_range){0, share->size};
    const uint64_t line = share->part * share->inner, used = range.count * share->inner, end = of.first + of.count;
    if (used == 0 || of.count == 0) return;
    for (uint64_t i = of.first / line; i * line < end; i++) {
        const uint64_t from = max_u64(i * line, of.first), to = min_u64(i * line + used, end);
        const uint64_t place = (i * share->size + range.first) * share->inner + from - i * line;
        if (from >= to) continue;
        char *const here = part + (from - of.first) * number_bytes, *const there = whole + place * number_bytes;
        memcpy(cuts ? here : there, cuts ? there : here, (to - from) * number_bytes);
    }
}

/* Copies numbers `of` a rank's part, piece by piece. */
static void copy(const struct tensor_share *share, uint32_t rank, uint64_t number_bytes, struct tensor_range of,
                 char *part, char *whole, bool cuts)
{
    const uint64_t each = share->outer * share->joined * share->part * share->inner, end = of.first + of.count;
    for (uint32_t p = 0; p < share->pieces; p++) {
        const uint64_t from = max_u64(p * each, of.first), to = min_u64((p + 1) * each, end);
        if (from < to)
            copy_piece(share, rank * share->pieces + p, number_bytes, (struct tensor_range){from - p * each, to - from},
                       part + (from - of.first) * number_bytes, whole, cuts);
    }
}

void tensor_share_cut(const struct tensor_share *share, uint32_t rank, uint64_t number_bytes, struct tensor_range of,
                      void *part, const void *whole)
{
    copy(share, rank, number_bytes, of, part, (char *)(uintptr_t)whole, true);
}

void tensor_share_join(const struct tensor_share *share, uint32_t rank, uint64_t number_bytes, struct tensor_range of,
                       const void *part, void *whole)
{
    copy(share, rank, number_bytes, of, (char *)(uintptr_t)part, whole, false);
}
