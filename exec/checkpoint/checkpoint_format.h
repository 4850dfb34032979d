/* The format of a checkpoint's file, for checkpoint.c, checkpoint_write.c and checkpoint_read.c. */
#ifndef SPILLWAY_EXEC_CHECKPOINT_CHECKPOINT_FORMAT_H
#define SPILLWAY_EXEC_CHECKPOINT_CHECKPOINT_FORMAT_H

#include <limits.h>

#include "exec/checkpoint/checkpoint.h"
#include "exec/files/safetensors.h"

enum {
    CHECKPOINT_CHUNK_BYTES = 1 << 20, /* a piece is checksummed while it is in the cache */
    CHECKPOINT_VALUE_BYTES = 8192     /* longest metadata value; networks need the most, below 2 KiB */
};

/* As in the metadata; the second is of jobs of precision bf16. In the first "bf16" stands for bf16-weights, which had
 * this name. */
extern const char checkpoint_version[], checkpoint_half_version[];
extern const char checkpoint_temporary_end[], checkpoint_final_end[];
extern const char checkpoint_frozen_key[], checkpoint_all_trained[];
extern const char checkpoint_evaluations_name[], checkpoint_checksums_name[];

/* --- names ------------------------------------------------------------------------------------ */

/* Writes FOLDER/JOB/step-0000000120 followed by `ending`; NULL: FOLDER/JOB. */
MUST_CHECK enum status checkpoint_path(char out[PATH_MAX], const char *folder, const struct job *job,
                                       uint64_t step, const char *ending, struct error *err);

struct checkpoint_listing {
    uint64_t *steps; /* malloc'ed, descending */
    size_t count, capacity;
    const char *ending;
    struct error error;
};

/* Lists the steps of a job's files with this ending; empty if the folder does not exist. The caller frees out->steps,
 * also after an error. */
MUST_CHECK enum status checkpoint_list(struct disk *disk, const char *folder, const struct job *job,
                                       const char *ending, struct checkpoint_listing *out,
                                       struct error *err);

/* --- which training it is --------------------------------------------------------------------- */

/* Metadata that must be equal when a job continues. */
enum {
    CHECKPOINT_KEY_JOB,
    CHECKPOINT_KEY_NETWORK,
    CHECKPOINT_KEY_SEQUENCE,
    CHECKPOINT_KEY_MICROBATCH,
    CHECKPOINT_KEY_MICROBATCHES,
    CHECKPOINT_KEY_PRECISION,
    CHECKPOINT_KEY_OPTIMIZER,
    CHECKPOINT_KEY_SEED,
    CHECKPOINT_KEY_DATA,
    CHECKPOINT_KEY_DATA_TOKENS,
    CHECKPOINT_KEY_TRAINED,
    CHECKPOINT_KEY_COUNT
};
extern const char *const checkpoint_keys[CHECKPOINT_KEY_COUNT];

struct checkpoint_identity {
    char values[CHECKPOINT_KEY_COUNT][CHECKPOINT_VALUE_BYTES];
};

/* Makes the identity; the caller frees *out with free(). */
MUST_CHECK enum status checkpoint_identify(const struct checkpoint_subject *subject,
                                           struct checkpoint_identity **out, struct error *err);

/* Writes a text for the held-out data; "" for a job without evaluations. Without its tokens, the text is a
 * prefix of the same. */
void checkpoint_evaluation_text(const struct checkpoint_subject *subject,
                                char out[CHECKPOINT_VALUE_BYTES]);

/* --- the tensors ------------------------------------------------------------------------------ */

/* All tensors of a file in order, checksums last. */
struct checkpoint_contents {
    struct safetensors_tensor *tensors;
    void **values; /* per tensor of the state; may be NULL */
    char (*names)[sizeof((struct tensor_spec *)0)->name + 16];
    size_t state_count, count; /* state_count: without losses, evaluations and checksums; count: with them */
    uint64_t step, evaluation_count;
};

/* Lists the tensors; the caller releases the list. safetensors_head() sets offsets and bytes. */
MUST_CHECK enum status checkpoint_contents_list(const struct checkpoint_subject *subject, uint64_t step,
                                                uint64_t evaluation_count,
                                                struct checkpoint_contents *out, struct error *err);
void checkpoint_contents_release(struct checkpoint_contents *contents);

#endif
