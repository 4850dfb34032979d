#include "models/tokenizer/vocabulary.h"

#include <assert.h>
#include <string.h>

#include "base/hash.h"
#include "base/try.h"

static uint32_t slot_of(const struct vocabulary *vocabulary, const char *text, size_t length)
{
    const uint64_t hash = hash_bytes(HASH_BEGIN, text, length);
    return (uint32_t)(hash ^ hash >> 32) & vocabulary->mask;
}

enum status vocabulary_begin(struct vocabulary *vocabulary, struct arena *arena, size_t capacity, struct error *err)
{
    uint32_t slots = 8;
    while (slots < 2 * capacity) slots *= 2;
    *vocabulary = (struct vocabulary){.capacity = (uint32_t)capacity, .mask = slots - 1};
    TRY(ARENA_NEW(arena, capacity, vocabulary->words, err));
    TRY(ARENA_NEW(arena, slots, vocabulary->slots, err));
    memset(vocabulary->slots, 0xff, slots * sizeof *vocabulary->slots);
    return STATUS_OK;
}

enum status vocabulary_add(struct vocabulary *vocabulary, struct arena *arena, const char *text, size_t length,
                           uint32_t id, struct error *err)
{
    char *copy;
    assert(vocabulary->count < vocabulary->capacity);
    TRY(ARENA_NEW(arena, length + 1, copy, err));
    memcpy(copy, text, length);
    uint32_t slot = slot_of(vocabulary, text, length);
    while (vocabulary->slots[slot] != VOCABULARY_NONE) slot = (slot + 1) & vocabulary->mask;
    vocabulary->slots[slot] = vocabulary->count;
    vocabulary->words[vocabulary->count++] = (struct vocabulary_word){copy, (uint32_t)length, id};
    return STATUS_OK;
}

uint32_t vocabulary_find(const struct vocabulary *vocabulary, const char *text, size_t length)
{
    if (vocabulary->count == 0) return VOCABULARY_NONE;
    for (uint32_t slot = slot_of(vocabulary, text, length); vocabulary->slots[slot] != VOCABULARY_NONE;
         slot = (slot + 1) & vocabulary->mask) {
        const struct vocabulary_word *word = &vocabulary->words[vocabulary->slots[slot]];
        if (word->length == length && memcmp(word->text, text, length) == 0) return word->id;
    }
    return VOCABULARY_NONE;
}
