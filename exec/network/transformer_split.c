/*
 * Words that are cut over a tensor group: each device has a range of the vocabulary's rows, padded to the length of the
 * slice's.
 *
 *     rank 0   [ words 0 .. S | positions ]        S rows of words on each device; the last ones may have fewer,
 *     rank 1   [ words S ..   | positions ]        or none. Positions are whole
 *
 * Forward, a device adds up the rows of its own words and zeros, then the sums over devices come, then positions, so
 * that x has the bits of one device. The loss exchanges three numbers for each row of logits.
 */
#include "exec/network/transformer.h"

#include <string.h>

static int64_t slice_words(const struct transformer_unit *unit)
{
    return (int64_t)unit->network->vocabulary;
}

/* Returns the device's words, or the rows after all words. */
static struct transformer_table_rows words_of(const struct transformer_unit *unit, const struct transformer_table_rows *rows)
{
    struct transformer_table_rows own = *rows;
    own.split = false;
    own.vocabulary = transformer_all_words(unit);
    own.first_row = (int64_t)unit->split->first_word;
    own.row_count = (int64_t)unit->split->words;
    return own;
}

static struct transformer_table_rows rest_of(const struct transformer_unit *unit, const struct transformer_table_rows *rows)
{
    struct transformer_table_rows rest = *rows;
    rest.split = false;
    rest.first_row = transformer_all_words(unit);
    rest.vocabulary = rest.first_row + transformer_first_token(unit);
    rest.first = slice_words(unit);
    rest.row_count = rows->row_count - slice_words(unit);
    return rest;
}

void transformer_gather_split(const struct transformer_unit *unit, float *x, const struct transformer_table_rows *rows)
{
    const struct transformer_table_rows words = words_of(unit, rows), rest = rest_of(unit, rows);
    const int64_t count = unit->r * unit->c;
    if (words.first_row > 0) memset(x, 0, (size_t)count * sizeof *x);
    if (words.row_count > 0) transformer_gather(unit, x, &words);
    transformer_sum(unit, x, count);
    if (rest.row_count > 0) transformer_gather(unit, x, &rest);
}

void transformer_rows_backward_split(const struct transformer_unit *unit, const struct transformer_table_rows *rows,
                                     const float *dx, float *scratch)
{
    const struct transformer_table_rows words = words_of(unit, rows), rest = rest_of(unit, rows);
    if (words.row_count > 0) transformer_rows_backward(unit, &words, NULL, dx, scratch);
    if (!unit->adds) transformer_zero_padding(unit, unit->arguments->gradient, NULL);
    if (rest.row_count > 0) transformer_rows_backward(unit, &rest, NULL, dx, scratch);
}

void transformer_zero_padding(const struct transformer_unit *unit, float *d_table, float *d_bias)
{
    const size_t padding = (size_t)(slice_words(unit) - unit->v);
    if (!unit->split || padding == 0) return;
    if (d_table) memset(d_table + unit->v * unit->c, 0, padding * (size_t)unit->c * sizeof *d_table);
    if (d_bias) memset(d_bias + unit->v, 0, padding * sizeof *d_bias);
}

void transformer_loss_split(const struct transformer_unit *unit, const struct transformer_words *words,
                            struct kernel_loss_rows rows)
{
    const struct unit_arguments *a = unit->arguments;
    const struct kernels *k = unit->kernels;
    float *const statistics = a->loss_statistics;
    const struct kernel_loss_share share = {.logits = unit->logits,
                                            .labels = words->masked ? words->labels : words->labels + 1,
                                            .label_stride = words->stride,
                                            .b = unit->b,
                                            .t = unit->t,
                                            .v = unit->v,
                                            .first_word = (int64_t)unit->split->first_word,
                                            .masked = words->masked,
                                            .rows = rows,
                                            .largest = statistics,
                                            .sums = statistics + rows.count,
                                            .at_target = statistics + 2 * rows.count};
    k->loss_largest(k, &share);
    unit_group_maximum(unit->split->group, unit->split->rank, share.largest, (uint64_t)rows.count);
    k->loss_sums(k, &share);
    transformer_sum(unit, share.sums, 2 * rows.count);
    k->loss_gradient(k, a->loss, &share);
}
