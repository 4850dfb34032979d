/*
 * Image files: PNG by libpng, JPEG by libjpeg-turbo, told apart by their first bytes.
 *
 * Pixels become red, green and blue of 8 bits: gray is all three, transparency is left out, 16 bits are rounded to 8.
 * Colour profiles are ignored. JPEG files in CMYK are refused.
 */
#ifndef SPILLWAY_EXEC_IMAGES_IMAGE_FILE_H
#define SPILLWAY_EXEC_IMAGES_IMAGE_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

#define IMAGE_PIXELS_MAX (UINT64_C(1) << 26) /* of a file: 192 MiB of colours */

struct image {
    uint64_t width, height;
    unsigned char *pixels; /* (height, width, 3); image_release() frees it */
};

/* Decodes bytes of a file. Errors: STATUS_BAD_INPUT for a file that is neither, is cut short or broken, or has more
 * pixels than IMAGE_PIXELS_MAX; STATUS_NO_MEMORY. Messages begin with `name`. Thread-safe. */
MUST_CHECK enum status image_decode(const char *name, const unsigned char *bytes, uint64_t count, struct image *out,
                                    struct error *err);

/* Reads the size only; pixels are NULL. Errors: as above. */
MUST_CHECK enum status image_look(const char *name, const unsigned char *bytes, uint64_t count, struct image *out,
                                  struct error *err);

void image_release(struct image *image); /* an empty one is fine */

#endif
