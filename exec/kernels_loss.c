/*
 * Softmax, cross-entropy and the gradient of the mean loss, in place over rows of logits.
 *
 *     loss(r) = log(sum_j exp z(j)) - z(target);   dz(j) = (softmax(z)(j) - [j is target]) / R
 *
 * A row of 50257 logits (196 KiB) comes from memory once: the largest logit is found in a first
 * sweep, and the two that follow (exponentials and their sum; scaling) find the row in the second
 * cache and write it back. 8 R V bytes to and from memory. The mean is summed in double over blocks
 * of rows that R alone decides, so that threads may take blocks in any order.
 *
 * Rows may have no target (words of a masked language model that are not to be guessed): they count
 * for nothing, and R is then the number of those that do.
 *
 * Of a minibatch in several parts each part's mean counts alike; gradient and loss are divided by how
 * many there are, which for one part changes no bit.
 */
#include "exec/kernels_host.h"

#include <assert.h>

#include "exec/kernels_math.h"

/* z(v) becomes scale * (softmax - one at the target); returns the row's loss. */
CLONES static double loss_row(float *z, int64_t v, int64_t target, float scale)
{
    float largest = math_row_max(z, v);
    double at_target = (double)z[target] - (double)largest;
    float lanes[HOST_LANES] = {0};
    int64_t i = 0;
    for (; i + HOST_LANES <= v; i += HOST_LANES)
        for (int l = 0; l < HOST_LANES; l++) {
            float weight = math_exp(z[i + l] - largest);
            z[i + l] = weight;
            lanes[l] += weight;
        }
    for (int l = 0; l < v - i; l++) {
        float weight = math_exp(z[i + l] - largest);
        z[i + l] = weight;
        lanes[l] += weight;
    }
    float sum = math_fold(lanes);

    float factor = scale / sum;
    for (int64_t j = 0; j < v; j++) z[j] *= factor;
    z[target] -= scale;
    return log((double)sum) - at_target;
}

/* The target of row `row`: labels(b, t), `stride` apart. Negative: the row has none. */
struct targets {
    const int32_t *labels;
    int64_t stride, t;
};

static int64_t target_of(const struct targets *targets, int64_t row)
{
    return targets->labels[row / targets->t * targets->stride + row % targets->t];
}

/* The mean over `counted` rows, divided by `parts`. */
static double all_rows(const struct kernels *kernels, float *logits, const struct targets *targets,
                       int64_t rows, int64_t counted, int64_t v, uint32_t parts)
{
    struct host_context *context = kernels->context;
    int64_t size = host_blocks(rows, HOST_LOSS_PARTIALS), blocks = host_blocks(rows, size);
    float scale = 1.0f / ((float)counted * (float)parts);
#pragma omp parallel for schedule(static) num_threads((int)kernels->threads) \
    if (rows * v > HOST_SERIAL)
    for (int64_t block = 0; block < blocks; block++) {
        double partial = 0;
        for (int64_t row = block * size; row < host_min((block + 1) * size, rows); row++) {
            int64_t target = target_of(targets, row);
            assert(target < v);
            if (target >= 0)
                partial += loss_row(logits + row * v, v, target, scale);
            else
                memset(logits + row * v, 0, (size_t)v * sizeof *logits);
        }
        context->loss_partials[block] = partial;
    }
    double total = 0;
    for (int64_t block = 0; block < blocks; block++) total += context->loss_partials[block];
    return total / ((double)counted * parts);
}

void host_loss(const struct kernels *kernels, double *loss, float *logits, const int32_t *tokens,
               int64_t token_stride, int64_t b, int64_t t, int64_t v, uint32_t part,
               uint32_t parts)
{
    const struct targets targets = {tokens + 1, token_stride, t};
    double mean = all_rows(kernels, logits, &targets, b * t, b * t, v, parts);
    *loss = part > 0 ? *loss + mean : mean;
}

void host_loss_labels(const struct kernels *kernels, double *loss, float *logits,
                      const int32_t *labels, int64_t label_stride, int64_t b, int64_t t,
                      int64_t v, uint32_t part, uint32_t parts)
{
    const struct targets targets = {labels, label_stride, t};
    int64_t counted = 0;
    for (int64_t row = 0; row < b * t; row++) counted += target_of(&targets, row) >= 0;
    double mean =
        all_rows(kernels, logits, &targets, b * t, counted > 0 ? counted : 1, v, parts);
    *loss = part > 0 ? *loss + mean : mean;
}
