/*
 * Compression of data that a parallel job sends and keeps.
 *
 *     "compression": {"boundaries": {"ratio": 10, "encode": "120 GB/s", "decode": "90 GB/s"},
 *                     "gradients": {"ratio": 2, "encode": "400 GB/s", "decode": "400 GB/s"},
 *                     "activations": {"ratio": 4, "encode": "300 GB/s", "decode": "300 GB/s"}}
 *
 * Rates count uncompressed bytes. The compressed size is rounded up.
 *
 *   boundaries   activations that one stage passes to the next, and their gradients. They are stored encoded on both
 *                stages. The producer encodes; every pass that reads a boundary decodes it, so twice per boundary:
 *                forward and backward. Boundaries between chunks of the same stage are not encoded. With "from": 12,
 *                only boundaries that enter block 12 (for a profile: layer 12), counted from 0, or a later block are
 *                encoded
 *   gradients    gradients of data-parallel ranks (`zero` 0 or 1). Each rank encodes its own sum after the last
 *                microbatch, ranks add up encoded data, and the update decodes the sum or its share. This fits linear
 *                codes (low-rank factors, auto-encoders); other codes would have to decode between the steps of a
 *                reduction
 *
 *   activations  activations that a layer range keeps between its passes, except boundaries. The forward pass encodes
 *                them, the backward pass decodes them into its workspace. They are encoded on the device and, if they
 *                are swapped (models/job/parallel.h), also on the way to the host and back
 *
 * Codecs take turns with the passes on the devices. The effect on the training's loss is not modelled.
 *
 * The executor has a code for two ratios (exec/kernels/kernels_code.h), with the same sizes as here, but that it leaves
 * statistics of norms and attention, and routes of experts, as they are:
 *
 *     2      bf16, rounded to nearest
 *     3.75   blocks of 15 numbers: a power of two, and 8 bits for each
 *
 * Source: Bian et al., "Does compressing activations help model parallel training?", arXiv 2301.02654.
 */
#ifndef SPILLWAY_MODELS_COST_COMPRESSION_H
#define SPILLWAY_MODELS_COST_COMPRESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/json/json_in.h"

struct json_out;

/* How the executor encodes numbers. */
enum compression_code { COMPRESSION_PLAIN, COMPRESSION_BF16, COMPRESSION_INT8 };
enum { COMPRESSION_INT8_BLOCK = 15 }; /* numbers */

enum compression_target { COMPRESSION_BOUNDARIES, COMPRESSION_GRADIENTS, COMPRESSION_ACTIVATIONS, COMPRESSION_COUNT };
extern const char *const compression_names[COMPRESSION_COUNT]; /* "boundaries", "gradients", "activations" */

struct compression {
    double ratio; /* at least 1; 0: no compression */
    double encode_bytes_per_s, decode_bytes_per_s;
    uint64_t from; /* for boundaries: the first compressed block */
};

static inline bool compression_is_set(const struct compression *compression)
{
    return compression->ratio > 0;
}

/* Return the bytes sent for `bytes` uncompressed ones, and the nanoseconds to encode and decode, rounded (0 without
 * compression). */
uint64_t compression_bytes(const struct compression *compression, uint64_t bytes);
uint64_t compression_encode_ns(const struct compression *compression, uint64_t bytes);
uint64_t compression_decode_ns(const struct compression *compression, uint64_t bytes);

/* Returns the code of a ratio that the executor has, or COMPRESSION_PLAIN. */
enum compression_code compression_code(const struct compression *compression);

/* Returns the bytes of encoded fp32 numbers. */
uint64_t compression_code_bytes(enum compression_code code, uint64_t numbers);

/* Reads the object "compression"; entries that it does not name are untouched. */
MUST_CHECK enum status compression_parse(const struct json_input *in, const json_t *value,
                                         struct compression out[COMPRESSION_COUNT], struct error *err);
/* Reads "gradients=10:400GB/s,boundaries=4:120GB/s:90GB/s": ratio, encoding rate, decoding rate (default: the
 * encoding rate) and, for boundaries, the first block. Other entries are untouched.
 * Errors: STATUS_BAD_INPUT, also for an entry given twice. */
MUST_CHECK enum status compression_parse_text(const char *text, struct compression out[COMPRESSION_COUNT],
                                              struct error *err);
void compression_write(const struct compression of[COMPRESSION_COUNT], struct json_out *out, const char *key);

#endif
