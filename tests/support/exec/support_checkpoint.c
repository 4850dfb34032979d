#include "tests/support/exec/support_checkpoint.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/random.h"
#include "exec/files/weights.h"

const struct checkpoint_origin support_checkpoint_origin = {"host", "a library 1.2", 3};
double support_checkpoint_losses[SUPPORT_CHECKPOINT_LOSSES];
/* The evaluations of a job that is evaluated after every step: the best is step 2, which is soon too old. */
struct evaluation_progress support_checkpoint_evaluations[5] = {{1, 5.25}, {2, 1.5}, {3, NAN}, {4, 2.125}, {5, 1.5}};

struct checkpoint_history support_checkpoint_history(const struct job *job, uint64_t step)
{
    return (struct checkpoint_history){
        .losses = support_checkpoint_losses,
        .evaluations = support_checkpoint_evaluations,
        .evaluation_count = job->evaluation.every > 0 ? step : 0,
    };
}

/* Asks for the losses only, to be read into `to`; evaluations are not read. */
struct checkpoint_history support_checkpoint_only_losses(double *to)
{
    return (struct checkpoint_history){.losses = to};
}

void support_checkpoint_begin(void)
{
    for (size_t i = 0; i < SUPPORT_CHECKPOINT_LOSSES; i++) support_checkpoint_losses[i] = 5.5 / (double)(i + 1);
    support_checkpoint_losses[1] = NAN;
    support_checkpoint_losses[2] = INFINITY;
}

/* --- jobs and their states -------------------------------------------------------------------- */

struct job support_checkpoint_job(void)
{
    return (struct job){.name = "tiny.job-1",
                        .network = support_gpt2_network(4, 1, 1, 5, 3),
                        .sequence = 3,
                        .microbatch = 2,
                        .microbatches = 1,
                        .minibatches = 60,
                        .seed = 42,
                        .data_format = DATA_NONE,
                        .optimizer = {.kind = OPTIMIZER_ADAMW, .learning_rate = 0.1, .beta1 = 0.9}};
}

struct job support_checkpoint_evaluated_job(void)
{
    struct job job = support_checkpoint_job();
    job.evaluation = (struct job_evaluation){.every = 1, .minibatches = 3, .data_format = DATA_NONE};
    return job;
}

void support_checkpoint_trainer(struct trainer *trainer, const struct job *job, uint64_t blocks_per_shard)
{
    *trainer = (struct trainer){.loss = 0};
    trainer_init(trainer, job,
                 &(struct trainer_options){.blocks_per_shard = blocks_per_shard, .slices = 1});
}

struct checkpoint_subject support_checkpoint_subject(const struct trainer *trainer)
{
    return (struct checkpoint_subject){.job = &trainer->job,
                                       .data_tokens = 0,
                                       .tables = trainer->state_tables,
                                       .shard_count = trainer->shard_count,
                                       .states = trainer->states};
}

/* Part 0 are values, the others moments. */
static size_t number_bytes(const struct job *job, uint32_t part)
{
    return part == 0 ? sizeof(float) : precision_bytes(job->optimizer.moments);
}

static void *number(const struct job *job, const struct weights_tensor *tensor, uint32_t part, uint64_t i)
{
    char *const at = part == 0 ? (char *)tensor->values : (char *)tensor->moments[part - 1];
    return at + i * number_bytes(job, part);
}

/* Numbers that say of which step, shard and word they are; NaN and infinity among them. Writes only
 * to tensors: the gaps between tensors belong to no tensor. */
void support_checkpoint_fill(const struct trainer *trainer, uint64_t step)
{
    const uint32_t parts = 1 + optimizer_moments(trainer->job.optimizer.kind);
    uint64_t n = 0;
    for (uint32_t part = 0; part < parts; part++) {
        struct weights_walk walk = {.job = &trainer->job, .tables = trainer->state_tables,
                                    .shard_count = trainer->shard_count, .states = trainer->states};
        struct weights_tensor tensor;
        while (weights_walk_next(&walk, &tensor))
            for (uint64_t i = 0; i < tensor.spec->elements; i++) {
                const uint32_t bits = (uint32_t)random_u64(step, n++);
                memcpy(number(&trainer->job, &tensor, part, i), &bits, number_bytes(&trainer->job, part));
            }
    }
}

bool support_checkpoint_holds(const struct trainer *trainer, uint64_t step)
{
    const uint32_t parts = 1 + optimizer_moments(trainer->job.optimizer.kind);
    uint64_t n = 0;
    for (uint32_t part = 0; part < parts; part++) {
        struct weights_walk walk = {.job = &trainer->job, .tables = trainer->state_tables,
                                    .shard_count = trainer->shard_count, .states = trainer->states};
        struct weights_tensor tensor;
        while (weights_walk_next(&walk, &tensor))
            for (uint64_t i = 0; i < tensor.spec->elements; i++) {
                const uint32_t bits = (uint32_t)random_u64(step, n++);
                if (memcmp(number(&trainer->job, &tensor, part, i), &bits,
                           number_bytes(&trainer->job, part)) != 0)
                    return false;
            }
    }
    return true;
}

/* Writes checkpoints of steps first .. last, each with its own state. Returns the last that succeeded, and the first
 * error. */
uint64_t support_checkpoint_write(struct disk *disk, struct trainer *trainer, uint64_t first, uint64_t last,
                            struct error *err)
{
    struct checkpoint_folder *folder = NULL;
    const struct checkpoint_subject subject = support_checkpoint_subject(trainer);
    uint64_t written = 0;
    if (checkpoint_folder_open(disk, SUPPORT_CHECKPOINT_FOLDER, SUPPORT_CHECKPOINT_KEEP, &folder, err) != STATUS_OK)
        return 0;
    for (uint64_t step = first; step <= last; step++) {
        struct error one = {0};
        const struct checkpoint_history history = support_checkpoint_history(&trainer->job, step);
        support_checkpoint_fill(trainer, step);
        if (checkpoint_write(folder, &subject, &support_checkpoint_origin, step, &history, &one) == STATUS_OK)
            written = step;
        else if (err->status == STATUS_OK)
            *err = one;
    }
    checkpoint_folder_close(folder);
    return written;
}

const char *support_checkpoint_path(const struct trainer *trainer, uint64_t step)
{
    static char path[256];
    snprintf(path, sizeof path, SUPPORT_CHECKPOINT_FOLDER "/%s/step-%010llu.safetensors", trainer->job.name,
             (unsigned long long)step);
    return path;
}
