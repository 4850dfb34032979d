/*
 * Rows first, of all rows that the square needs, then columns. A result is the mean of the source's pixels, weighted by
 * a triangle around its centre:
 *
 *     centre (i + 1/2) scale,  weight of source pixel j  1 - |j + 1/2 - centre| / max(scale, 1), if that is positive
 */
#include "exec/images/image_scale.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/extreme.h"

enum { COLOURS = 3 };

/* One side of an image, and of the square in it. */
struct scaled_side {
    uint64_t from, to, first; /* pixels before and after scaling; the first that is kept */
};

static struct scaled_side side_of(uint64_t from, uint64_t shorter, uint64_t side)
{
    const uint64_t to = side * from / shorter, rest = to - side;
    return (struct scaled_side){from, to, rest / 2 + (rest % 4 == 3)};
}

/* The source's pixels [begin, end) of a result, and their weights. */
struct taps {
    uint64_t begin, end;
    double centre, reach;
};

static struct taps taps_of(const struct scaled_side *side, uint64_t i)
{
    const double scale = (double)side->from / (double)side->to, reach = fmax(scale, 1);
    const double centre = ((double)(side->first + i) + 0.5) * scale;
    const double begin = floor(fmax(centre - reach, 0)), end = ceil(fmin(centre + reach, (double)side->from));
    return (struct taps){(uint64_t)begin, (uint64_t)end, centre, reach};
}

static double weight_of(const struct taps *taps, uint64_t j)
{
    return fmax(1 - fabs((double)j + 0.5 - taps->centre) / taps->reach, 0);
}

/* Returns the sum of weights. */
static double weight_of_all(const struct taps *taps)
{
    double sum = 0;
    for (uint64_t j = taps->begin; j < taps->end; j++) sum += weight_of(taps, j);
    return sum;
}

/* rows(height, side, COLOURS) */
static void scale_rows(const struct image *image, const struct scaled_side *across, uint64_t side, double *rows)
{
    for (uint64_t i = 0; i < side; i++) {
        const struct taps taps = taps_of(across, i);
        const double all = weight_of_all(&taps);
        for (uint64_t row = 0; row < image->height; row++) {
            double sums[COLOURS] = {0};
            for (uint64_t j = taps.begin; j < taps.end; j++) {
                const double weight = weight_of(&taps, j);
                const unsigned char *const pixel = image->pixels + COLOURS * (row * image->width + j);
                for (int c = 0; c < COLOURS; c++) sums[c] += weight * pixel[c];
            }
            for (int c = 0; c < COLOURS; c++) rows[COLOURS * (row * side + i) + (uint64_t)c] = sums[c] / all;
        }
    }
}

static void put_pixel(const double colours[COLOURS], uint64_t channels, uint64_t area, double *out)
{
    if (channels == 1) {
        *out = 0.299 * colours[0] + 0.587 * colours[1] + 0.114 * colours[2];
        return;
    }
    for (uint64_t c = 0; c < COLOURS; c++) out[c * area] = colours[c];
}

static void scale_columns(const double *rows, const struct scaled_side *down, uint64_t side, uint64_t channels,
                          double *out)
{
    for (uint64_t i = 0; i < side; i++) {
        const struct taps taps = taps_of(down, i);
        const double all = weight_of_all(&taps);
        for (uint64_t column = 0; column < side; column++) {
            double sums[COLOURS] = {0};
            for (uint64_t j = taps.begin; j < taps.end; j++) {
                const double weight = weight_of(&taps, j);
                for (uint64_t c = 0; c < COLOURS; c++) sums[c] += weight * rows[COLOURS * (j * side + column) + c];
            }
            for (int c = 0; c < COLOURS; c++) sums[c] /= all;
            put_pixel(sums, channels, side * side, out + i * side + column);
        }
    }
}

enum status image_scale(const struct image *image, uint64_t side, uint64_t channels, double *out, struct error *err)
{
    const uint64_t shorter = min_u64(image->width, image->height), numbers = image->height * side * COLOURS;
    const struct scaled_side across = side_of(image->width, shorter, side);
    const struct scaled_side down = side_of(image->height, shorter, side);
    if (image->width == side && image->height == side) {
        for (uint64_t i = 0; i < side * side; i++) {
            const unsigned char *const pixel = image->pixels + COLOURS * i;
            put_pixel((double[]){pixel[0], pixel[1], pixel[2]}, channels, side * side, out + i);
        }
        return STATUS_OK;
    }
    double *const rows = alloc_zeroed(numbers, sizeof *rows);
    if (!rows) return error_memory(err, "an image", numbers * sizeof *rows);
    scale_rows(image, &across, side, rows);
    scale_columns(rows, &down, side, channels, out);
    free(rows);
    return STATUS_OK;
}
