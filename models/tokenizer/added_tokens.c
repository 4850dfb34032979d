#include "models/tokenizer/added_tokens.h"

#include <string.h>

#include "base/try.h"
#include "models/tokenizer/characters.h"

enum status added_tokens_begin(struct added_tokens *added, struct arena *arena, size_t capacity, struct error *err)
{
    TRY(vocabulary_begin(&added->texts, arena, capacity, err));
    TRY(ARENA_NEW(arena, capacity, added->tokens, err));
    return ARENA_NEW(arena, capacity, added->lengths, err);
}

static void add_length(struct added_tokens *added, uint32_t length)
{
    uint32_t at = 0;
    while (at < added->length_count && added->lengths[at] > length) at++;
    if (at < added->length_count && added->lengths[at] == length) return;
    memmove(added->lengths + at + 1, added->lengths + at, (added->length_count - at) * sizeof *added->lengths);
    added->lengths[at] = length;
    added->length_count++;
}

enum status added_tokens_add(struct added_tokens *added, struct arena *arena, const char *text, size_t length,
                             const struct added_token *token, struct error *err)
{
    const uint32_t at = added->texts.count;
    if (length == 0 || vocabulary_find(&added->texts, text, length) != VOCABULARY_NONE) return STATUS_OK;
    TRY(vocabulary_add(&added->texts, arena, text, length, at, err));
    added->tokens[at] = *token;
    added->begins[(unsigned char)*text] = true;
    add_length(added, (uint32_t)length);
    return STATUS_OK;
}

/* Returns the longest token that stands at `at`, and its length; NULL: none. */
static const struct added_token *token_at(const struct added_tokens *added, const char *text, size_t length, size_t at,
                                          size_t *bytes)
{
    for (uint32_t i = 0; i < added->length_count; i++) {
        *bytes = added->lengths[i];
        if (*bytes > length - at) continue;
        const uint32_t found = vocabulary_find(&added->texts, text + at, *bytes);
        if (found != VOCABULARY_NONE) return &added->tokens[found];
    }
    return NULL;
}

const struct added_token *added_tokens_find(const struct added_tokens *added, const char *text, size_t length,
                                            size_t done, size_t *from, size_t *begin, size_t *end)
{
    while (*from < length) {
        size_t bytes = 1;
        const size_t at = *from;
        const struct added_token *const token =
            added->begins[(unsigned char)text[at]] ? token_at(added, text, length, at, &bytes) : NULL;
        *from = at + (token ? bytes : 1);
        if (!token) continue;
        if (token->alone && (character_of_word_before(text, at) || character_of_word_at(text, length, *from))) continue;
        *begin = token->left ? characters_space_before(text, at) : at;
        if (*begin < done) *begin = done;
        *end = token->right ? characters_space_after(text, length, *from) : *from;
        if (*from < *end) *from = *end;
        return token;
    }
    return NULL;
}
