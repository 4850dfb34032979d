/*
 * Tensors in a file, by name: the safetensors format.
 *
 *     8 bytes   length of the header, little-endian
 *     header    JSON: {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...,
 *               "__metadata__": {"key": "value"}}, padded with spaces
 *     data      the tensors, row-major, little-endian, without gaps; offsets count from here
 *
 * What is read is taken for hostile: every range is checked against the file, every product of
 * shapes for overflow, and the tensors must cover the data exactly, without overlaps or holes.
 * Source: huggingface/safetensors, README, "Format".
 */
#ifndef SPILLWAY_EXEC_SAFETENSORS_H
#define SPILLWAY_EXEC_SAFETENSORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum safetensors_type { TYPE_F32, TYPE_F16, TYPE_BF16, TYPE_OTHER };

enum {
    SAFETENSORS_HEADER_MAX = 100 * 1000 * 1000, /* the format's own limit */
    SAFETENSORS_RANK_MAX = 8                    /* networks have 4 at most */
};

struct safetensors_tensor {
    const char *name;
    uint32_t type; /* enum safetensors_type */
    uint32_t rank;
    uint64_t shape[SAFETENSORS_RANK_MAX];
    uint64_t elements;         /* product of shape */
    const unsigned char *data; /* not aligned */
    uint64_t bytes;
};

struct safetensors; /* opaque */

/* Map a file and check it. The caller closes it with safetensors_close().
 * Errors: STATUS_IO, STATUS_NO_MEMORY, STATUS_BAD_INPUT ("name: what is wrong"). */
MUST_CHECK enum status safetensors_open(const char *path, struct safetensors **out,
                                        struct error *err);

/* The same from memory, which is borrowed; `name` stands where the file name would in messages. */
MUST_CHECK enum status safetensors_parse(const char *name, const void *data, uint64_t bytes,
                                         struct safetensors **out, struct error *err);
void safetensors_close(struct safetensors *file); /* NULL is fine */

/* Tensors sorted by where their data lie; borrowed from `file`. */
size_t safetensors_count(const struct safetensors *file);
const struct safetensors_tensor *safetensors_at(const struct safetensors *file, size_t index);

/* NULL when there is none. Cost: a hash lookup. */
const struct safetensors_tensor *safetensors_find(const struct safetensors *file,
                                                  const char *name);

/* Numbers of an F32, F16 or BF16 tensor as floats. False when one is not finite. */
bool safetensors_floats(const struct safetensors_tensor *tensor, float *out);

/* Write F32 tensors in this order, with {"format": "pt"} as metadata. Of a tensor, name, rank, shape
 * and data are read. Atomic. Errors: STATUS_IO, STATUS_NO_MEMORY. */
MUST_CHECK enum status safetensors_write(const char *path,
                                         const struct safetensors_tensor *tensors, size_t count,
                                         struct error *err);

#endif
