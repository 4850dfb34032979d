#include "models/cost/convolution_model.h"

#include <assert.h>
#include <math.h>

enum { ELEMENT_BYTES = 4, TAPS = 9, KERNELS = 3 };

static const double tile_results = 16, tile_numbers = 36;

/* Images read, results written (or their gradients), and taps. */
struct operands {
    double image, result, taps;
};

static struct operands operands_of(const struct work_item *item)
{
    double m = (double)item->m, n = (double)item->n, k = (double)item->k;
    switch (item->kernel) {
    case KERNEL_CONVOLUTION_3X3_INPUT: return (struct operands){m * n / TAPS, m * k, k * n};
    case KERNEL_CONVOLUTION_3X3_WEIGHT: return (struct operands){k * n / TAPS, m * k, m * n};
    default: return (struct operands){m * k / TAPS, m * n, k * n};
    }
}

/* Counts each number, and twice its transformed size. */
static double moved(double numbers, double grows)
{
    return numbers * (1 + 2 * grows) * ELEMENT_BYTES;
}

static double direct_s(struct kernel_rates rates, const struct work_item *one)
{
    double compute_s = work_item_flops(one) / rates.flops_per_s;
    return rates.launch_s + fmax(compute_s, work_item_bytes(one, ELEMENT_BYTES) / rates.bytes_per_s);
}

static double minimal_s(struct kernel_rates rates, const struct work_item *one)
{
    const struct operands o = operands_of(one);
    double bytes = moved(o.image + o.result, tile_numbers / tile_results) + moved(o.taps, tile_numbers / TAPS);
    return KERNELS * rates.launch_s + work_item_flops(one) / WORK_CONVOLUTION_FEWER / rates.flops_per_s +
           bytes / rates.bytes_per_s;
}

double convolution_model_s(struct kernel_rates rates, const struct work_item *item)
{
    struct work_item one = *item;
    assert(work_is_convolution_3x3(item->kernel));
    one.count = 1;
    return item->count * fmin(direct_s(rates, &one), minimal_s(rates, &one));
}
