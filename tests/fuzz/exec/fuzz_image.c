/*
 * The reader of images on any bytes: refused with a message that names the file, or decoded. Its size is then the one
 * that a look at its head finds, and every pixel is brought to a number between 0 and 255.
 */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "exec/images/image_scale.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { SIDE = 5 };
    static const char name[] = "folder/image";
    struct error err = {0};
    struct image head = {0}, image = {0};
    double out[3 * SIDE * SIDE];
    if (image_look(name, data, size, &head, &err) != STATUS_OK || head.width * head.height > 1 << 20) {
        assert(err.status == STATUS_OK || strncmp(err.text, name, strlen(name)) == 0);
        return 0;
    }
    if (image_decode(name, data, size, &image, &err) != STATUS_OK) {
        assert(err.status == STATUS_BAD_INPUT && strncmp(err.text, name, strlen(name)) == 0);
        return 0;
    }
    assert(image.width == head.width && image.height == head.height);
    const enum status status = image_scale(&image, SIDE, 3, out, &err);
    assert(status == STATUS_OK);
    for (int i = 0; i < 3 * SIDE * SIDE; i++) assert(out[i] >= -1e-9 && out[i] <= 255 + 1e-9);
    image_release(&image);
    return 0;
}
