/*
 * "unknown key 'stpes' (did you mean 'steps'?)": the nearest known word by edit distance, where
 * exchanging two neighbouring letters counts once, as typing errors do.
 *
 * A prefix wins over an edit: "hydra-fig8" is the start of "hydra-fig8-text", and one letter away from "hydra-fig7".
 * Three rows of the usual table are enough: insertions, deletions and replacements look one row
 * back, exchanges two. Words are a few dozen letters; longer ones are never suggested.
 * Source: optimal string alignment; Damerau, "A technique for computer detection and correction of
 * spelling errors", CACM 7(3), 1964.
 */
#include "base/text/suggest.h"

#include <assert.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/extreme.h"

enum {
    WORD_MAX = 64,
    PREFIX_MIN = 3, /* letters that are enough to look for words which start with them */
    NAMED_MAX = 4   /* words that an ending names */
};

static size_t distance(const char *a, size_t a_length, const char *b, size_t b_length)
{
    size_t rows[3][WORD_MAX + 1];
    size_t *before = rows[0], *last = rows[1], *row = rows[2];
    for (size_t j = 0; j <= b_length; j++) last[j] = j;
    for (size_t i = 1; i <= a_length; i++) {
        row[0] = i;
        for (size_t j = 1; j <= b_length; j++) {
            size_t replace = last[j - 1] + (a[i - 1] != b[j - 1]);
            row[j] = min_u64(replace, min_u64(last[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = min_u64(row[j], before[j - 2] + 1);
        }
        size_t *oldest = before;
        before = last;
        last = row;
        row = oldest;
    }
    return last[b_length];
}

static bool extends(const char *word, const char *prefix, size_t length)
{
    return length >= PREFIX_MIN && strncmp(word, prefix, length) == 0;
}

/* Returns the number of characters of `word` that `prefix` covers, ignoring separators in both; 0 when it does not
 * cover all of `prefix`. */
static size_t covered(const char *word, const char *prefix)
{
    const char *at = word;
    for (;; at++, prefix++) {
        while (*at == '_' || *at == '-') at++;
        while (*prefix == '_' || *prefix == '-') prefix++;
        if (!*prefix) return (size_t)(at - word);
        if (*at != *prefix) return 0;
    }
}

/* Finds the longest known word that `word` starts with: "micro_batchsize" starts with "microbatch". */
static const char *longest_covered(const char *word, size_t length, const char *const *words, size_t count)
{
    const char *found = NULL;
    size_t most = length / 2;
    for (size_t i = 0; i < count; i++) {
        size_t letters = covered(word, words[i]);
        if (letters <= most || letters < PREFIX_MIN) continue;
        most = letters;
        found = words[i];
    }
    return found;
}

static const char *nearest_word(const char *word, size_t length, const char *const *words, size_t count)
{
    size_t nearest = 1 + length / 4 + 1; /* one past the largest that is allowed */
    const char *found = NULL;
    for (size_t i = 0; i < count; i++) {
        size_t other = strlen(words[i]);
        if (other > WORD_MAX) continue;
        size_t d = distance(word, length, words[i], other);
        if (d < nearest && d < length) {
            nearest = d;
            found = words[i];
        }
    }
    return found;
}

const char *suggest(const char *word, const char *const *words, size_t count)
{
    size_t length = strlen(word), extended = 0;
    const char *found = NULL;
    if (length > WORD_MAX) return NULL;
    for (size_t i = 0; i < count; i++) {
        if (!extends(words[i], word, length)) continue;
        found = words[i];
        extended++;
    }
    if (extended == 1) return found;
    found = nearest_word(word, length, words, count);
    return found ? found : longest_covered(word, length, words, count);
}

/* Lists the words that start with `word`: "'a', 'b' or 2 more". Returns their number. */
static size_t list_extended(const char *word, const char *const *words, size_t count, char *buffer, size_t size)
{
    const char *named[NAMED_MAX];
    size_t extended = 0, used = 0, length = strlen(word);
    for (size_t i = 0; i < count; i++) {
        if (!extends(words[i], word, length) || strlen(words[i]) > WORD_MAX) continue;
        if (extended < NAMED_MAX) named[extended] = words[i];
        extended++;
    }
    for (size_t i = 0; i < extended && i < NAMED_MAX; i++)
        used += (size_t)snprintf(buffer + used, size - used, "%s'%s'", i == 0 ? "" : i + 1 == extended ? " or " : ", ",
                                 named[i]);
    if (extended > NAMED_MAX) snprintf(buffer + used, size - used, " or %zu more", extended - NAMED_MAX);
    return extended;
}

const char *suggest_list(const char *const *words, size_t count, char *buffer, size_t size)
{
    assert(size > 4);
    size_t used = 0;
    buffer[0] = '\0';
    for (size_t i = 0; i < count; i++) {
        const char *before = i == 0 ? "" : i + 1 == count ? " or " : ", ";
        int length = snprintf(buffer + used, size - used, "%s%s", before, words[i]);
        used += (size_t)length;
        if (used >= size) {
            memcpy(buffer + size - 4, "...", 4);
            break;
        }
    }
    return buffer;
}

const char *suggest_ending_or(const char *word, const char *const *words, size_t count, const char *otherwise,
                              char buffer[SUGGEST_BYTES])
{
    char list[NAMED_MAX * (WORD_MAX + 8) + 32];
    if (list_extended(word, words, count, list, sizeof list) > 0) {
        snprintf(buffer, SUGGEST_BYTES, " (did you mean %s?)", list);
        return buffer;
    }
    const char *near = suggest(word, words, count);
    if (near) snprintf(buffer, SUGGEST_BYTES, " (did you mean '%s'?)", near);
    else snprintf(buffer, SUGGEST_BYTES, "%s", otherwise);
    return buffer;
}

const char *suggest_ending(const char *word, const char *const *words, size_t count, char buffer[SUGGEST_BYTES])
{
    enum { AROUND_BYTES = 16 };
    char list[SUGGEST_BYTES - AROUND_BYTES], expected[SUGGEST_BYTES];
    snprintf(expected, sizeof expected, " (expected %s)", suggest_list(words, count, list, sizeof list));
    return suggest_ending_or(word, words, count, expected, buffer);
}
