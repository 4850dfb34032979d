/* Labelled images: the equivalent of exec/files/data.h. */
#ifndef SPILLWAY_EXEC_FILES_DATA_IMAGES_H
#define SPILLWAY_EXEC_FILES_DATA_IMAGES_H

#include <assert.h>

#include "base/files/mapped_file.h"
#include "base/random.h"
#include "exec/images/image_folder.h"
#include "models/job/job.h"

enum { DATA_HELD_OUT_SHARE = 10 }; /* the last tenth of a file, or every tenth image of a folder */

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
    const unsigned char *records; /* borrowed; NULL without a file of records */
    struct image_folder *folder;  /* NULL without one; without both random, from the seed */
    uint64_t first, count;        /* 0, 0 if random */
    uint64_t apart;               /* of a folder's images every one after so many is held out; 0: none */
    uint64_t held_out_samples;    /* of all held-out minibatches; 0: for training */
    uint64_t label_bytes, pixels, classes;
    uint64_t channels;            /* of a pixel, which are together in a batch; 1: each has an image of its own */
    uint64_t labels;              /* of a sample */
    uint64_t image;               /* pixels of a side */
    struct pixel_scale scale;
    uint64_t seed;
    uint64_t samples, microbatch; /* of a minibatch; of a microbatch */
    const struct mapped_file *file; /* NULL: memory that cannot change */
    const char *name;
};

/* Where images come from. */
struct data_images_from {
    const char *name;               /* NULL: random, from the seed */
    const struct mapped_file *file; /* NULL: a folder */
    bool shared;                    /* the data serve training and evaluation; held_out_samples tells which this is */
    bool known;                     /* the files of a folder were looked at */
    uint64_t held_out_samples;
};

/* Opens images. Errors: STATUS_BAD_INPUT when the length of a file is not a positive whole number of images, for a
 * label out of range, and for data where the network learns a label for each pixel; of a folder as
 * image_folder_open(). */
MUST_CHECK enum status data_images_open(const struct job *job, const struct data_images_from *from,
                                        struct data_images *out, struct error *err);
void data_images_close(struct data_images *images); /* an empty one is fine */

/* Works as data_batch_part(). */
MUST_CHECK enum status data_images_batch(const struct data_images *images, uint64_t minibatch,
                                         const struct parallel_microbatches *part, int32_t *out, struct error *err);

#endif
