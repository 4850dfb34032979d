/* Labelled images of a file or of a seed; what exec/data.h does for networks that read images. */
#ifndef SPILLWAY_EXEC_DATA_IMAGES_H
#define SPILLWAY_EXEC_DATA_IMAGES_H

#include "exec/mapped_file.h"
#include "models/job.h"

struct data_images {
    const unsigned char *records; /* borrowed; NULL: drawn from the seed */
    uint64_t count;               /* 0 when drawn from the seed */
    uint64_t label_bytes, pixels, classes;
    uint64_t seed, samples; /* of a minibatch */
    const struct mapped_file *file; /* they lie in; NULL: in none that could change */
    const char *name;
};

/* `file` NULL: drawn from the seed. Errors: STATUS_BAD_INPUT for a length that is no whole number of
 * images, for none at all, and for a label that is not below the classes. */
MUST_CHECK enum status data_images_open(const struct job *job, const char *name,
                                        const struct mapped_file *file, struct data_images *out,
                                        struct error *err);

/* As data_batch(). */
MUST_CHECK enum status data_images_batch(const struct data_images *images, uint64_t minibatch,
                                         int32_t *out, struct error *err);

#endif
