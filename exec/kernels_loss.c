/*
 * Softmax, cross-entropy and the gradient of the mean loss, in place over rows of logits.
 *
 *     loss(r) = log(sum_j exp z(j)) - z(target);   dz(j) = (softmax(z)(j) - [j is target]) / R
 *
 * A row of 50257 logits (196 KiB) comes from memory once: the largest logit is found in a first
 * sweep, and the two that follow (exponentials and their sum; scaling) find the row in the second
 * cache and write it back. 8 R V bytes to and from memory. The mean is summed in double over blocks
 * of rows that R alone decides, so that threads may take blocks in any order.
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

void host_loss(const struct kernels *kernels, double *loss, float *logits, const int32_t *tokens,
               int64_t token_stride, int64_t b, int64_t t, int64_t v)
{
    struct host_context *context = kernels->context;
    int64_t rows = b * t, size = host_blocks(rows, HOST_LOSS_PARTIALS);
    int64_t blocks = host_blocks(rows, size);
    float scale = 1.0f / (float)rows;
#pragma omp parallel for schedule(static) num_threads((int)kernels->threads) \
    if (rows * v > HOST_SERIAL)
    for (int64_t block = 0; block < blocks; block++) {
        double partial = 0;
        for (int64_t row = block * size; row < host_min((block + 1) * size, rows); row++) {
            int64_t target = tokens[row / t * token_stride + row % t + 1];
            assert(target >= 0 && target < v);
            partial += loss_row(logits + row * v, v, target, scale);
        }
        context->loss_partials[block] = partial;
    }
    double total = 0;
    for (int64_t block = 0; block < blocks; block++) total += context->loss_partials[block];
    *loss = total / (double)rows;
}
