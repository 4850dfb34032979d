/*
 * The keys "freeze" and "adapter" of a job.
 *
 *     "freeze":  {"layers": [0, [2, 5]], "tensors": ["*.ln_1.*", "h.7.mlp.c_fc.weight"]}
 *     "adapter": {"kind": "lora", "rank": 8, "alpha": 16, "targets": ["q_proj", "v_proj"], "rslora": false, "from":
 *     DIR}
 *
 * Without "rank", the adapter's are read from DIR/adapter_config.json (models/jobs/job_peft.h).
 */
#ifndef SPILLWAY_MODELS_JOBS_JOB_TRAINED_H
#define SPILLWAY_MODELS_JOBS_JOB_TRAINED_H

#include "models/jobs/job_draft.h"

/* The file of an adapter's weights in its folder; its configuration is beside it. */
extern const char job_adapter_file[], job_adapter_config[];

/* Fills in the draft's freeze and adapter, and what of its network they leave to train. Paths are relative to
 * `folder`. */
MUST_CHECK enum status job_trained_resolve(struct job_draft *draft, const char *folder, struct arena *arena,
                                           struct error *err);

struct json_out;
/* Writes the keys that the job has. `folder`: to which paths become relative; NULL: absolute. */
void job_trained_write(const struct job *job, const char *folder, struct json_out *out);

#endif
