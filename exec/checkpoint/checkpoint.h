/*
 * A job's training state on disk: what a run that was stopped, killed or cut off from its power needs
 * to go on as if nothing had happened.
 *
 *     FOLDER/JOB/step-0000000120.safetensors      120 minibatches are done
 *
 * One file per job and step. It does not show how the network was cut into shards nor on which device
 * anything lay, so it may be continued on another number of devices and by another policy. It is a
 * safetensors file: parameters under their Hugging Face names, moments as "exp_avg.NAME" and
 * "exp_avg_sq.NAME", the loss of every minibatch so far as "spillway.losses" (F64), checksums as
 * "spillway.crc32" (U32); metadata says which training it is of. Other software can read the weights
 * out of it.
 *
 * A file is complete when it has its final name: it is written as step-N.tmp, synced, renamed, and
 * the folder synced, before an older one is removed. Nothing here knows of runs or threads.
 */
#ifndef SPILLWAY_EXEC_CHECKPOINT_H
#define SPILLWAY_EXEC_CHECKPOINT_H

#include <stdint.h>

#include "base/error.h"
#include "base/files/disk.h"
#include "models/job/evaluation.h"
#include "models/job/job.h"
#include "models/job/memory.h"

enum { CHECKPOINT_KEEP_MAX = 1000000 };

/* When reading: how long the data are is not known, and not compared. */
#define CHECKPOINT_ANY_TOKENS UINT64_MAX

/* A job and where its state is: saved from there, or read into there. */
struct checkpoint_subject {
    const struct job *job; /* names of files do not matter, nor its end unless the rate depends on it */
    uint64_t data_tokens;  /* in its data; 0: drawn from the seed; or CHECKPOINT_ANY_TOKENS */
    uint64_t held_out_tokens; /* the same of its held-out data, if it is evaluated */
    const struct state_tables *tables; /* per shard: of its state; when reading, also of its values */
    uint32_t shard_count;
    float *const *states;  /* per shard: laid out so. NULL: only to be looked for */
};

/* What has been measured on the way. */
struct checkpoint_history {
    double *losses;                /* of each minibatch so far */
    struct evaluated *evaluations; /* so far, in their order. When reading, NULL: they are not wanted */
    uint64_t evaluation_count;     /* when reading: for how many there is room, then how many they are */
};

/* What computed: equal bits are promised where all of it is equal. */
struct checkpoint_origin {
    const char *backend;   /* "host" */
    const char *libraries; /* "oneDNN 2.6.3 (avx512_core)" */
    uint32_t threads;      /* of each device */
};

/* --- writing ---------------------------------------------------------------------------------- */

struct checkpoint_folder; /* opaque: one that is written into */

/*
 * Make the folder if it is not there, and keep other writers out of it until it is closed. `keep` is
 * how many checkpoints of a job stay, 1 or more. `disk` and `path` are borrowed. The caller closes it
 * with checkpoint_folder_close(). Errors: STATUS_IO, STATUS_NO_MEMORY.
 */
MUST_CHECK enum status checkpoint_folder_open(struct disk *disk, const char *path, uint64_t keep,
                                              struct checkpoint_folder **out, struct error *err);
void checkpoint_folder_close(struct checkpoint_folder *folder); /* NULL is fine */

/*
 * Write the checkpoint of `step` minibatches, 1 or more, and what was measured until then. When the
 * call succeeds it survives a power cut, and only then older ones go: all but the newest ones and that
 * of the best evaluation. When it fails, those that were
 * complete before still are. Checkpoints of later steps are removed: they were not whole when this
 * run began. From one thread at a time per job.
 * Errors: STATUS_IO, STATUS_NO_MEMORY.
 */
MUST_CHECK enum status checkpoint_write(struct checkpoint_folder *folder,
                                        const struct checkpoint_subject *subject,
                                        const struct checkpoint_origin *origin, uint64_t step,
                                        const struct checkpoint_history *history,
                                        struct error *err);

/* --- reading ---------------------------------------------------------------------------------- */

struct checkpoint_found {
    uint64_t step;          /* 0: there is none */
    double first_loss, final_loss; /* may be NaN or infinite */
    uint64_t evaluation_count; /* of held-out data as the subject has it; then ... */
    double last_evaluation;    /* ... may be NaN or infinite, ... */
    uint64_t best_step;        /* ... 0: none was finite ... */
    double best_evaluation;
    char backend[32], libraries[256];
    uint64_t threads;
    uint32_t passed_over;   /* newer ones that are not whole ... */
    char reason[512];       /* ... and what is wrong with the newest of them */
};

/*
 * The newest whole checkpoint of a job: every byte of it is read and checked.
 * Errors: STATUS_CHECK when there are checkpoints and none of them is whole; STATUS_BAD_INPUT when the
 * newest whole one is of another training; STATUS_IO when the folder cannot be listed;
 * STATUS_NO_MEMORY.
 */
MUST_CHECK enum status checkpoint_find(struct disk *disk, const char *path,
                                       const struct checkpoint_subject *subject,
                                       struct checkpoint_found *out, struct error *err);

/*
 * Fill the subject's states and, unless they are NULL, `history` and `found` from the checkpoint of that
 * step, checking it again. Evaluations on other held-out data than the subject's are left out.
 * Errors: STATUS_CHECK, STATUS_BAD_INPUT, STATUS_IO, STATUS_NO_MEMORY; what was to be filled is
 * undefined then.
 */
MUST_CHECK enum status checkpoint_read(struct disk *disk, const char *path,
                                       const struct checkpoint_subject *subject, uint64_t step,
                                       struct checkpoint_history *history,
                                       struct checkpoint_found *found,
                                       struct error *err);

/* The highest step that a file of the job claims, whole or not; 0: there is none. STATUS_IO. */
MUST_CHECK enum status checkpoint_last_name(struct disk *disk, const char *path,
                                            const struct job *job, uint64_t *out,
                                            struct error *err);

#endif
