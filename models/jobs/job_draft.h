/*
 * A job between its keys and struct job, only for the readers of jobs.
 *
 *     job_draft_read()     takes the keys of "defaults", then those of the job
 *     job_draft_resolve()  finds the network, makes paths absolute, fills in values that follow from others
 *     job_draft_check()    checks what must fit together
 */
#ifndef SPILLWAY_MODELS_JOBS_JOB_DRAFT_H
#define SPILLWAY_MODELS_JOBS_JOB_DRAFT_H

#include "base/json/json_in.h"
#include "models/job/job.h"

/* A job that is neither checked nor resolved. */
struct job_draft {
    const struct json_input *in;
    const json_t *object, *defaults; /* `defaults` may be NULL */
    const char *name;                /* NULL: by number */
    const json_t *network;
    const char *data, *weights_in, *weights_out; /* NULL: not given */
    const char *held_out;            /* "data" of "evaluate", likewise */
    bool has_format, has_held_out_format;
    bool drops_nothing;              /* "dropout" is false */
    bool divides_rows;               /* "share" or "split_seed" of "evaluate" was given */
    double epochs;                   /* 0: not given */
    bool has_two_lengths;            /* one object has both "epochs" and "minibatches" */
    bool hands_best_on;              /* another job of a plan goes on with the best weights, and writes them */
    const json_t *devices;           /* likewise */
    const json_t *freeze, *adapter, *normalize;  /* likewise */
    uint64_t decoder_sequence;       /* 0: not given */
    uint64_t image;                  /* of a side; 0: the network's */
    uint64_t count;                  /* 0: not given */
    struct job job;                  /* sequence 0: not given */
};

extern const struct job_draft job_draft_empty;

/* Returns the object with `key`, for messages. */
const json_t *job_draft_giver(const struct job_draft *draft, const char *key);

/* Takes keys of a job or "defaults". */
MUST_CHECK enum status job_draft_read(struct json_object *object, struct job_draft *draft, struct error *err);

/* Refuses data that are rows of JSON by their name; STATUS_OK for other data. `giver`: the object with "data", for
 * messages. */
MUST_CHECK enum status job_draft_refuse_json(const struct job_draft *draft, const char *data, const json_t *giver,
                                             struct error *err);

/* Checks the name before a number is added. */
MUST_CHECK enum status job_draft_check_name(const struct job_draft *draft, struct error *err);

MUST_CHECK enum status job_draft_resolve(struct job_draft *draft, const char *folder, struct arena *arena,
                                         struct error *err);

/* Checks a resolved draft. */
MUST_CHECK enum status job_draft_check(const struct job_draft *draft, struct error *err);

static inline bool job_draft_is_cifar10(const struct network *network)
{
    return network->channels == 3 && network->image == 32;
}

static inline bool job_draft_reads_images(const struct network *network)
{
    return network->family == NETWORK_VIT || network->family == NETWORK_CNN;
}

#endif
