/*
 * Folders of labelled images, FOLDER/CLASS/NAME.png, .jpg or .jpeg (any case). A class's number is the rank of its
 * folder's name, and images are numbered class by class, by their names, as strings of bytes. Names that begin with a
 * point, and files beside the folders of classes, are left out.
 */
#ifndef SPILLWAY_EXEC_IMAGES_IMAGE_FOLDER_H
#define SPILLWAY_EXEC_IMAGES_IMAGE_FOLDER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct image_folder; /* names; files are opened when they are read */

/* Lists the folder. `known`: the first bytes of files are not looked at. Errors: STATUS_IO; STATUS_BAD_INPUT for
 * another number of classes, an empty class, other files in one, and files that image_look() refuses. */
MUST_CHECK enum status image_folder_open(const char *path, uint64_t classes, bool known, struct image_folder **out,
                                         struct error *err);
void image_folder_close(struct image_folder *folder); /* NULL is fine */

uint64_t image_folder_count(const struct image_folder *folder);
uint32_t image_folder_label(const struct image_folder *folder, uint64_t index);

/* Decodes an image and brings it to the size: out(channels, side, side), from 0 to 255 (exec/images/image_scale.h).
 * Errors: as image_decode(), STATUS_IO. Thread-safe. */
MUST_CHECK enum status image_folder_read(const struct image_folder *folder, uint64_t index, uint64_t side,
                                         uint64_t channels, double *out, struct error *err);

#endif
