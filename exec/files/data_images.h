/* Labelled images of a file or of a seed; what exec/files/data.h does for networks that read images. */
#ifndef SPILLWAY_EXEC_DATA_IMAGES_H
#define SPILLWAY_EXEC_DATA_IMAGES_H

#include <assert.h>

#include "base/random.h"
#include "exec/files/mapped_file.h"
#include "models/job/job.h"

enum { DATA_HELD_OUT_SHARE = 10 }; /* the last one of so many parts of a file */

/* How much of a file is held out, where it is for training and evaluation both. */
static inline uint64_t data_held_out(uint64_t count)
{
    return count / DATA_HELD_OUT_SHARE;
}

/* Where in a file a sample begins that can begin at `places` ones: drawn, or, of the held-out samples,
 * at equal distances. */
static inline uint64_t data_place(uint64_t seed, uint64_t sample, uint64_t places,
                                  uint64_t held_out_samples)
{
    if (held_out_samples == 0) return random_below(seed, sample, places);
    assert(sample < held_out_samples);
    return (uint64_t)((unsigned __int128)sample * places / held_out_samples);
}

struct data_images {
    const unsigned char *records; /* borrowed; NULL: drawn from the seed */
    uint64_t first, count;        /* which of them are used; 0, 0 when drawn from the seed */
    uint64_t held_out_samples;    /* of all held-out minibatches; 0: it is for training */
    uint64_t label_bytes, pixels, classes;
    uint64_t seed, samples; /* of a minibatch */
    const struct mapped_file *file; /* they lie in; NULL: in none that could change */
    const char *name;
};

/* `file` NULL: drawn from the seed. `shared`: it is for training and evaluation both, and
 * held_out_samples says which of them this is. Errors: STATUS_BAD_INPUT for a length that is no whole
 * number of images, for none at all, and for a label that is not below the classes. */
MUST_CHECK enum status data_images_open(const struct job *job, const char *name,
                                        const struct mapped_file *file, bool shared,
                                        uint64_t held_out_samples, struct data_images *out,
                                        struct error *err);

/* As data_batch(). */
MUST_CHECK enum status data_images_batch(const struct data_images *images, uint64_t minibatch,
                                         int32_t *out, struct error *err);

#endif
