/*
 * Tensor groups: rows of the stream, norms and words.
 *
 * Words are cut over a tensor group: each device has a range of the vocabulary's rows, padded to the length of the
 * slice's.
 *
 *     rank 0   [ words 0 .. S | positions ]        S rows of words on each device; the last ones may have fewer,
 *     rank 1   [ words S ..   | positions ]        or none. Positions are whole
 *
 * Forward, a device adds up the rows of its own words and zeros, then the sums over devices come, then positions, so
 * that x has the bits of one device. The loss exchanges three numbers for each row of logits.
 */
#include "exec/network/transformer.h"
#include "models/network/network_traits.h"

/* Brings a GPU's values to the host, where the members exchange them, and back. */
static void exchange(const struct kernels *kernels, const struct unit_split *split, float *values, uint64_t count,
                     void (*each)(struct unit_group *group, uint32_t rank, float *values, uint64_t count))
{
    float *const here = split->room ? split->room : values;
    if (split->room) kernels->to_host(kernels, here, values, count * sizeof *values);
    each(split->group, split->rank, here, count);
    if (split->room) kernels->to_device(kernels, values, here, count * sizeof *values);
}

void transformer_exchange_sum(const struct kernels *kernels, const struct unit_split *split, float *values,
                              uint64_t count)
{
    exchange(kernels, split, values, count, unit_group_sum);
}

/* --- rows ------------------------------------------------------------------------------------- */

/* Gathers the devices' own rows; those of GPUs in host memory. */
static void gather_rows(const struct transformer_unit *unit, const kernel_number *own, kernel_number *all)
{
    const struct kernels *const k = unit->kernels;
    const struct unit_split *const split = unit->split;
    const uint64_t count = (uint64_t)(unit->r * unit->c), part = count / split->members * k->number_bytes;
    if (!split->room) {
        unit_group_gather(split->group, split->rank, own, all, count, k->number_bytes);
        return;
    }
    char *const here = split->room, *const own_here = here + split->rank * part;
    k->to_host(k, own_here, own, part);
    unit_group_gather(split->group, split->rank, own_here, here, count, k->number_bytes);
    k->to_device(k, all, here, count * k->number_bytes);
}

/* Adds up rows over the devices, and leaves each its own; those of GPUs in host memory. */
static void scatter_sums(const struct transformer_unit *unit, kernel_number *sums, kernel_number *own)
{
    const struct kernels *const k = unit->kernels;
    const struct unit_split *const split = unit->split;
    const uint64_t count = (uint64_t)(unit->r * unit->c), part = count / split->members * k->number_bytes;
    if (!split->room) {
        unit_group_scatter(split->group, split->rank, sums, count, k->number_bytes, own);
        return;
    }
    char *const here = split->room, *const own_here = here + split->rank * part;
    k->to_host(k, here, sums, count * k->number_bytes);
    unit_group_scatter(split->group, split->rank, here, count, k->number_bytes, own_here);
    k->to_device(k, own, own_here, part);
}

const kernel_number *transformer_all_rows(const struct transformer_unit *unit, const kernel_number *own)
{
    if (!unit->gathered) return own;
    gather_rows(unit, own, unit->gathered);
    return unit->gathered;
}

const kernel_number *transformer_rows_for_weights(const struct transformer_unit *unit, const kernel_number *own)
{
    return unit->leaves_weights ? own : transformer_all_rows(unit, own);
}

kernel_number *transformer_sum_room(const struct transformer_unit *unit, kernel_number *own)
{
    return unit->gathered ? unit->gathered : unit->piece_sums ? unit->piece_sums : own;
}

void transformer_sum_numbers(const struct transformer_unit *unit, kernel_number *values, int64_t count)
{
    const uint32_t bytes = unit->kernels->number_bytes;
    if (!unit->split) return;
    if (bytes == sizeof(float)) transformer_sum(unit, values, count);
    else unit_group_sum_numbers(unit->split->group, unit->split->rank, values, (uint64_t)count, bytes);
}

void transformer_complete_sum(const struct transformer_unit *unit, kernel_number *own, kernel_number *sum)
{
    const int64_t count = unit->r * unit->c;
    transformer_add_pieces(unit, own, sum, count);
    if (!unit->gathered) transformer_sum_numbers(unit, own, count);
    else scatter_sums(unit, sum, own);
}

static int64_t first_own(const struct transformer_unit *unit)
{
    return unit->split->rank * unit->own * unit->c;
}

kernel_number *transformer_own_gathered(const struct transformer_unit *unit)
{
    return transformer_number(unit, unit->gathered, first_own(unit));
}

kernel_number *transformer_own_sum(const struct transformer_unit *unit, kernel_number *values)
{
    kernel_number *const own = unit->gathered ? transformer_number(unit, values, first_own(unit)) : values;
    transformer_complete_sum(unit, own, unit->piece_sums ? unit->piece_sums : values);
    return own;
}

struct transformer_unit transformer_with_all_rows(const struct transformer_unit *unit)
{
    struct transformer_unit whole = *unit;
    whole.own = unit->r;
    whole.gathered = NULL;
    return whole;
}

void transformer_keep_own_rows(const struct transformer_unit *unit, kernel_number *own, const kernel_number *all)
{
    transformer_copy(unit->kernels, own, transformer_read_number(unit, all, first_own(unit)),
                     transformer_number_bytes(unit, unit->own * unit->c));
}

/* --- norms ------------------------------------------------------------------------------------ */

/* Passes over part m of the rows, whose gradients go to `out`. */
static void norm_part(const struct transformer_unit *unit, const struct transformer_norm *norm, int64_t values,
                      int64_t parts, int64_t m, float *out, transformer_norm_pass *pass)
{
    const int64_t rows = norm->rows / parts, at = m * rows * unit->c;
    const struct transformer_norm part = {.dx = transformer_number(unit, norm->dx, at),
                                          .d_weight = out,
                                          .d_bias = norm->d_bias ? out + unit->c : NULL,
                                          .dout = transformer_read_number(unit, norm->dout, at),
                                          .x = transformer_read_number(unit, norm->x, at),
                                          .stats = norm->stats + m * rows * values,
                                          .added = norm->added ? transformer_read_number(unit, norm->added, at)
                                                               : NULL,
                                          .weight = norm->weight,
                                          .rows = rows};
    pass(unit, &part);
}

static void add(const struct transformer_unit *unit, float *sum, const float *x)
{
    unit->kernels->add(unit->kernels, sum, sum, x, unit->c);
}

void transformer_norm_in_parts(const struct transformer_unit *unit, const struct transformer_norm *norm, int64_t values,
                               transformer_norm_pass *pass)
{
    const int64_t c = unit->c, members = unit->split ? unit->split->members : 1;
    float *const out = unit->norm_parts;
    if (!norm->d_weight && !norm->d_bias) { /* frozen */
        pass(unit, norm);
        return;
    }
    if (unit->gathered) {
        norm_part(unit, norm, values, 1, 0, out, pass);
        transformer_sum(unit, out, norm->d_bias ? 2 * c : c);
        if (norm->d_weight) transformer_copy(unit->kernels, norm->d_weight, out, (uint64_t)c * sizeof *out);
        if (norm->d_bias) transformer_copy(unit->kernels, norm->d_bias, out + c, (uint64_t)c * sizeof *out);
        return;
    }
    if (members == 1 || norm->rows % members != 0 || unit->network->pieces > 0) { /* with pieces as on one device */
        pass(unit, norm);
        return;
    }
    for (int64_t m = 0; m < members; m++) {
        struct transformer_norm first = *norm;
        first.rows /= members;
        if (m == 0) {
            pass(unit, &first);
            continue;
        }
        norm_part(unit, norm, values, members, m, out, pass);
        if (norm->d_weight) add(unit, norm->d_weight, out);
        if (norm->d_bias) add(unit, norm->d_bias, out + c);
    }
}

/* --- words ------------------------------------------------------------------------------------ */

static int64_t slice_words(const struct transformer_unit *unit)
{
    return (int64_t)unit->network->vocabulary;
}

/* Returns the device's words, or the rows after all words. */
static struct transformer_table_rows words_of(const struct transformer_unit *unit,
                                              const struct transformer_table_rows *rows)
{
    struct transformer_table_rows own = *rows;
    own.split = false;
    own.vocabulary = transformer_all_words(unit);
    own.first_row = (int64_t)unit->split->first_word;
    own.row_count = (int64_t)unit->split->words;
    return own;
}

/* Positions, which in some families follow rows without use. */
static struct transformer_table_rows rest_of(const struct transformer_unit *unit,
                                             const struct transformer_table_rows *rows)
{
    struct transformer_table_rows rest = *rows;
    rest.split = false;
    rest.first_row = transformer_all_words(unit);
    rest.vocabulary = rest.first_row + network_traits(unit->network)->more_positions + transformer_first_token(unit);
    rest.first = slice_words(unit);
    rest.row_count = rows->row_count - slice_words(unit);
    if (unit->arguments->position_rows) { /* packed rows look up their positions by number */
        rest.tokens = unit->arguments->position_rows;
        rest.token_stride = unit->t;
        rest.vocabulary = rest.first_row + rest.row_count;
    }
    return rest;
}

void transformer_gather_split(const struct transformer_unit *unit, kernel_number *x,
                              const struct transformer_table_rows *rows)
{
    const struct transformer_table_rows words = words_of(unit, rows), rest = rest_of(unit, rows);
    const int64_t count = unit->r * unit->c;
    if (words.first_row > 0) unit->kernels->zero(unit->kernels, x, transformer_number_bytes(unit, count));
    if (words.row_count > 0) transformer_gather(unit, x, &words);
    transformer_sum_numbers(unit, x, count);
    if (rest.row_count > 0) transformer_gather(unit, x, &rest);
}

void transformer_rows_backward_split(const struct transformer_unit *unit, const struct transformer_table_rows *rows,
                                     const kernel_number *dx, float *scratch)
{
    const struct transformer_table_rows words = words_of(unit, rows), rest = rest_of(unit, rows);
    if (words.row_count > 0) transformer_rows_backward(unit, &words, NULL, dx, scratch);
    if (!unit->adds) transformer_zero_padding(unit, unit->arguments->gradient, NULL);
    if (rest.row_count > 0) transformer_rows_backward(unit, &rest, NULL, dx, scratch);
}

void transformer_zero_padding(const struct transformer_unit *unit, float *d_table, float *d_bias)
{
    const struct kernels *k = unit->kernels;
    const uint64_t padding = (uint64_t)(slice_words(unit) - unit->v);
    if (!unit->split || padding == 0) return;
    if (d_table) k->zero(k, d_table + unit->v * unit->c, padding * (uint64_t)unit->c * sizeof *d_table);
    if (d_bias) k->zero(k, d_bias + unit->v, padding * sizeof *d_bias);
}

/* The words of piece p of a piece of rows. */
static struct kernel_loss_share share_of_piece(const struct transformer_unit *unit,
                                               const struct transformer_words *words, struct kernel_loss_rows rows,
                                               int64_t p)
{
    const struct transformer_word_piece piece = transformer_word_piece(unit, p);
    float *const statistics = unit->arguments->loss_statistics, *const sums = statistics + unit->pieces * rows.count;
    return (struct kernel_loss_share){.logits = unit->logits + rows.count * piece.first,
                                      .labels = words->masked ? words->labels : words->labels + 1,
                                      .label_stride = words->stride,
                                      .b = unit->b,
                                      .t = unit->t,
                                      .v = piece.count,
                                      .first_word = (int64_t)unit->split->first_word + piece.first,
                                      .masked = words->masked,
                                      .rows = rows,
                                      .largest = statistics + p * rows.count,
                                      .sums = sums + 2 * p * rows.count,
                                      .at_target = sums + (2 * p + 1) * rows.count};
}

/* Leaves the largest of all pieces in the first one's. */
static void join_largest(float *largest, int64_t count, int64_t pieces)
{
    for (int64_t p = 1; p < pieces; p++)
        for (int64_t i = 0; i < count; i++)
            if (largest[p * count + i] > largest[i]) largest[i] = largest[p * count + i];
}

void transformer_loss_split(const struct transformer_unit *unit, const struct transformer_words *words,
                            struct kernel_loss_rows rows)
{
    const struct kernels *k = unit->kernels;
    const struct kernel_loss_share first = share_of_piece(unit, words, rows, 0);
    for (int64_t p = 0; p < unit->pieces; p++) {
        const struct kernel_loss_share share = share_of_piece(unit, words, rows, p);
        k->loss_largest(k, &share);
    }
    join_largest(first.largest, rows.count, unit->pieces);
    exchange(k, unit->split, first.largest, (uint64_t)rows.count, unit_group_maximum);
    for (int64_t p = 0; p < unit->pieces; p++) {
        struct kernel_loss_share share = share_of_piece(unit, words, rows, p);
        share.largest = first.largest;
        k->loss_sums(k, &share);
    }
    transformer_add_pieces(unit, first.sums, first.sums, 2 * rows.count);
    transformer_sum(unit, first.sums, 2 * rows.count);
    for (int64_t p = 0; p < unit->pieces; p++) {
        struct kernel_loss_share share = share_of_piece(unit, words, rows, p);
        double counted = 0; /* with the first piece */
        share.largest = first.largest;
        share.sums = first.sums;
        share.at_target = first.at_target;
        k->loss_gradient(k, p == 0 ? unit->arguments->loss : &counted, &share);
    }
}
