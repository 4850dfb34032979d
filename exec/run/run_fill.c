/*
 * Fills the states of jobs on the host before their first minibatch: initial weights, weights from a file, or a
 * checkpoint. Several shards at a time, one per thread.
 */
#include "exec/state/run_state.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/try.h"
#include "exec/files/adapter.h"
#include "exec/files/weights.h"
#include "exec/run/run_ranks.h"
#include "exec/state/run_base.h"
#include "exec/state/run_faults.h"
#include "exec/state/run_shares.h"
#include "exec/state/run_storage.h"
#include "models/job/evaluation.h"

enum { FILL_THREADS_MAX = 16 };

/* A job read from a file is one item, else each shard is. */
struct weight_item {
    uint32_t job, first_shard, shard_count;
    struct checkpoint_found found; /* of a job that continues */
    struct error error;
};

struct weight_work {
    struct run *run;
    struct weight_item *items;
    uint32_t count;
    atomic_uint next;
};

/* Fills the best evaluation's parameters so far, if the job keeps them. */
static enum status fill_best(struct run *run, const struct weight_item *item, struct error *err)
{
    const struct job *const job = &run->plan->jobs.jobs[item->job];
    struct checkpoint_subject subject =
        run_checkpoint_subject(run, item->job, &run->kept[item->first_shard]);
    if (!job->keep_best || item->found.best_step == 0) return STATUS_OK;
    subject.tables = &run->value_tables[item->first_shard];
    if (checkpoint_read(run_checkpoint_disk(run), run->options->checkpoints->folder, &subject,
                        item->found.best_step, NULL, NULL, err) != STATUS_OK)
        return error_add(err, "the weights of the best evaluation of job '%s' (without \"keep\": "
                         "\"best\" it goes on)", job->name);
    run->jobs[item->job].kept = true;
    return STATUS_OK;
}

/* Fills states as a training begins, and takes the fingerprint of what is frozen. */
static enum status fill_initial(struct run *run, const struct weight_item *item, float *const *states,
                                struct error *err)
{
    const struct job *const job = &run->plan->jobs.jobs[item->job];
    const struct state_tables *const whole = &run->whole_tables[item->first_shard];
    const struct state_tables *const tables = run_base_fills(run, item->job) ? whole
                                                                             : &run->state_tables[item->first_shard];
    if (job->weights_in) TRY(weights_read(job, tables, item->shard_count, states, err));
    for (uint32_t s = 0; s < item->shard_count && !job->weights_in; s++) weights_init(job, &tables[s], states[s]);
    if (!job->network.trained) return STATUS_OK;
    atomic_fetch_add(&run->jobs[item->job].frozen, weights_frozen_fingerprint(job, whole, item->shard_count, states));
    if (!job->adapter.from || job->first_minibatch > 0) return STATUS_OK; /* a checkpoint has the adapter */
    const uint64_t base = weights_base_fingerprint(job, whole, item->shard_count, states);
    return adapter_read(job, tables, item->shard_count, states, &base, err);
}

/* `states`: per shard of the item. */
static enum status fill_states(struct run *run, struct weight_item *item, float *const *states,
                               struct error *err)
{
    const struct plan *const plan = run->plan;
    const struct job *const job = &plan->jobs.jobs[item->job];
    if (job->first_minibatch > 0) {
        if (job->network.trained) TRY(fill_initial(run, item, states, err)); /* checkpoints have no frozen weights */
        const struct checkpoint_subject subject = run_checkpoint_subject(run, item->job, states);
        struct run_job_result *const result = &run->result->jobs[item->job];
        struct checkpoint_history history = {.losses = result->losses,
                                             .evaluations = result->evaluations,
                                             .evaluation_count = job->first_minibatch};
        if (job->evaluation.every == 0) history.evaluations = NULL;
        TRY(checkpoint_read(run_checkpoint_disk(run), run->options->checkpoints->folder, &subject,
                            job->first_minibatch, &history, &item->found, err));
        result->evaluation_count = item->found.evaluation_count;
        result->best_evaluation = evaluation_best(result->evaluations, result->evaluation_count);
        return fill_best(run, item, err);
    }
    return fill_initial(run, item, states, err);
}

static enum status fill_weights(struct run *run, struct weight_item *item, struct error *err)
{
    struct run_states lent;
    enum status status = run_states_borrow(run, item->first_shard, item->shard_count,
                                           RUN_STATES_FILL, &lent, err);
    if (status == STATUS_OK) status = fill_states(run, item, lent.states, err);
    const enum status saved = run_states_give_back(run, &lent, status == STATUS_OK, err);
    return status != STATUS_OK ? status : saved;
}

/* Notes the checkpoint of a job, and whether software or hardware have changed since. */
static void note_resumed(struct run *run, uint32_t job, const struct checkpoint_found *found)
{
    const struct plan *const plan = run->plan;
    const char *const libraries = run->result->libraries;
    const size_t length = strcspn(libraries, ",");
    run->result->jobs[job].checkpoint = found->step;
    if (strcmp(found->backend, plan->hardware.backend) == 0 && found->threads == run->threads &&
        strlen(found->libraries) == length && strncmp(found->libraries, libraries, length) == 0)
        return;
    run_note(run, "job '%s' was computed by %s (%s, %" PRIu64 " threads) and goes on with %.*s (%s, %"
             PRIu32 " threads): the same bits are not promised", plan->jobs.jobs[job].name,
             found->libraries, found->backend, found->threads, (int)length, libraries,
             plan->hardware.backend, run->threads);
}

enum status run_fill_shards(struct run *run, uint32_t job, uint32_t first_shard, uint32_t shard_count,
                            struct error *err)
{
    struct weight_item item = {.job = job, .first_shard = first_shard, .shard_count = shard_count};
    const enum status status = fill_weights(run, &item, err);
    if (status == STATUS_OK && item.found.step > 0) note_resumed(run, job, &item.found);
    return status;
}

static void *fill_some_weights(void *pointer)
{
    struct weight_work *const work = pointer;
    for (;;) {
        const uint32_t i = atomic_fetch_add(&work->next, 1);
        if (i >= work->count) return NULL;
        struct weight_item *const item = &work->items[i];
        item->error.status = fill_weights(work->run, item, &item->error);
    }
}

/* Fills the copy of a tied table in a pipeline, of which neither files nor checkpoints know. */
static void fill_table(struct run *run, uint32_t job)
{
    const uint32_t first = run->plan->job_first_shard[job], last = run->plan->job_first_shard[job + 1] - 1;
    if (!parallel_is_set(&run->plan->jobs.jobs[job].parallel)) return;
    if (run_is_split(run, first)) run_shares_fill_table(run, job);
    else
        chunk_fill_table(&run->chunks[last], run->states[last], &run->chunks[first], run->states[first]);
}

/* Fills the states of all replicas but the first, unless replicas have shares. */
static void fill_replicas(struct run *run, uint32_t job)
{
    const struct plan *const plan = run->plan;
    for (uint32_t b = 0; b < plan->buffer_count; b++) {
        const struct plan_buffer *const buffer = &plan->buffers[b];
        if (buffer->job != job || buffer->kind != BUFFER_STATE || buffer->on_device ||
            run_is_split(run, plan->job_first_shard[job] + buffer->shard))
            continue;
        for (uint32_t rank = 1; rank < plan_buffer_ranks(plan, buffer); rank++)
            memcpy(run_host_buffer_of(run, b, rank), run_host_buffer(run, b), buffer->bytes);
    }
}

void run_fill_copies(struct run *run, uint32_t job)
{
    fill_table(run, job);
    fill_replicas(run, job);
}

/* Adds the items of jobs that fill in all of their weights, or of those whose base another job has filled in. */
static void add_items(struct run *run, struct weight_work *work, bool fill)
{
    const struct plan *const plan = run->plan;
    work->count = 0;
    atomic_store(&work->next, 0);
    for (uint32_t j = 0; j < plan->jobs.count; j++) {
        const uint32_t first = plan->job_first_shard[j], end = plan->job_first_shard[j + 1];
        const struct job *const job = &plan->jobs.jobs[j];
        const uint32_t step = job_fills_at_once(job) ? end - first : 1;
        if (run_job_failed(run, j) && job->first_minibatch == 0) continue;
        if (plan_has_range(plan, j) || run_ranks_awaits_states(run, j)) continue; /* at its OPEN; from rank 0 */
        if (plan_goes_on_from(plan, j) != PLAN_NONE) continue;                    /* run_moves.h */
        if (run_base_fills(run, j) != fill) continue;
        for (uint32_t s = first; s < end; s += step)
            work->items[work->count++] =
                (struct weight_item){.job = j, .first_shard = s, .shard_count = step};
    }
}

/* Fills all items. This thread works too, without helpers that cannot be started. */
static enum status fill_items(struct run *run, struct weight_work *work, struct error *err)
{
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    pthread_t helpers[FILL_THREADS_MAX];
    uint32_t helper_count = 0;
    while (helper_count + 1 < cores && helper_count + 1 < work->count &&
           helper_count < FILL_THREADS_MAX &&
           pthread_create(&helpers[helper_count], NULL, fill_some_weights, work) == 0)
        helper_count++;
    fill_some_weights(work);
    for (uint32_t i = 0; i < helper_count; i++) pthread_join(helpers[i], NULL);

    for (uint32_t i = 0; i < work->count; i++) {
        struct weight_item *const item = &work->items[i];
        if (item->error.status != STATUS_OK &&
            run_fail_early(run, item->job, &item->error) != STATUS_OK)
            return error_set(err, item->error.status, "%s", item->error.text);
        if (item->error.status == STATUS_OK && item->found.step > 0)
            note_resumed(run, item->job, &item->found);
    }
    return STATUS_OK;
}

/* Fills jobs one base after the other: who shares a base finds it filled in. If the job that was to do so fails, the
 * next one does. */
static enum status fill_jobs(struct run *run, struct error *err)
{
    struct arena scratch = {0};
    struct weight_work work = {.run = run};
    bool *filled = NULL;
    enum status status = ARENA_NEW(&scratch, run->plan->shard_count, work.items, err);
    if (status == STATUS_OK) status = ARENA_NEW(&scratch, run->plan->jobs.count, filled, err);
    if (status == STATUS_OK) add_items(run, &work, true);
    while (status == STATUS_OK && work.count > 0) {
        status = fill_items(run, &work, err);
        for (uint32_t i = 0; i < work.count; i++) filled[work.items[i].job] = true;
        add_items(run, &work, true);
        uint32_t left = 0; /* those that became the first sound ones of their bases */
        for (uint32_t i = 0; i < work.count; i++)
            if (!filled[work.items[i].job]) work.items[left++] = work.items[i];
        work.count = left;
    }
    if (status == STATUS_OK) add_items(run, &work, false);
    if (status == STATUS_OK) status = fill_items(run, &work, err);
    arena_release(&scratch);
    return status;
}

enum status run_fill_all(struct run *run, struct error *err)
{
    const struct plan *const plan = run->plan;
    enum status status = fill_jobs(run, err);
    for (uint32_t j = 0; j < plan->jobs.count && status == STATUS_OK; j++) {
        if (run_ranks_awaits_states(run, j)) continue;
        if (run_is_stored(run, plan->job_first_shard[j])) status = run_storage_fill_table(run, j, err);
        else fill_table(run, j);
    }
    run_ranks_clear_best(run);
    if (status == STATUS_OK) status = run_ranks_scatter(run, err);
    for (uint32_t j = 0; j < plan->jobs.count; j++) fill_replicas(run, j);
    return status;
}
