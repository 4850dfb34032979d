/* Compares kernels of BERT and ViT with plain ones in double, over odd shapes. */
#include "tests/support/kernels/support_kernels.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"

/* --- loss of labels --------------------------------------------------------------------------- */

/* shape[3]: one of this number of rows has a label; shape[5]: targets of the whole minibatch, 0: as many as here */
static void loss_labels_case(const struct kernels *kernels, const int64_t *shape,
                             struct outputs *out, bool check)
{
    int64_t b = shape[0], t = shape[1], v = shape[2], rows = b * t, stride = 2 * t + 3;
    uint64_t seed = test_kernels_seed();
    float *logits = random_array(rows * v, 1, 8), *before = support_floats(rows * v);
    memcpy(before, logits, (size_t)(rows * v) * sizeof *before);
    int32_t *labels = support_tokens(b * stride);
    memset(labels, 0, (size_t)(b * stride) * sizeof *labels);
    double *loss = support_loss();
    int64_t counted = 0;
    for (int64_t r = 0; r < rows; r++) {
        bool has = random_below(seed ^ 2, (uint64_t)r, (uint64_t)shape[3]) == 0;
        int32_t label = (int32_t)random_below(seed ^ 3, (uint64_t)r, (uint64_t)v);
        labels[r / t * stride + r % t] = has ? label : -1;
        counted += has;
    }
    struct kernel_loss_rows part = {.parts = shape[5] > 0 ? 3 : 1, .targets = shape[5]};
    if (shape[5] > 0) counted = shape[5];
    for (int64_t piece = shape[4]; part.first < rows; part.first += piece) {
        part.count = rows - part.first < piece ? rows - part.first : piece;
        kernels->loss_labels(kernels, loss, logits + part.first * v, labels, stride, b, t, v, part);
    }
    out->loss = *loss;
    output(out, logits, rows * v);
    double total = 0;
    for (int64_t r = 0; check && r < rows; r++) {
        const float *z = before + r * v, *g = logits + r * v;
        int64_t label = labels[r / t * stride + r % t];
        double largest = -INFINITY, sum = 0;
        for (int64_t j = 0; j < v; j++) largest = fmax(largest, (double)z[j]);
        for (int64_t j = 0; j < v; j++) sum += exp((double)z[j] - largest);
        if (label >= 0) total += log(sum) + largest - (double)z[label];
        for (int64_t j = 0; j < v; j++) {
            double want = label < 0 ? 0
                                    : (exp((double)z[j] - largest) / sum - (j == label)) /
                                          (double)counted;
            assert_true(fabs((double)g[j] - want) <= test_kernels_slack() * 1e-6 / (double)(counted > 0 ? counted : 1));
        }
    }
    if (check && counted > 0)
        assert_true(fabs(out->loss - total / (double)counted) <= test_kernels_slack() * 1e-6 * (1 + out->loss));
    if (check && counted == 0) assert_true(out->loss == 0);
}

void test_kernel_loss_labels(void **state)
{
    (void)state;
    static const int64_t sizes[][4] = {{1, 1, 1, 1},    {1, 1, 2, 1},     {3, 5, 97, 3},
                                       {1, 64, 511, 7}, {2, 33, 1024, 2}, {5, 307, 67, 6},
                                       {40, 1, 10, 1},  {2, 3, 5, 1 << 30}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        int64_t rows = sizes[i][0] * sizes[i][1], pieces[] = {rows, (rows + 2) / 3};
        for (int p = 0; p < 4; p++)
            run_case(loss_labels_case, (int64_t[]){sizes[i][0], sizes[i][1], sizes[i][2], sizes[i][3], pieces[p % 2],
                                                   p < 2 ? 0 : 2 * rows + 1});
    }
}

/* With a label in every row the result is the loss of tokens: equal bits. */
void test_kernel_loss_labels_as_tokens(void **state)
{
    (void)state;
    enum { B = 3, T = 17, V = 201 };
    const struct kernels *kernels = test_kernels();
    float *logits = random_array(B * T * V, 4, 3), *other = random_array(B * T * V, 4, 3);
    int32_t *tokens = random_tokens(B * (T + 1), 5, V), *labels = support_tokens(B * T);
    double *loss = support_loss(), *other_loss = support_loss();
    for (int i = 0; i < B * T; i++) labels[i] = tokens[i / T * (T + 1) + i % T + 1];
    const struct kernel_loss_rows rows = {.count = B * T, .parts = 1};
    kernels->loss(kernels, loss, logits, tokens, T + 1, B, T, V, rows);
    kernels->loss_labels(kernels, other_loss, other, labels, T, B, T, V, rows);
    assert_memory_equal(loss, other_loss, sizeof *loss);
    assert_memory_equal(logits, other, sizeof(float) * B * T * V);
}

/* --- rows of images --------------------------------------------------------------------------- */

static void images_case(const struct kernels *kernels, const int64_t *shape, struct outputs *out,
                        bool check)
{
    int64_t b = shape[0], channels = shape[1], patch = shape[2], side = shape[3], c = shape[4];
    int64_t image = patch * side, t = side * side + 1, area = patch * patch;
    int64_t pixels = b * channels * image * image, rows = b * (t - 1);
    float *images = random_array(pixels, 5, 1), *cut = empty_array(pixels);
    float *patches = random_array(rows * c, 6, 1), *token = random_array(c, 7, 1);
    float *positions = random_array(t * c, 8, 1), *x = empty_array(b * t * c);
    float *dx = random_array(b * t * c, 9, 1), *dpatches = empty_array(rows * c);
    float *dtoken = empty_array(c), *dpositions = empty_array(t * c), *first = empty_array(b * c);
    float *dfirst = empty_array(b * t * c);
    kernels->patches(kernels, cut, images, b, channels, image, patch);
    kernels->join_forward(kernels, x, patches, token, positions, b, t, c);
    kernels->join_backward(kernels, dpatches, dtoken, dpositions, dx, b, t, c);
    kernels->first_forward(kernels, first, x, b, t, c);
    kernels->first_backward(kernels, dfirst, first, b, t, c);
    output(out, cut, pixels);
    output(out, x, b * t * c);
    output(out, dpatches, rows * c);
    output(out, dtoken, c);
    output(out, dpositions, t * c);
    output(out, first, b * c);
    output(out, dfirst, b * t * c);
    if (!check) return;

    for (int64_t i = 0; i < pixels; i++) { /* place of each pixel */
        int64_t z = i % image, y = i / image % image, channel = i / (image * image) % channels;
        int64_t place = i / (image * image * channels) * side * side + y / patch * side + z / patch;
        int64_t within = y % patch * patch + z % patch;
        assert_true(cut[(place * channels + channel) * area + within] == images[i]);
    }
    for (int64_t i = 0; i < b * t * c; i++) {
        int64_t sample = i / (t * c), row = i / c % t, j = i % c;
        float from = row == 0 ? token[j] : patches[(sample * (t - 1) + row - 1) * c + j];
        assert_true(x[i] == from + positions[row * c + j]);
        if (row > 0) assert_true(dpatches[(sample * (t - 1) + row - 1) * c + j] == dx[i]);
        if (row == 0) assert_true(first[sample * c + j] == x[i]);
        assert_true(dfirst[i] == (row == 0 ? first[sample * c + j] : 0.0f));
    }
    for (int64_t i = 0; i < t * c; i++) {
        double sum = 0;
        for (int64_t sample = 0; sample < b; sample++) sum += (double)dx[sample * t * c + i];
        assert_true(fabs((double)dpositions[i] - sum) <= 2e-6 * (1 + fabs(sum)) * (double)b);
        if (i < c) assert_true(dtoken[i] == dpositions[i]);
    }
}

void test_kernel_images(void **state)
{
    (void)state;
    static const int64_t sizes[][5] = {
        {1, 1, 1, 1, 1}, {2, 3, 4, 3, 5}, {5, 2, 1, 6, 65}, {70, 3, 8, 4, 48}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) run_case(images_case, sizes[i]);
}
