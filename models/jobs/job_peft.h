/*
 * adapter_config.json, as PEFT writes it.
 *
 * Read: peft_type LORA, r, lora_alpha, lora_dropout, target_modules (a list, or "all-linear"), use_rslora. What would
 * make other adapters of these, or change more than their linear layers, is refused by name; other keys mean nothing
 * here.
 *
 * Source: LoraConfig of PEFT 0.21.
 */
#ifndef SPILLWAY_MODELS_JOBS_JOB_PEFT_H
#define SPILLWAY_MODELS_JOBS_JOB_PEFT_H

#include "models/job/job.h"

/* Reads the file in `folder`. `any_dropout`: the file's dropout is not used. Errors: STATUS_IO; STATUS_BAD_INPUT with
 * file, line and column. */
MUST_CHECK enum status job_peft_read(const char *folder, bool any_dropout, struct arena *arena, struct job_adapter *out,
                                     struct error *err);

/* Writes the file of the job's adapter to `path`. Atomic. Errors: STATUS_IO. */
MUST_CHECK enum status job_peft_write(const struct job *job, const char *path, struct error *err);

#endif
