#include "models/tokenizer/merges.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/try.h"
#include "models/tokenizer/characters.h"

#define NO_MERGE UINT64_MAX

enum { SYMBOLS_MAX = INT32_MAX };

/* --- the table -------------------------------------------------------------------------------- */

static uint32_t slot_of(const struct merges *merges, uint64_t pair)
{
    uint64_t hash = pair * UINT64_C(0x9e3779b97f4a7c15);
    return (uint32_t)(hash >> 32) & merges->mask;
}

enum status merges_begin(struct merges *merges, struct arena *arena, size_t count, struct error *err)
{
    uint32_t slots = 8;
    while (slots < 2 * count) slots *= 2;
    TRY(ARENA_NEW(arena, slots, merges->table, err));
    for (uint32_t i = 0; i < slots; i++) merges->table[i].pair = NO_MERGE;
    merges->mask = slots - 1;
    return STATUS_OK;
}

/* Returns the pair's place, or the free one that it would have. */
static struct merge *place_of(const struct merges *merges, uint32_t left, uint32_t right)
{
    const uint64_t pair = (uint64_t)left << 32 | right;
    uint32_t slot = slot_of(merges, pair);
    while (merges->table[slot].pair != pair && merges->table[slot].pair != NO_MERGE) slot = (slot + 1) & merges->mask;
    return &merges->table[slot];
}

void merges_add(struct merges *merges, uint32_t left, uint32_t right, uint32_t rank, uint32_t id)
{
    *place_of(merges, left, right) = (struct merge){(uint64_t)left << 32 | right, rank, id};
}

/* --- candidates: a heap, the lowest rank and then the leftmost first ------------------------------ */

static bool comes_before(const struct merge_candidate *a, const struct merge_candidate *b)
{
    return a->rank != b->rank ? a->rank < b->rank : a->at < b->at;
}

static enum status push(struct merge_room *room, struct merge_candidate candidate, struct error *err)
{
    TRY(array_reserve(&room->heap, &room->heap_capacity, room->heap_count, sizeof *room->heap, SYMBOLS_MAX,
                      "merges of a piece", err));
    size_t at = room->heap_count++;
    for (; at > 0 && comes_before(&candidate, &room->heap[(at - 1) / 2]); at = (at - 1) / 2)
        room->heap[at] = room->heap[(at - 1) / 2];
    room->heap[at] = candidate;
    return STATUS_OK;
}

static struct merge_candidate pop(struct merge_room *room)
{
    const struct merge_candidate first = room->heap[0], last = room->heap[--room->heap_count];
    size_t at = 0, child;
    for (; (child = 2 * at + 1) < room->heap_count; at = child) {
        if (child + 1 < room->heap_count && comes_before(&room->heap[child + 1], &room->heap[child])) child++;
        if (!comes_before(&room->heap[child], &last)) break;
        room->heap[at] = room->heap[child];
    }
    room->heap[at] = last;
    return first;
}

/* Makes the symbol and its right neighbour a candidate, if they merge. */
static enum status offer(const struct merges *merges, struct merge_room *room, int32_t at, struct error *err)
{
    if (at < 0 || room->symbols[at].next < 0) return STATUS_OK;
    const struct merge *const merge = place_of(merges, room->symbols[at].id, room->symbols[room->symbols[at].next].id);
    if (merge->pair == NO_MERGE) return STATUS_OK;
    return push(room, (struct merge_candidate){merge->rank, (uint32_t)at, merge->id}, err);
}

/* --- symbols ---------------------------------------------------------------------------------- */

static enum status add_symbol(struct merge_room *room, uint32_t id, struct error *err)
{
    TRY(array_reserve(&room->symbols, &room->symbol_capacity, room->symbol_count, sizeof *room->symbols, SYMBOLS_MAX,
                      "characters of a piece", err));
    const int32_t at = (int32_t)room->symbol_count++;
    room->symbols[at] = (struct merge_symbol){.id = id, .previous = at - 1, .next = -1};
    if (at > 0) room->symbols[at - 1].next = at;
    return STATUS_OK;
}

/* Writes a character in tokens of its bytes. *done is false when one of them is missing. */
static enum status add_bytes(const struct merges *merges, struct merge_room *room, const char *character, size_t length,
                             bool *done,
                             struct error *err)
{
    *done = merges->falls_back;
    for (size_t i = 0; i < length; i++) *done &= merges->byte_ids[(unsigned char)character[i]] != VOCABULARY_NONE;
    for (size_t i = 0; *done && i < length; i++)
        TRY(add_symbol(room, merges->byte_ids[(unsigned char)character[i]], err));
    return STATUS_OK;
}

/* As the `tokenizers` library does, an unknown character goes after the bytes that follow it, until a known one
 * comes. */
static enum status add_characters(const struct merges *merges, struct merge_room *room, const char *piece,
                                  size_t length, struct error *err)
{
    bool unknown = false, done;
    for (size_t at = 0, bytes; at < length; at += bytes) {
        bytes = character_bytes(piece + at);
        const uint32_t id = vocabulary_find(&merges->vocabulary, piece + at, bytes);
        if (id == VOCABULARY_NONE) {
            TRY(add_bytes(merges, room, piece + at, bytes, &done, err));
            if (done || merges->unknown == VOCABULARY_NONE) continue;
            if (unknown && !merges->joins_unknown) TRY(add_symbol(room, merges->unknown, err));
            unknown = true;
            continue;
        }
        if (unknown) TRY(add_symbol(room, merges->unknown, err));
        unknown = false;
        TRY(add_symbol(room, id, err));
    }
    return unknown ? add_symbol(room, merges->unknown, err) : STATUS_OK;
}

static enum status merge_all(const struct merges *merges, struct merge_room *room, struct error *err)
{
    struct merge_symbol *const symbols = room->symbols;
    for (size_t at = 0; at + 1 < room->symbol_count; at++) TRY(offer(merges, room, (int32_t)at, err));
    while (room->heap_count > 0) {
        const struct merge_candidate candidate = pop(room);
        struct merge_symbol *const left = &symbols[candidate.at];
        if (left->merged || left->next < 0) continue;
        struct merge_symbol *const right = &symbols[left->next];
        const struct merge *const merge = place_of(merges, left->id, right->id);
        if (merge->pair == NO_MERGE || merge->id != candidate.id) continue; /* a neighbour has changed since */
        left->id = candidate.id;
        left->next = right->next;
        right->merged = true;
        if (right->next >= 0) symbols[right->next].previous = (int32_t)candidate.at;
        TRY(offer(merges, room, left->previous, err));
        TRY(offer(merges, room, (int32_t)candidate.at, err));
    }
    return STATUS_OK;
}

/* --- public ----------------------------------------------------------------------------------- */

enum status token_list_add(struct token_list *list, uint32_t id, struct error *err)
{
    TRY(array_reserve(&list->ids, &list->capacity, list->count, sizeof *list->ids, SIZE_MAX / sizeof *list->ids,
                      "tokens", err));
    list->ids[list->count++] = id;
    return STATUS_OK;
}

enum status merges_encode(const struct merges *merges, struct merge_room *room, const char *piece, size_t length,
                          struct token_list *out, struct error *err)
{
    if (merges->takes_whole) {
        const uint32_t whole = vocabulary_find(&merges->vocabulary, piece, length);
        if (whole != VOCABULARY_NONE) return token_list_add(out, whole, err);
    }
    room->symbol_count = room->heap_count = 0;
    TRY(add_characters(merges, room, piece, length, err));
    TRY(merge_all(merges, room, err));
    for (size_t i = 0; i < room->symbol_count; i++)
        if (!room->symbols[i].merged) TRY(token_list_add(out, room->symbols[i].id, err));
    return STATUS_OK;
}

void merge_room_release(struct merge_room *room)
{
    free(room->symbols);
    free(room->heap);
}

void token_list_release(struct token_list *list)
{
    free(list->ids);
    *list = (struct token_list){0};
}
