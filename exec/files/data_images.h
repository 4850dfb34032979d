/* Labelled images: the equivalent of exec/files/data.h. */
#ifndef SPILLWAY_EXEC_FILES_DATA_IMAGES_H
#define SPILLWAY_EXEC_FILES_DATA_IMAGES_H

#include <assert.h>

#include "base/files/mapped_file.h"
#include "base/random.h"
#include "models/job/job.h"

enum { DATA_HELD_OUT_SHARE = 10 }; /* the last tenth of a file */

/* Returns the held-out part of a shared file. */
static inline uint64_t data_held_out(uint64_t count)
{
    return count / DATA_HELD_OUT_SHARE;
}

/* Returns the position of a sample among `places`: random, or for held-out samples at equal distances. */
static inline uint64_t data_place(uint64_t seed, uint64_t sample, uint64_t places,
                                  uint64_t held_out_samples)
{
    if (held_out_samples == 0) return random_below(seed, sample, places);
    assert(sample < held_out_samples);
    return (uint64_t)((unsigned __int128)sample * places / held_out_samples);
}

struct data_images {
    const unsigned char *records; /* borrowed; NULL: random, from the seed */
    uint64_t first, count;        /* 0, 0 if random */
    uint64_t held_out_samples;    /* of all held-out minibatches; 0: for training */
    uint64_t label_bytes, pixels, classes;
    uint64_t channels;            /* of a pixel, which are together in a batch; 1: each has an image of its own */
    uint64_t labels;              /* of a sample */
    uint64_t seed;
    uint64_t samples, microbatch; /* of a minibatch; of a microbatch */
    const struct mapped_file *file; /* NULL: memory that cannot change */
    const char *name;
};

/* Opens images; `file` NULL: random, from the seed. `shared`: the file serves training and evaluation;
 * held_out_samples tells which this is.
 * Errors: STATUS_BAD_INPUT when the length is not a positive whole number of images, for a label out of range, and for
 * a file where the network learns a label for each pixel. */
MUST_CHECK enum status data_images_open(const struct job *job, const char *name,
                                        const struct mapped_file *file, bool shared,
                                        uint64_t held_out_samples, struct data_images *out,
                                        struct error *err);

/* Works as data_batch_part(). */
MUST_CHECK enum status data_images_batch(const struct data_images *images, uint64_t minibatch,
                                         const struct parallel_microbatches *part, int32_t *out, struct error *err);

#endif
