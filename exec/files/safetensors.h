/*
 * Tensors in a file, by name: the safetensors format.
 *
 *     8 bytes   length of the header, little-endian
 *     header    JSON: {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...,
 *               "__metadata__": {"key": "value"}}, padded with spaces
 *     data      the tensors, row-major, little-endian, without gaps; offsets count from here
 *
 * Input is hostile: every range is checked against the file, every product of shapes for overflow,
 * and the tensors must cover the data exactly.
 * Source: huggingface/safetensors, README, "Format".
 */
#ifndef SPILLWAY_EXEC_FILES_SAFETENSORS_H
#define SPILLWAY_EXEC_FILES_SAFETENSORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum safetensors_type { SAFETENSORS_F32, SAFETENSORS_F16, SAFETENSORS_BF16, SAFETENSORS_OTHER };

enum {
    SAFETENSORS_HEADER_MAX = 100 * 1000 * 1000, /* the format's own limit */
    SAFETENSORS_RANK_MAX = 8                    /* networks need 4 */
};

struct safetensors_tensor {
    const char *name;
    uint32_t type;             /* enum safetensors_type */
    const char *type_name;     /* such as "U32"; NULL, when writing: "F32" */
    uint32_t rank;
    uint64_t shape[SAFETENSORS_RANK_MAX];
    uint64_t elements;         /* product of shape */
    const unsigned char *data; /* not aligned; NULL after safetensors_parse_head() */
    uint64_t bytes;
    uint64_t offset;           /* from the beginning of the file */
};

struct safetensors_pair {
    const char *key, *value;
};

struct safetensors; /* opaque */

/* Opens a file. The caller closes it with safetensors_close(). Errors: STATUS_IO, STATUS_BAD_INPUT ("name: fault"). */
MUST_CHECK enum status safetensors_open(const char *path, struct safetensors **out,
                                        struct error *err);

/* Parses a file in memory, which it borrows; `name` is for messages. */
MUST_CHECK enum status safetensors_parse(const char *name, const void *data, uint64_t bytes,
                                         struct safetensors **out, struct error *err);

/* Parses only length (8 bytes) and header; tensors have no data then. safetensors_head_bytes()
 * computes their size from the first 8 bytes, or returns false when it exceeds `file_bytes` or
 * the format's limit. */
enum { SAFETENSORS_LENGTH_BYTES = 8 };
bool safetensors_head_bytes(const void *first, uint64_t file_bytes, uint64_t *out);
MUST_CHECK enum status safetensors_parse_head(const char *name, const void *head,
                                              uint64_t head_bytes, uint64_t file_bytes,
                                              struct safetensors **out, struct error *err);
void safetensors_close(struct safetensors *file); /* NULL does nothing */

/* Returns NULL if it does not exist. Borrowed from `file`. */
const char *safetensors_metadata(const struct safetensors *file, const char *key);

/* Return tensors in the order of their data, borrowed. */
size_t safetensors_count(const struct safetensors *file);
const struct safetensors_tensor *safetensors_at(const struct safetensors *file, size_t index);

/* Returns NULL if there is none. Cost: a hash lookup. */
const struct safetensors_tensor *safetensors_find(const struct safetensors *file,
                                                  const char *name);

/* Writes a shape as "2, 3" for messages, cut if it has no room. Returns `text`. */
enum { SAFETENSORS_SHAPE_BYTES = 96 };
const char *safetensors_shape_text(const uint64_t *shape, uint32_t rank, char text[SAFETENSORS_SHAPE_BYTES]);

/* Converts F32, F16 or BF16. False: a number is not finite. */
bool safetensors_floats(const struct safetensors_tensor *tensor, float *out);

/* Writes F32 tensors in this order, with {"format": "pt"} as metadata, from name, rank, shape
 * and data of each; sets offset and bytes. Atomic. Errors: STATUS_IO. */
MUST_CHECK enum status safetensors_write(const char *path,
                                         struct safetensors_tensor *tensors, size_t count,
                                         struct error *err);

/* Does the same with one more pair of metadata; NULL: none. */
MUST_CHECK enum status safetensors_write_with(const char *path, struct safetensors_tensor *tensors, size_t count,
                                              const struct safetensors_pair *more, struct error *err);

/* Makes length, header and padding, for any types and metadata, from name, type_name, rank and
 * shape of each tensor; sets `offset` and `bytes`. The caller frees *out with free(). */
MUST_CHECK enum status safetensors_head(struct safetensors_tensor *tensors, size_t count,
                                        const struct safetensors_pair *metadata,
                                        size_t metadata_count, char **out, size_t *length,
                                        struct error *err);

#endif
