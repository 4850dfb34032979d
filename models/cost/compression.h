/*
 * Compression of what a job that is spread over devices sends and keeps: fewer bytes, and time to encode and decode them.
 *
 *     "compression": {"boundaries": {"ratio": 10, "encode": "120 GB/s", "decode": "90 GB/s"},
 *                     "gradients": {"ratio": 2, "encode": "400 GB/s", "decode": "400 GB/s"},
 *                     "activations": {"ratio": 4, "encode": "300 GB/s", "decode": "300 GB/s"}}
 *
 * Rates are of the bytes as they were before. What is sent has their `ratio`-th part, rounded up.
 *
 *   boundaries   what one stage passes to the next, and the gradient that comes back. It lives encoded, on both
 *                stages: who makes it encodes it, and every pass that reads it decodes it, a boundary therefore twice,
 *                forward and back. Between chunks on the same stage nothing is encoded. With "from": 12 those alone that
 *                enter the block (of a profile, the layer) of that number, from 0, or one behind it
 *   gradients    of data-parallel ranks (`zero` 0 or 1): each rank encodes its own sum behind the last microbatch,
 *                ranks add up what is encoded, and the update decodes the sum, or its share. That fits codes that are
 *                linear (low-rank factors, auto-encoders); others would decode between the steps of a reduction
 *
 *   activations  what a run of layers keeps between its passes, boundaries apart: the forward pass encodes it, the one
 *                back decodes it into its workspace. It lives encoded, on the device and, where it is swapped
 *                (models/job/parallel.h), on the way to the host, there and back
 *
 * Codecs run on the devices, in turn with the passes. What compression does to the training, its loss, is not
 * modelled: a plan says what a step costs.
 *
 * Source: costs as in Bian et al., "Does compressing activations help model parallel training?", arXiv 2301.02654: an
 * overhead that grows with the bytes before, and communication with those behind.
 */
#ifndef SPILLWAY_MODELS_COMPRESSION_H
#define SPILLWAY_MODELS_COMPRESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/json/json_in.h"

struct json_out;

enum compressed { COMPRESSED_BOUNDARIES, COMPRESSED_GRADIENTS, COMPRESSED_ACTIVATIONS, COMPRESSED_COUNT };
extern const char *const compressed_names[COMPRESSED_COUNT]; /* "boundaries", "gradients", "activations" */

struct compression {
    double ratio; /* at least 1; 0: none */
    double encode_bytes_per_s, decode_bytes_per_s;
    uint64_t from; /* of boundaries: the first block that has what enters it compressed */
};

static inline bool compression_is_set(const struct compression *compression)
{
    return compression->ratio > 0;
}

/* Of so many bytes: what is sent, all of them without compression; nanoseconds, rounded, 0 without. */
uint64_t compression_bytes(const struct compression *compression, uint64_t bytes);
uint64_t compression_encode_ns(const struct compression *compression, uint64_t bytes);
uint64_t compression_decode_ns(const struct compression *compression, uint64_t bytes);

/* From the object "compression"; what it does not name keeps what out has. */
MUST_CHECK enum status compression_parse(const struct json_input *in, const json_t *value,
                                         struct compression out[COMPRESSED_COUNT], struct error *err);
/* From "gradients=10:400GB/s,boundaries=4:120GB/s:90GB/s": ratio, rate of encoding, and of decoding, the same unless given,
 * of boundaries from the first block on; what it does not name keeps what out has. Errors: STATUS_BAD_INPUT, also for what
 * is said twice. */
MUST_CHECK enum status compression_parse_text(const char *text, struct compression out[COMPRESSED_COUNT],
                                              struct error *err);
void compression_write(const struct compression of[COMPRESSED_COUNT], struct json_out *out, const char *key);

#endif
