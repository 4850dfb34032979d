/*
 * The loss where each device of a tensor group has the logits of some words: exec/kernels/kernels_loss.c in three
 * steps, between which the devices combine a few numbers for each row.
 *
 *     largest    m(r) = max_j z(j)                     then the maximum over devices
 *     sums       z(j) = exp(z(j) - m(r)), their sum s(r), and z(target) - m(r)     then the sums over devices
 *     gradient   loss(r) = log s(r) - (z(target) - m(r));   dz(j) = (z(j) / s(r) - [j is target]) / R
 *
 * Logits with a cap get it in the first step. The second leaves them, since the third needs them for the derivative of
 * the cap, and computes their exponentials again; it needs m(r), too.
 */
#include "exec/kernels/kernels_host.h"

#include <assert.h>
#include <math.h>

#include "exec/kernels/kernels_math.h"

enum { NO_WORD = -1 };

/* Returns the row's label. */
static int64_t label_of(const struct kernel_loss_share *s, int64_t row)
{
    const int64_t place = s->rows.first + row;
    return s->labels[place / s->t * s->label_stride + place % s->t];
}

/* Returns the target's place among the device's words, or NO_WORD. */
static int64_t own_word(const struct kernel_loss_share *s, int64_t row)
{
    const int64_t word = label_of(s, row) - s->first_word;
    return label_of(s, row) >= 0 && word >= 0 && word < s->v ? word : NO_WORD;
}

CLONES static float largest_of_row(float *z, int64_t v, float cap)
{
    if (cap > 0) math_row_cap(z, v, cap);
    return math_row_max(z, v);
}

void host_loss_largest(const struct kernels *kernels, const struct kernel_loss_share *s)
{
#pragma omp parallel for schedule(static) num_threads((int)kernels->threads) if (s->rows.count * s->v > HOST_SERIAL)
    for (int64_t row = 0; row < s->rows.count; row++)
        s->largest[row] = s->v > 0 ? largest_of_row(s->logits + row * s->v, s->v, s->rows.cap) : -INFINITY;
}

/* Returns the sum of the exponentials of z(v), which take the place of z without a cap. */
CLONES static float sum_of_row(float *z, int64_t v, float largest, float cap)
{
    return cap > 0 ? math_row_exp_sum(z, v, largest) : math_row_exp(z, v, largest);
}

void host_loss_sums(const struct kernels *kernels, const struct kernel_loss_share *s)
{
#pragma omp parallel for schedule(static) num_threads((int)kernels->threads) if (s->rows.count * s->v > HOST_SERIAL)
    for (int64_t row = 0; row < s->rows.count; row++) {
        float *z = s->logits + row * s->v;
        int64_t word = own_word(s, row);
        s->at_target[row] = word == NO_WORD ? 0 : z[word] - s->largest[row];
        s->sums[row] = s->v > 0 ? sum_of_row(z, s->v, s->largest[row], s->rows.cap) : 0;
    }
}

/* z(v) becomes factor times the exponentials, less `scale` at the device's target, if it has it. */
CLONES static void gradient_of_row(float *z, int64_t v, int64_t word, float factor, float scale)
{
    for (int64_t j = 0; j < v; j++) z[j] *= factor;
    if (word != NO_WORD) z[word] -= scale;
}

CLONES static void capped_gradient_of_row(float *z, int64_t v, int64_t word, float largest, float factor, float scale,
                                          float cap)
{
    const float slope = word == NO_WORD ? 0 : math_cap_slope(z[word], 1.0f / cap);
    math_row_capped_gradient(z, v, largest, factor, cap);
    if (word != NO_WORD) z[word] -= scale * slope;
}

/* Counts the rows of the mean. */
static int64_t count_rows(const struct kernel_loss_share *s)
{
    struct kernel_loss_share all = *s;
    int64_t counted = 0;
    all.rows.first = 0;
    if (!s->masked) return s->b * s->t;
    for (int64_t row = 0; row < s->b * s->t; row++) counted += label_of(&all, row) >= 0;
    return counted > 0 ? counted : 1;
}

void host_loss_gradient(const struct kernels *kernels, double *loss, const struct kernel_loss_share *s)
{
    const double counted = s->rows.targets > 0 ? (double)s->rows.targets : (double)count_rows(s) * s->rows.parts;
    const float scale = 1.0f / (float)counted;
#pragma omp parallel for schedule(static) num_threads((int)kernels->threads) if (s->rows.count * s->v > HOST_SERIAL)
    for (int64_t row = 0; row < s->rows.count; row++) {
        float *z = s->logits + row * s->v;
        const float factor = label_of(s, row) >= 0 ? scale / s->sums[row] : 0;
        const int64_t word = own_word(s, row);
        if (s->v == 0) continue;
        if (s->rows.cap > 0) capped_gradient_of_row(z, s->v, word, s->largest[row], factor, scale, s->rows.cap);
        else gradient_of_row(z, s->v, word, factor, scale);
    }
    double total = 0;
    for (int64_t row = 0; row < s->rows.count; row++)
        if (label_of(s, row) >= 0) total += log((double)s->sums[row]) - (double)s->at_target[row];
    const bool first = s->rows.part == 0 && s->rows.first == 0 && !s->rows.continues;
    *loss = (first ? 0 : *loss) + total / counted;
}
