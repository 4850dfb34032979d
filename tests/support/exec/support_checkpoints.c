#include "tests/support/exec/support_checkpoints.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "exec/files/safetensors.h"

static struct safetensors *open_step(const char *folder, uint64_t step)
{
    struct safetensors *file;
    struct error err = {0};
    char path[160];
    snprintf(path, sizeof path, "%s/job-0/step-%010u.safetensors", folder, (unsigned)step);
    if (safetensors_open(path, &file, &err)) fail_msg("%s", err.text);
    return file;
}

static double *read_tensor(const struct safetensors *file, const char *name, uint64_t count)
{
    const struct safetensors_tensor *tensor = safetensors_find(file, name);
    float *values = malloc(count * sizeof *values);
    double *out = malloc(count * sizeof *out);
    if (!tensor || !values || !out) fail_msg("no tensor %s", name);
    assert_true(safetensors_floats(tensor, values));
    for (uint64_t i = 0; i < count; i++) out[i] = (double)values[i];
    free(values);
    return out;
}

void support_checkpoints_compare(const struct network *network, const char *wanted, const char *found, uint64_t step,
                                 const char *what)
{
    struct safetensors *files[2] = {open_step(wanted, step), open_step(found, step)};
    for (uint64_t layer = 0; layer < network->layer_count; layer++) {
        struct tensor_spec specs[LAYER_TENSORS_MAX];
        const uint32_t count = network_layer_tensors(network, layer, specs);
        for (uint32_t i = 0; i < count; i++) {
            double *values[2], difference = 0, norm = 0;
            for (int f = 0; f < 2; f++) values[f] = read_tensor(files[f], specs[i].name, specs[i].elements);
            for (uint64_t e = 0; e < specs[i].elements; e++) {
                difference += pow(values[0][e] - values[1][e], 2);
                norm += pow(values[0][e], 2);
            }
            if (!(sqrt(difference) <= 1e-5 * sqrt(norm) + 1e-7))
                fail_msg("%s: %s differs by %g of %g", what, specs[i].name, sqrt(difference), sqrt(norm));
            free(values[0]);
            free(values[1]);
        }
    }
    safetensors_close(files[0]);
    safetensors_close(files[1]);
}

/* Returns the norm of x - y - (a - b); a and b NULL: of x - y. */
static double norm_of(const double *x, const double *y, const double *a, const double *b, uint64_t count)
{
    double sum = 0;
    for (uint64_t i = 0; i < count; i++) sum += pow(x[i] - y[i] - (a ? a[i] - b[i] : 0), 2);
    return sqrt(sum);
}

/* Numbers are kept in 24 bits, and each of some steps rounds once. Gradients that are zero in theory, as those of
 * biases of keys without positions, are rounding errors themselves. */
static double rounding_of(const double *values, uint64_t count, uint64_t steps)
{
    double sum = 0;
    for (uint64_t i = 0; i < count; i++) sum += pow(values[i], 2);
    return (double)steps * sqrt(sum) / (1 << 23) + 1e-9;
}

void support_checkpoints_compare_ways(const struct network *network, const char *wanted, const char *found,
                                      uint64_t first, uint64_t last, double share, const char *what)
{
    const char *const folders[] = {wanted, found};
    struct safetensors *files[2][2];
    for (int f = 0; f < 4; f++) files[f / 2][f % 2] = open_step(folders[f / 2], f % 2 ? last : first);
    for (uint64_t layer = 0; layer < network->layer_count; layer++) {
        struct tensor_spec specs[LAYER_TENSORS_MAX];
        const uint32_t count = network_layer_tensors(network, layer, specs);
        for (uint32_t i = 0; i < count; i++) {
            const uint64_t n = specs[i].elements;
            double *v[2][2];
            for (int f = 0; f < 4; f++) v[f / 2][f % 2] = read_tensor(files[f / 2][f % 2], specs[i].name, n);
            const double way = norm_of(v[0][1], v[0][0], NULL, NULL, n),
                differs = norm_of(v[1][1], v[1][0], v[0][1], v[0][0], n);
            if (!(differs <= share * way + rounding_of(v[0][1], n, last - first)))
                fail_msg("%s: the way of %s differs by %g of %g", what, specs[i].name, differs, way);
            for (int f = 0; f < 4; f++) free(v[f / 2][f % 2]);
        }
    }
    for (int f = 0; f < 4; f++) safetensors_close(files[f / 2][f % 2]);
}
