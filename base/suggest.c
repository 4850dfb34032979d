/*
 * "unknown key 'stpes' (did you mean 'steps'?)": the nearest known word by edit distance, where
 * exchanging two neighbouring letters counts once, as typing errors do.
 *
 * Three rows of the usual table are enough: insertions, deletions and replacements look one row
 * back, exchanges two. Words are a few dozen letters; longer ones are never suggested.
 * Source: optimal string alignment; Damerau, "A technique for computer detection and correction of
 * spelling errors", CACM 7(3), 1964.
 */
#include "base/suggest.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/extreme.h"

enum { WORD_MAX = 64 };

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

const char *suggest(const char *word, const char *const *words, size_t count)
{
    size_t length = strlen(word);
    if (length > WORD_MAX) return NULL;
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
