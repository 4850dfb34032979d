/*
 * A tap (row, column) of the kernel meets the image at a rectangle of the result's pixels:
 *
 *     result pixel o reads image pixel o * stride + tap - padding, along each side
 *
 *     forward   y     += x  at the tap's pixels (pixels, in)   times w of the tap (out, in)^T
 *     input     dx    += dy at the tap's pixels (pixels, out)  times w of the tap (out, in)
 *     weight    dw_tap = dy at the tap's pixels (pixels, out)^T times x (pixels, in)
 *
 * Pixels of all samples are one matrix. Where the tap meets all pixels, they are read and written in place; else they
 * are gathered, and added.
 *
 * On small images many taps lie in the padding (models/kernel/convolution_taps.h). The library multiplies them, and
 * makes the weight's gradient of such images sample by sample. Milliseconds of one core (AMD EPYC, AVX2), least of
 * five, 32 samples, 512 channels in and out:
 *
 *                 1 x 1                     2 x 2                     4 x 4
 *                 library   products        library   products        library   products
 *     forward          6        1.3              18         12             49         33
 *     input            3        1.3              12         14             56         43
 *     weight          70        4.4              62         10            106         49
 *
 * From 8 x 8 pixels on both are equally fast, on larger images the library is faster.
 */
#include "exec/kernels/kernels_convolution_taps.h"

#include <omp.h>

#include "exec/kernels/kernels_host.h"
#include "models/kernel/convolution_taps.h"

static struct convolution_side side_of(const struct kernel_convolution *c)
{
    return (struct convolution_side){c->side_in, c->side_out, c->kernel, c->stride, c->padding};
}

/* A rectangle of pixels of images of side x side with c channels: every step-th pixel. */
struct taps_area {
    int64_t b, side, c, row, column, rows, columns, step;
};

static struct taps_area area_of_result(const struct kernel_convolution *c, struct convolution_met row,
                                       struct convolution_met column)
{
    return (struct taps_area){c->b, c->side_out, c->out, row.out, column.out, row.count, column.count, 1};
}

static struct taps_area area_of_image(const struct kernel_convolution *c, struct convolution_met row,
                                      struct convolution_met column)
{
    return (struct taps_area){c->b, c->side_in, c->in, row.in, column.in, row.count, column.count, c->stride};
}

static int64_t pixels_of(const struct taps_area *area)
{
    return area->rows * area->columns;
}

static bool is_whole(const struct taps_area *area)
{
    return pixels_of(area) == area->side * area->side;
}

static int64_t pixel_at(const struct taps_area *area, int64_t i)
{
    const int64_t sample = i / pixels_of(area), pixel = i % pixels_of(area);
    const int64_t row = area->row + pixel / area->columns * area->step;
    const int64_t column = area->column + pixel % area->columns * area->step;
    return ((sample * area->side + row) * area->side + column) * area->c;
}

/* Returns the pixels as one matrix: themselves, or a copy at `to`. */
static const float *gather(const struct taps_area *area, const float *images, float *to)
{
    const int64_t rows = area->b * pixels_of(area);
    if (is_whole(area)) return images;
#pragma omp parallel for schedule(static) if (rows * area->c > HOST_SERIAL)
    for (int64_t i = 0; i < rows; i++)
        memcpy(to + i * area->c, images + pixel_at(area, i), (size_t)area->c * sizeof *to);
    return to;
}

static void add_to_pixels(const struct taps_area *area, float *images, const float *from)
{
    const int64_t rows = area->b * pixels_of(area);
#pragma omp parallel for schedule(static) if (rows * area->c > HOST_SERIAL)
    for (int64_t i = 0; i < rows; i++) {
        float *const at = images + pixel_at(area, i);
        host_add_row(at, at, from + i * area->c, area->c);
    }
}

/* The weight is (out, in, kernel, kernel); a tap's is (out, in). */
static void take_tap(const struct kernel_convolution *c, const float *w, int64_t tap, float *to)
{
    const int64_t taps = c->kernel * c->kernel;
#pragma omp parallel for schedule(static) if (c->out * c->in > HOST_SERIAL)
    for (int64_t o = 0; o < c->out; o++)
        for (int64_t i = o * c->in; i < (o + 1) * c->in; i++) to[i] = w[i * taps + tap];
}

static void put_taps(const struct kernel_convolution *c, float *w, const float *from)
{
    const int64_t taps = c->kernel * c->kernel;
#pragma omp parallel for schedule(static) if (taps * c->out * c->in > HOST_SERIAL)
    for (int64_t o = 0; o < c->out; o++)
        for (int64_t tap = 0; tap < taps; tap++)
            for (int64_t i = o * c->in; i < (o + 1) * c->in; i++) w[i * taps + tap] = from[tap * c->out * c->in + i];
}

static void clear(float *at, int64_t numbers)
{
    memset(at, 0, (size_t)numbers * sizeof *at);
}

/* --- passes ----------------------------------------------------------------------------------- */

/* Scratch: gathered pixels of the image and of the result, and a tap's weight, or the gradients of all. */
struct taps_scratch {
    float *image, *result, *weight;
};

static struct taps_scratch scratch_of(const struct kernel_convolution *c, float *scratch)
{
    const int64_t pixels = c->b * c->side_out * c->side_out;
    return (struct taps_scratch){scratch, scratch + pixels * c->in, scratch + pixels * (c->in + c->out)};
}

/* to(rows of `to`) += from(rows, from->c) w, the tap's: from the image to the result, or back. */
static void add_product(const struct taps_area *from, const float *x, float *gathered, const struct taps_area *to,
                        float *y, float *made, const float *w, bool back)
{
    const bool whole = is_whole(to);
    host_multiply(&(struct host_product){.transpose_b = !back,
                                         .m = from->b * pixels_of(from),
                                         .n = to->c,
                                         .k = from->c,
                                         .alpha = 1.0f,
                                         .beta = whole ? 1.0f : 0.0f,
                                         .a = gather(from, x, gathered),
                                         .row_a = from->c,
                                         .b = w,
                                         .row_b = back ? to->c : from->c,
                                         .c = whole ? y : made,
                                         .row_c = to->c});
    if (!whole) add_to_pixels(to, y, made);
}

static void multiply_weight(const struct taps_area *image, const struct taps_area *result, float *dw, const float *x,
                            const float *dy, const struct taps_scratch *s)
{
    host_multiply(&(struct host_product){.transpose_a = true,
                                         .m = result->c,
                                         .n = image->c,
                                         .k = image->b * pixels_of(image),
                                         .alpha = 1.0f,
                                         .a = gather(result, dy, s->result),
                                         .row_a = result->c,
                                         .b = gather(image, x, s->image),
                                         .row_b = image->c,
                                         .c = dw,
                                         .row_c = image->c});
}

static void compute_tap(const struct kernel_convolution *c, const struct kernels_convolution_operands *o, int64_t tap,
                        const struct taps_scratch *s)
{
    const struct convolution_side side = side_of(c);
    const struct convolution_met row = convolution_met(&side, tap / c->kernel);
    const struct convolution_met column = convolution_met(&side, tap % c->kernel);
    const struct taps_area image = area_of_image(c, row, column), result = area_of_result(c, row, column);
    const int64_t each = c->out * c->in;
    if (o->pass == CONVOLUTION_WEIGHT) {
        if (pixels_of(&result) > 0) multiply_weight(&image, &result, s->weight + tap * each, o->x, o->y, s);
        else clear(s->weight + tap * each, each);
        return;
    }
    if (pixels_of(&result) == 0) return;
    take_tap(c, o->w, tap, s->weight);
    float *written;
    *(const float **)&written = o->pass == CONVOLUTION_FORWARD ? o->y : o->x;
    if (o->pass == CONVOLUTION_FORWARD)
        add_product(&image, o->x, s->image, &result, written, s->result, s->weight, false);
    else
        add_product(&result, o->y, s->result, &image, written, s->image, s->weight, true);
}

void kernels_convolution_taps_compute(const struct kernel_convolution *c, const struct kernels_convolution_operands *o,
                                      float *scratch)
{
    const struct taps_scratch s = scratch_of(c, scratch);
    float *written;
    *(const float **)&written = o->pass == CONVOLUTION_FORWARD ? o->y : o->pass == CONVOLUTION_INPUT ? o->x : o->w;
    if (o->pass == CONVOLUTION_FORWARD) clear(written, c->b * c->side_out * c->side_out * c->out);
    if (o->pass == CONVOLUTION_INPUT) clear(written, c->b * c->side_in * c->side_in * c->in);
    for (int64_t tap = 0; tap < c->kernel * c->kernel; tap++) compute_tap(c, o, tap, &s);
    if (o->pass == CONVOLUTION_WEIGHT) put_taps(c, written, s.weight);
}

/* --- choice ------------------------------------------------------------------------------------ */

uint64_t kernels_convolution_taps_scratch(const struct kernel_convolution *c, enum kernels_convolution_pass pass)
{
    const int64_t weights = c->out * c->in * (pass == CONVOLUTION_WEIGHT ? c->kernel * c->kernel : 1);
    return (uint64_t)(c->b * c->side_out * c->side_out * (c->in + c->out) + weights);
}

bool kernels_convolution_taps_pay(const struct kernel_convolution *c)
{
    const struct convolution_side side = side_of(c);
    return c->groups == 1 && convolution_is_padded(&side);
}
