/*
 * Images of the size that a network takes: scaled until the shorter side fits, then the square in the middle, as
 * torchvision's Resize and CenterCrop. Numbers between 0 and 255 are not rounded.
 *
 *     size of the longer side   side * longer / shorter, rounded down
 *     scaling                   bilinear; where it makes smaller, the triangle is as many times as wide (antialiased)
 *     the square's first row    half of the rest, and a half is rounded to the even number
 *
 * An image of the right size is copied.
 */
#ifndef SPILLWAY_EXEC_IMAGES_IMAGE_SCALE_H
#define SPILLWAY_EXEC_IMAGES_IMAGE_SCALE_H

#include "exec/images/image_file.h"

/* Writes out(channels, side, side), channels 1 (gray: 0.299 red + 0.587 green + 0.114 blue, as ITU-R BT.601) or 3.
 * Errors: STATUS_NO_MEMORY. */
MUST_CHECK enum status image_scale(const struct image *image, uint64_t side, uint64_t channels, double *out,
                                   struct error *err);

#endif
