/*
 * A job's training state on disk: everything that a run needs to continue with the same bits.
 *
 *     FOLDER/JOB/step-0000000120.safetensors      120 minibatches are done
 *
 * There is one file per job and step, independent of the cut into shards and of the devices: a run may continue with
 * other devices and another policy. It is a safetensors file: parameters under their Hugging Face names, moments as
 * "exp_avg.NAME" and "exp_avg_sq.NAME", losses of all minibatches as "spillway.losses" (F64), checksums as
 * "spillway.crc32" (U32). Metadata identifies the training. Frozen weights are not in it, only their fingerprint.
 *
 * A file is complete when it has its final name. It is written as step-N.tmp, synced and renamed, and the folder is
 * synced, before an older file is removed.
 */
#ifndef SPILLWAY_EXEC_CHECKPOINT_CHECKPOINT_H
#define SPILLWAY_EXEC_CHECKPOINT_CHECKPOINT_H

#include <stdint.h>

#include "base/error.h"
#include "base/files/disk.h"
#include "models/job/evaluation.h"
#include "models/job/job.h"
#include "models/job/memory.h"

enum { CHECKPOINT_KEEP_MAX = 1000000 };

/* For reading: the data may have any length. */
#define CHECKPOINT_ANY_TOKENS UINT64_MAX

/* A job and the memory of its state, from which it is saved or into which it is read. */
struct checkpoint_subject {
    const struct job *job; /* file names are ignored, and so is the number of steps unless the rate depends on it */
    uint64_t data_tokens;  /* 0: drawn from the seed; or CHECKPOINT_ANY_TOKENS */
    uint64_t held_out_tokens;
    const struct state_tables *tables; /* per shard: tables of its state; for reading also tables of its values */
    uint32_t shard_count;
    float *const *states;  /* per shard; NULL: only search */
    bool knows_frozen;     /* the fingerprint of the frozen weights (exec/files/weights.h), which are not in the file
                              ... */
    uint64_t frozen;       /* ... and which ones; the training must have had the same */
};

struct checkpoint_history {
    double *losses;                /* of all minibatches */
    struct evaluation_progress *evaluations; /* in order; NULL when reading: not wanted */
    uint64_t evaluation_count;     /* when reading: capacity, then the number */
};

/* The software and hardware of a run. Equal bits are promised if all of it is equal. */
struct checkpoint_origin {
    const char *backend;   /* "host" */
    const char *libraries; /* "oneDNN 2.6.3 (avx512_core)" */
    uint32_t threads;      /* of each device */
};

/* --- writing ---------------------------------------------------------------------------------- */

struct checkpoint_folder; /* a folder open for writing */

/*
 * Opens a folder, makes it if necessary, and locks it against other writers. `keep`: checkpoints to keep per job, at
 * least 1. `disk` and `path` are borrowed. The caller closes it with checkpoint_folder_close(). Errors: STATUS_IO.
 */
MUST_CHECK enum status checkpoint_folder_open(struct disk *disk, const char *path, uint64_t keep,
                                              struct checkpoint_folder **out, struct error *err);
void checkpoint_folder_close(struct checkpoint_folder *folder); /* NULL is fine */

/*
 * Writes the checkpoint after `step` minibatches, at least 1. When the call succeeds the checkpoint survives a loss of
 * power; only then older ones are removed, except the newest and the one of the best evaluation. When the call fails,
 * older checkpoints stay complete. Checkpoints of later steps are removed: they were damaged when this run began. Only
 * one thread at a time per job.
 * Errors: STATUS_IO.
 */
MUST_CHECK enum status checkpoint_write(struct checkpoint_folder *folder,
                                        const struct checkpoint_subject *subject,
                                        const struct checkpoint_origin *origin, uint64_t step,
                                        const struct checkpoint_history *history,
                                        struct error *err);

/* --- reading ---------------------------------------------------------------------------------- */

struct checkpoint_found {
    uint64_t step;          /* 0: no checkpoint */
    double first_loss, final_loss; /* may be NaN or infinite */
    uint64_t evaluation_count; /* number of evaluations on the subject's held-out data; then ... */
    double last_evaluation;    /* ... may be NaN or infinite, ... */
    uint64_t best_step;        /* ... 0: none was finite ... */
    double best_evaluation;
    char backend[32], libraries[256];
    uint64_t threads;
    uint32_t passed_over;   /* number of newer damaged checkpoints ... */
    char reason[512];       /* ... and the fault of the newest one */
};

/*
 * Finds the newest undamaged checkpoint of a job. It reads and checks every byte. Errors: STATUS_CHECK when all
 * checkpoints are damaged; STATUS_BAD_INPUT when the newest undamaged one is of another training; STATUS_IO when the
 * folder cannot be listed.
 */
MUST_CHECK enum status checkpoint_find(struct disk *disk, const char *path,
                                       const struct checkpoint_subject *subject,
                                       struct checkpoint_found *out, struct error *err);

/*
 * Reads and checks the checkpoint of `step` into the subject's states and, unless NULL, `history` and `found`.
 * Evaluations on other held-out data are left out.
 * Errors: STATUS_CHECK, STATUS_BAD_INPUT, STATUS_IO; all outputs are undefined then.
 */
MUST_CHECK enum status checkpoint_read(struct disk *disk, const char *path,
                                       const struct checkpoint_subject *subject, uint64_t step,
                                       struct checkpoint_history *history,
                                       struct checkpoint_found *found,
                                       struct error *err);

/* Returns in *out the highest step in the job's file names, damaged or not; 0: no file. Errors: STATUS_IO. */
MUST_CHECK enum status checkpoint_last_name(struct disk *disk, const char *path,
                                            const struct job *job, uint64_t *out,
                                            struct error *err);

#endif
