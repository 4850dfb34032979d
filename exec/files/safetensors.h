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
    uint32_t type;             /* enum safetensors_type */
    const char *type_name;     /* the format's, such as "U32"; NULL, when writing, is "F32" */
    uint32_t rank;
    uint64_t shape[SAFETENSORS_RANK_MAX];
    uint64_t elements;         /* product of shape */
    const unsigned char *data; /* not aligned; NULL after safetensors_parse_head() */
    uint64_t bytes;
    uint64_t offset;           /* of the data, from the beginning of the file */
};

struct safetensors_pair {
    const char *key, *value;
};

struct safetensors; /* opaque */

/* Map a file and check it. The caller closes it with safetensors_close().
 * Errors: STATUS_IO, STATUS_NO_MEMORY, STATUS_BAD_INPUT ("name: what is wrong"). */
MUST_CHECK enum status safetensors_open(const char *path, struct safetensors **out,
                                        struct error *err);

/* The same from memory, which is borrowed; `name` stands where the file name would in messages. */
MUST_CHECK enum status safetensors_parse(const char *name, const void *data, uint64_t bytes,
                                         struct safetensors **out, struct error *err);

/* The same when only the file's first bytes are in memory: its length (8 bytes) and its header.
 * safetensors_head_bytes() says from the first 8 how many that is; false when it is more than
 * `file_bytes` or the format allows. Tensors have no data then. */
enum { SAFETENSORS_LENGTH_BYTES = 8 };
bool safetensors_head_bytes(const void *first, uint64_t file_bytes, uint64_t *out);
MUST_CHECK enum status safetensors_parse_head(const char *name, const void *head,
                                              uint64_t head_bytes, uint64_t file_bytes,
                                              struct safetensors **out, struct error *err);
void safetensors_close(struct safetensors *file); /* NULL is fine */

/* A value of the metadata; NULL when it is not there. Borrowed from `file`. */
const char *safetensors_metadata(const struct safetensors *file, const char *key);

/* Tensors sorted by where their data lie; borrowed from `file`. */
size_t safetensors_count(const struct safetensors *file);
const struct safetensors_tensor *safetensors_at(const struct safetensors *file, size_t index);

/* NULL when there is none. Cost: a hash lookup. */
const struct safetensors_tensor *safetensors_find(const struct safetensors *file,
                                                  const char *name);

/* Numbers of an F32, F16 or BF16 tensor as floats. False when one is not finite. */
bool safetensors_floats(const struct safetensors_tensor *tensor, float *out);

/* Write F32 tensors in this order, with {"format": "pt"} as metadata. Of a tensor, name, rank, shape
 * and data are read, offset and bytes are set. Atomic. Errors: STATUS_IO, STATUS_NO_MEMORY. */
MUST_CHECK enum status safetensors_write(const char *path,
                                         struct safetensors_tensor *tensors, size_t count,
                                         struct error *err);

/* What stands in front of the data of such a file, with any types and metadata: length, header and
 * padding. Of a tensor, name, type_name, rank and shape are read, and `offset` and `bytes` are set.
 * The caller frees *out with free(). Errors: STATUS_NO_MEMORY. */
MUST_CHECK enum status safetensors_head(struct safetensors_tensor *tensors, size_t count,
                                        const struct safetensors_pair *metadata,
                                        size_t metadata_count, char **out, size_t *length,
                                        struct error *err);

#endif
