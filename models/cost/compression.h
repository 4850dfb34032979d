/*
 * Compression of the data that a parallel job sends and keeps: fewer bytes, and time to encode and decode them.
 *
 *     "compression": {"boundaries": {"ratio": 10, "encode": "120 GB/s", "decode": "90 GB/s"},
 *                     "gradients": {"ratio": 2, "encode": "400 GB/s", "decode": "400 GB/s"},
 *                     "activations": {"ratio": 4, "encode": "300 GB/s", "decode": "300 GB/s"}}
 *
 * Rates count uncompressed bytes. The compressed size is the size divided by `ratio`, rounded up.
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
 * Codecs run on the devices and take turns with the passes. The effect of compression on the loss of the training is
 * not modelled: a plan gives only the cost of a step.
 *
 * Source: Bian et al., "Does compressing activations help model parallel training?", arXiv 2301.02654: overhead grows
 * with the uncompressed bytes, communication with the compressed bytes.
 */
#ifndef SPILLWAY_MODELS_COST_COMPRESSION_H
#define SPILLWAY_MODELS_COST_COMPRESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/json/json_in.h"

struct json_out;

enum compression_target { COMPRESSED_BOUNDARIES, COMPRESSED_GRADIENTS, COMPRESSED_ACTIVATIONS, COMPRESSED_COUNT };
extern const char *const compressed_names[COMPRESSED_COUNT]; /* "boundaries", "gradients", "activations" */

struct compression {
    double ratio; /* at least 1; 0: no compression */
    double encode_bytes_per_s, decode_bytes_per_s;
    uint64_t from; /* for boundaries: the first block whose input is compressed */
};

static inline bool compression_is_set(const struct compression *compression)
{
    return compression->ratio > 0;
}

/* Return, for `bytes` uncompressed bytes, the bytes sent (all of them without compression) and the time to encode and
 * decode in nanoseconds, rounded (0 without compression). */
uint64_t compression_bytes(const struct compression *compression, uint64_t bytes);
uint64_t compression_encode_ns(const struct compression *compression, uint64_t bytes);
uint64_t compression_decode_ns(const struct compression *compression, uint64_t bytes);

/* Reads the object "compression" into `out`. Entries that the object does not name are untouched. */
MUST_CHECK enum status compression_parse(const struct json_input *in, const json_t *value,
                                         struct compression out[COMPRESSED_COUNT], struct error *err);
/* Reads a text such as "gradients=10:400GB/s,boundaries=4:120GB/s:90GB/s": ratio, encoding rate, decoding rate
 * (default: the encoding rate) and, for boundaries, the first block. Entries that the text does not name are
 * untouched.
 * Errors: STATUS_BAD_INPUT, also for an entry given twice. */
MUST_CHECK enum status compression_parse_text(const char *text, struct compression out[COMPRESSED_COUNT],
                                              struct error *err);
void compression_write(const struct compression of[COMPRESSED_COUNT], struct json_out *out, const char *key);

#endif
