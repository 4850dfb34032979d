#include "exec/images/image_file.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <inttypes.h>

#include <jpeglib.h>
#include <png.h>

#include "base/alloc.h"

enum { COLOURS = 3 };

static enum status check_size(const char *name, uint64_t width, uint64_t height, struct error *err)
{
    if (width > 0 && height > 0 && width <= IMAGE_PIXELS_MAX / height) return STATUS_OK;
    return error_set(err, STATUS_BAD_INPUT, "%s: %" PRIu64 " x %" PRIu64 " pixels (expected 1 to %" PRIu64 " in all)",
                     name, width, height, IMAGE_PIXELS_MAX);
}

static enum status allocate(struct image *image, struct error *err)
{
    const uint64_t bytes = image->width * image->height * COLOURS;
    image->pixels = alloc_zeroed(bytes, 1);
    return image->pixels ? STATUS_OK : error_memory(err, "an image", bytes);
}

/* --- PNG ---------------------------------------------------------------------------------------- */

static enum status fail_png(const char *name, const png_image *png, struct error *err)
{
    return error_set(err, STATUS_BAD_INPUT, "%s: not a whole PNG file (%s)", name, png->message);
}

static enum status decode_png(const char *name, const unsigned char *bytes, uint64_t count, bool looks,
                              struct image *out, struct error *err)
{
    png_image png = {.version = PNG_IMAGE_VERSION};
    if (!png_image_begin_read_from_memory(&png, bytes, count)) return fail_png(name, &png, err);
    struct image image = {.width = png.width, .height = png.height};
    enum status status = check_size(name, image.width, image.height, err);
    unsigned char *all = NULL; /* with transparency, which is not blended */
    if (status == STATUS_OK && !looks) {
        png.format = PNG_FORMAT_RGBA;
        png.flags |= PNG_IMAGE_FLAG_16BIT_sRGB;
        all = alloc_zeroed(image.width * image.height, 4);
        status = all ? allocate(&image, err) : error_memory(err, "an image", image.width * image.height * 4);
    }
    if (status == STATUS_OK && !looks && !png_image_finish_read(&png, NULL, all, 0, NULL))
        status = fail_png(name, &png, err);
    for (uint64_t i = 0; status == STATUS_OK && !looks && i < image.width * image.height; i++)
        memcpy(image.pixels + COLOURS * i, all + 4 * i, COLOURS);
    png_image_free(&png);
    free(all);
    if (status == STATUS_OK) *out = image;
    else image_release(&image);
    return status;
}

/* --- JPEG --------------------------------------------------------------------------------------- */

/* The library's errors come back here. */
struct jpeg_reader {
    struct jpeg_error_mgr errors; /* first: the library knows only it */
    struct jpeg_decompress_struct decoder;
    jmp_buf failed;
    char message[JMSG_LENGTH_MAX];
};

static void note_message(j_common_ptr decoder)
{
    struct jpeg_reader *const reader = (struct jpeg_reader *)(void *)decoder->err;
    if (!reader->message[0]) decoder->err->format_message(decoder, reader->message);
}

static void fail_jpeg(j_common_ptr decoder)
{
    note_message(decoder);
    longjmp(((struct jpeg_reader *)(void *)decoder->err)->failed, 1);
}

/* Pixels of a file that is cut short are invented with a warning. */
static void refuse_warnings(j_common_ptr decoder, int level)
{
    if (level < 0) fail_jpeg(decoder);
}

/* Returns false with a message in `reader`. Has no local variables that change, for longjmp(). */
static bool run_jpeg(struct jpeg_reader *reader, const unsigned char *bytes, uint64_t count, bool looks,
                     struct image *out, enum status *status, const char *name, struct error *err)
{
    struct jpeg_decompress_struct *const decoder = &reader->decoder;
    if (setjmp(reader->failed)) return false;
    jpeg_create_decompress(decoder);
    jpeg_mem_src(decoder, bytes, count);
    jpeg_read_header(decoder, TRUE);
    out->width = decoder->image_width;
    out->height = decoder->image_height;
    *status = check_size(name, out->width, out->height, err);
    if (*status == STATUS_OK && (decoder->num_components == 4))
        *status = error_set(err, STATUS_BAD_INPUT, "%s: a JPEG file in CMYK (expected colours or gray)", name);
    if (*status != STATUS_OK || looks) return true;
    *status = allocate(out, err);
    if (*status != STATUS_OK) return true;
    decoder->out_color_space = JCS_RGB;
    decoder->dct_method = JDCT_ISLOW;
    jpeg_start_decompress(decoder);
    while (decoder->output_scanline < decoder->output_height) {
        JSAMPROW row = out->pixels + (size_t)decoder->output_scanline * out->width * COLOURS;
        jpeg_read_scanlines(decoder, &row, 1);
    }
    jpeg_finish_decompress(decoder);
    return true;
}

static enum status decode_jpeg(const char *name, const unsigned char *bytes, uint64_t count, bool looks,
                               struct image *out, struct error *err)
{
    struct jpeg_reader reader;
    struct image image = {0};
    enum status status = STATUS_OK;
    memset(&reader, 0, sizeof reader);
    reader.decoder.err = jpeg_std_error(&reader.errors);
    reader.errors.error_exit = fail_jpeg;
    reader.errors.output_message = note_message;
    reader.errors.emit_message = refuse_warnings;
    if (!run_jpeg(&reader, bytes, count, looks, &image, &status, name, err))
        status = error_set(err, STATUS_BAD_INPUT, "%s: not a whole JPEG file (%s)", name, reader.message);
    jpeg_destroy_decompress(&reader.decoder);
    if (status == STATUS_OK) *out = image;
    else image_release(&image);
    return status;
}

/* --- both --------------------------------------------------------------------------------------- */

static enum status decode(const char *name, const unsigned char *bytes, uint64_t count, bool looks, struct image *out,
                          struct error *err)
{
    static const unsigned char png[] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'}, jpeg[] = {0xff, 0xd8, 0xff};
    if (count >= sizeof png && memcmp(bytes, png, sizeof png) == 0)
        return decode_png(name, bytes, count, looks, out, err);
    if (count >= sizeof jpeg && memcmp(bytes, jpeg, sizeof jpeg) == 0)
        return decode_jpeg(name, bytes, count, looks, out, err);
    return error_set(err, STATUS_BAD_INPUT, "%s: not an image (expected a PNG or JPEG file)", name);
}

enum status image_decode(const char *name, const unsigned char *bytes, uint64_t count, struct image *out,
                         struct error *err)
{
    return decode(name, bytes, count, false, out, err);
}

enum status image_look(const char *name, const unsigned char *bytes, uint64_t count, struct image *out,
                       struct error *err)
{
    return decode(name, bytes, count, true, out, err);
}

void image_release(struct image *image)
{
    free(image->pixels);
    *image = (struct image){0};
}
