/*
 * Every key of a job.
 *
 * job_read.c stops at a key without a row. A row says whether the key is part of a plan's fingerprint (add_job() in
 * planner/plan.c: simulator or executor act on it) and of a training's identity in checkpoints (checkpoint_identify()
 * in exec/checkpoint/checkpoint.c: it changes the training). test_job_keys.c changes each key and compares, and
 * CONTRIBUTING.md lists the other places.
 */
#ifndef SPILLWAY_MODELS_JOBS_JOB_KEYS_H
#define SPILLWAY_MODELS_JOBS_JOB_KEYS_H

#include <stdbool.h>

/* X(enum, key, in the fingerprint, in the identity) */
#define JOB_KEYS(X)                                                                                 \
    X(NAME, "name", true, true)                                                                     \
    X(NETWORK, "network", true, true)                                                               \
    X(SEQUENCE, "sequence", true, true)                                                             \
    X(DECODER_SEQUENCE, "decoder_sequence", true, false) /* of t5: not trained */          \
    X(IMAGE_SIZE, "image_size", true, false) /* of cnn: not trained */                     \
    X(MICROBATCH, "microbatch", true, true)                                                         \
    X(MICROBATCHES, "microbatches", true, true)                                                     \
    X(ACCUMULATION, "gradient_accumulation_steps", true, true)                                      \
    X(TRAIN_BATCH_SIZE, "train_batch_size", true, true)                                             \
    X(MINIBATCHES, "minibatches", true, false) /* but see optimizer_text() */                       \
    X(EPOCHS, "epochs", true, false)      /* by the minibatches */                                  \
    X(FIRST_MINIBATCH, "first_minibatch", true, false)                                              \
    X(OPTIMIZER, "optimizer", true, true)                                                           \
    X(PRECISION, "precision", true, true)                                                           \
    X(GRADIENTS, "gradients", false, false) /* of parallel jobs: not carried out */       \
    X(SUM, "sum", true, false) /* not in the identity: trainings go on with other sums */            \
    X(DROPOUT, "dropout", true, true)     /* by the network's rates */                      \
    X(SEED, "seed", true, true)                                                                     \
    X(DATA, "data", true, true)                                                                     \
    X(DATA_FORMAT, "data_format", true, true)                                                       \
    X(TOKENS, "tokens", false, false) /* overrides a guess */                   \
    X(NORMALIZE, "normalize", true, true)                                                           \
    X(PACKING, "packing", true, true)                                                               \
    X(LONG_ROWS, "long_rows", true, true)                                                           \
    X(WEIGHTS_IN, "weights_in", true, false)                                                        \
    X(WEIGHTS_OUT, "weights_out", true, false)                                                      \
    X(EVALUATE, "evaluate", true, false)                                                            \
    X(FREEZE, "freeze", true, true)                                                                 \
    X(ADAPTER, "adapter", true, true)                                                               \
    X(BASE, "base", true, false) /* the frozen weights tell it */                                   \
    X(KEEP, "keep", true, false)                                                                    \
    X(PARALLEL, "parallel", false, false) /* gangs tell it */                            \
    X(DEVICES, "devices", false, false)   /* reservations tell it */                     \
    X(COMPRESSION, "compression", false, false) /* of parallel jobs */                              \
    X(COPIES, "count", true, true)        /* by the names */

#define JOB_KEY_ENUM(key, name, in_fingerprint, in_identity) JOB_KEY_##key,
enum job_key { JOB_KEYS(JOB_KEY_ENUM) JOB_KEY_COUNT };
#undef JOB_KEY_ENUM

struct job_key_row {
    const char *name;
    bool in_fingerprint, in_identity;
};
extern const struct job_key_row job_key_rows[JOB_KEY_COUNT];

#endif
