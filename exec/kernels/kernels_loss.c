/*
 * Softmax, cross-entropy and the gradient of the mean loss, in place over rows of logits.
 *
 *     loss(r) = log(sum_j exp z(j)) - z(target);   dz(j) = (softmax(z)(j) - [j is target]) / R
 *
 * A row of 50257 logits (196 KiB) comes from memory once: the first sweep finds the largest logit; the two that follow
 * find the row in the second-level cache. 8 R V bytes to and from memory. The mean is summed in double over blocks of
 * rows that depend only on R, so threads may take blocks in any order.
 *
 * Where logits have a cap, z becomes c = cap tanh(z / cap), and dz = dc (1 - (c / cap)^2). The exponentials are
 * computed twice, as c must stay until then.
 *
 * Rows without a target (of a masked language model) do not count; R is then the number of rows with one.
 *
 * R counts the targets of all parts of a minibatch. Where it is not given, parts have equally many: gradient and loss
 * are divided by the part's number and by the number of parts, with the same bits. A part's logits may come in pieces
 * of rows: their losses are added in order.
 */
#include "exec/kernels/kernels_host.h"

#include <assert.h>

#include "exec/kernels/kernels_math.h"

/* z(v) becomes scale * (softmax - one at the target); returns the row's loss. */
CLONES static double loss_row(float *z, int64_t v, int64_t target, float scale)
{
    float largest = math_row_max(z, v);
    double at_target = (double)z[target] - (double)largest;
    float sum = math_row_exp(z, v, largest);

    float factor = scale / sum;
    for (int64_t j = 0; j < v; j++) z[j] *= factor;
    z[target] -= scale;
    return log((double)sum) - at_target;
}

/* As loss_row(), of logits with a cap. */
CLONES static double capped_loss_row(float *z, int64_t v, int64_t target, float scale, float cap)
{
    math_row_cap(z, v, cap);
    const float largest = math_row_max(z, v), capped = z[target], slope = math_cap_slope(capped, 1.0f / cap);
    const float sum = math_row_exp_sum(z, v, largest);
    math_row_capped_gradient(z, v, largest, scale / sum, cap);
    z[target] -= scale * slope;
    return log((double)sum) - ((double)capped - (double)largest);
}

/* labels(b, t), `stride` apart; negative: no target */
struct targets {
    const int32_t *labels;
    int64_t stride, t;
};

static int64_t target_of(const struct targets *targets, int64_t row)
{
    return targets->labels[row / targets->t * targets->stride + row % targets->t];
}

/* Computes the share of `rows` in a mean over the minibatch's targets, or over `counted` rows of each part. */
static void loss_of_rows(const struct kernels *kernels, double *loss, float *logits,
                         const struct targets *targets, int64_t counted, int64_t v,
                         struct kernel_loss_rows rows)
{
    struct host_context *context = kernels->context;
    int64_t size = host_blocks(rows.count, HOST_LOSS_PARTIALS);
    int64_t blocks = host_blocks(rows.count, size);
    if (rows.targets > 0) counted = rows.targets;
    const uint32_t parts = rows.targets > 0 ? 1 : rows.parts;
    float scale = 1.0f / ((float)counted * (float)parts);
#pragma omp parallel for schedule(static) num_threads((int)kernels->threads) \
    if (rows.count * v > HOST_SERIAL)
    for (int64_t block = 0; block < blocks; block++) {
        double partial = 0;
        for (int64_t row = block * size; row < host_min((block + 1) * size, rows.count); row++) {
            int64_t target = target_of(targets, rows.first + row);
            assert(target < v);
            if (target >= 0 && rows.cap > 0)
                partial += capped_loss_row(logits + row * v, v, target, scale, rows.cap);
            else if (target >= 0)
                partial += loss_row(logits + row * v, v, target, scale);
            else
                memset(logits + row * v, 0, (size_t)v * sizeof *logits);
        }
        context->loss_partials[block] = partial;
    }
    double total = 0;
    for (int64_t block = 0; block < blocks; block++) total += context->loss_partials[block];
    double mean = total / ((double)counted * parts);
    bool first = rows.part == 0 && rows.first == 0 && !rows.continues;
    *loss = first ? mean : *loss + mean;
}

void host_loss(const struct kernels *kernels, double *loss, float *logits, const int32_t *tokens,
               int64_t token_stride, int64_t b, int64_t t, int64_t v, struct kernel_loss_rows rows)
{
    const struct targets targets = {tokens + 1, token_stride, t};
    loss_of_rows(kernels, loss, logits, &targets, b * t, v, rows);
}

void host_loss_labels(const struct kernels *kernels, double *loss, float *logits,
                      const int32_t *labels, int64_t label_stride, int64_t b, int64_t t,
                      int64_t v, struct kernel_loss_rows rows)
{
    const struct targets targets = {labels, label_stride, t};
    int64_t counted = 0;
    for (int64_t row = 0; row < b * t; row++) counted += target_of(&targets, row) >= 0;
    loss_of_rows(kernels, loss, logits, &targets, counted > 0 ? counted : 1, v, rows);
}
