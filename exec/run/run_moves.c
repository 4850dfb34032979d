#include "exec/run/run_moves.h"

#include <stdatomic.h>
#include <string.h>

#include "base/try.h"
#include "exec/state/run_faults.h"
#include "exec/state/run_peers.h"
#include "exec/state/run_storage.h"

struct run_moves {
    struct device *device;        /* its stream does the moves */
    struct device_stream *stream;
    uint32_t *from, *to;          /* per job: the one that it goes on from, and the one that goes on; PLAN_NONE: none */
    uint64_t *moved;              /* per job: the event after which it has its state; 0: it was not asked for */
    uint64_t *ends;               /* [job][stream of the plan]: the last operation's event */
};

/* --- states ----------------------------------------------------------------------------------- */

/* A place among the tensors of a job's shards. */
struct tensor_place {
    const struct state_tables *tables;
    uint32_t count, shard, entry;
};

static bool next_place(struct tensor_place *place)
{
    place->entry++;
    while (place->shard < place->count && place->entry >= place->tables[place->shard].parts[STATE_WEIGHTS].count) {
        place->shard++;
        place->entry = 0;
    }
    return place->shard < place->count;
}

static struct tensor_place first_place(const struct run *run, uint32_t job)
{
    struct tensor_place place = {.tables = &run->state_tables[run->plan->job_first_shard[job]],
                                 .count = plan_job_shards(run->plan, job), .entry = UINT32_MAX};
    (void)next_place(&place);
    return place;
}

static const struct memory_entry *entry_at(const struct tensor_place *place, uint32_t part)
{
    return &place->tables[place->shard].parts[part].entries[place->entry];
}

static char *address_at(const struct tensor_place *place, float *const *states, uint32_t part)
{
    return (char *)states[place->shard] + place->tables[place->shard].layout.parts[part].offset_bytes +
           entry_at(place, part)->offset_bytes;
}

/* Returns true if both jobs have the same tensors, in the same precision and with the same moments. */
static bool are_alike(const struct run *run, uint32_t from, uint32_t to)
{
    struct tensor_place a = first_place(run, from), b = first_place(run, to);
    bool more_a = a.shard < a.count, more_b = b.shard < b.count;
    while (more_a && more_b) {
        for (uint32_t part = 0; part < STATE_PARTS; part++) {
            const bool has_a = a.tables[a.shard].parts[part].count > 0, has_b = b.tables[b.shard].parts[part].count > 0;
            if (has_a != has_b) return false;
            if (has_a && (entry_at(&a, part)->bytes != entry_at(&b, part)->bytes ||
                          entry_at(&a, part)->layer != entry_at(&b, part)->layer))
                return false;
        }
        more_a = next_place(&a);
        more_b = next_place(&b);
    }
    return more_a == more_b;
}

static void copy_tensors(const struct run *run, uint32_t from, float *const *source, uint32_t to, float *const *target)
{
    struct tensor_place a = first_place(run, from), b = first_place(run, to);
    do {
        for (uint32_t part = 0; part < STATE_PARTS; part++)
            if (b.tables[b.shard].parts[part].count > 0 && entry_at(&b, part)->bytes > 0)
                memcpy(address_at(&b, target, part), address_at(&a, source, part), entry_at(&b, part)->bytes);
    } while (next_place(&a) && next_place(&b));
}

static enum status move_states(struct run *run, uint32_t from, uint32_t to, struct error *err)
{
    const struct plan *const plan = run->plan;
    struct run_states source, target = {0};
    struct error ignored = {0};
    enum status status = run_states_borrow(run, plan->job_first_shard[from], plan_job_shards(plan, from), RUN_STATES_WHOLE,
                                           &source, err);
    if (status == STATUS_OK)
        status = run_states_borrow(run, plan->job_first_shard[to], plan_job_shards(plan, to), RUN_STATES_FILL, &target, err);
    if (status == STATUS_OK) copy_tensors(run, from, source.states, to, target.states);
    (void)!run_states_give_back(run, &target, status == STATUS_OK, &ignored); /* nothing is on storage */
    (void)!run_states_give_back(run, &source, false, &ignored);
    if (status == STATUS_OK) run_fill_copies(run, to);
    return status;
}

/* --- on the stream's thread ------------------------------------------------------------------- */

struct move_call {
    struct run *run;
    uint32_t from, to;
};

/* Returns true if the first job is complete and sound. Ends the second one otherwise, which has not begun. */
static bool may_move(const struct move_call *call)
{
    struct run *const run = call->run;
    const struct run_progress *const before = &run->jobs[call->from];
    const bool sound = run_job_is_sound(run, call->from);
    struct error why = {0};
    pthread_mutex_lock(&run->lock);
    const bool failed = !sound || before->diverged || before->damaged || before->failure.status != STATUS_OK;
    const bool whole = !failed && before->losses == run->plan->jobs.jobs[call->from].minibatches;
    const bool may = whole && atomic_load(&run->jobs[call->to].limit) > 0 && run->fatal.status == STATUS_OK;
    if (!may) run_end_job(run, call->to, false);
    pthread_mutex_unlock(&run->lock);
    if (!failed) return may;
    error_set(&why, STATUS_CHECK, "it was to go on from job '%s', which failed", run->plan->jobs.jobs[call->from].name);
    run_fail_job(run, call->to, true, &why);
    return false;
}

/* Hands over what is known of the training before the second job. */
static void move_history(struct run *run, uint32_t from, uint32_t to)
{
    const struct job *const job = &run->plan->jobs.jobs[to];
    pthread_mutex_lock(&run->lock);
    const struct run_job_result *const before = &run->result->jobs[from];
    struct run_job_result *const result = &run->result->jobs[to];
    memcpy(result->losses, before->losses, job->first_minibatch * sizeof *result->losses);
    if (job->evaluation.every > 0 && before->evaluation_count > 0) {
        memcpy(result->evaluations, before->evaluations, before->evaluation_count * sizeof *result->evaluations);
        result->evaluation_count = before->evaluation_count;
        result->best_evaluation = before->best_evaluation;
    }
    run->jobs[to].taken = true;
    pthread_mutex_unlock(&run->lock);
}

static void call_move(void *argument)
{
    const struct move_call *const call = argument;
    struct error why = {0};
    if (!may_move(call)) return;
    if (move_states(call->run, call->from, call->to, &why) == STATUS_OK) move_history(call->run, call->from, call->to);
    else run_fail_job(call->run, call->to, false, &why);
}

/* --- around operations ------------------------------------------------------------------------ */

static uint64_t *ends_of(const struct run *run, uint32_t job)
{
    return run->moves->ends + (size_t)job * plan_stream_count(run->plan);
}

static void ask_for_state(struct run *run, uint32_t job)
{
    struct run_moves *const moves = run->moves;
    const struct move_call call = {.run = run, .from = moves->from[job], .to = job};
    const uint64_t *const ends = ends_of(run, call.from);
    for (uint32_t s = 0; s < plan_stream_count(run->plan); s++)
        if (ends[s] > 0) device_wait(moves->stream, run->streams[s], ends[s]);
    device_call(moves->stream, call_move, &call, sizeof call, NULL);
    moves->moved[job] = device_record(moves->stream);
}

void run_moves_before(struct run *run, const struct plan_walk_op *op)
{
    const uint32_t job = op->unit->job;
    if (!run->moves || run->moves->from[job] == PLAN_NONE) return;
    if (run->moves->moved[job] == 0) ask_for_state(run, job);
    device_wait(run->streams[op->stream], run->moves->stream, run->moves->moved[job]);
}

void run_moves_after(struct run *run, const struct plan_walk_op *op, uint64_t event)
{
    const uint32_t job = op->unit->job;
    if (run->moves && run->moves->to[job] != PLAN_NONE) ends_of(run, job)[op->stream] = event;
}

const char *run_moves_weights(const struct run *run, uint32_t job, bool *partial)
{
    *partial = false;
    if (!run->moves || run->moves->to[job] == PLAN_NONE) return run->plan->jobs.jobs[job].weights_out;
    uint32_t last = run->moves->to[job];
    if (run->jobs[last].taken) return NULL;
    while (run->moves->to[last] != PLAN_NONE) last = run->moves->to[last];
    *partial = true;
    return run->plan->jobs.jobs[last].weights_out;
}

/* --- making ----------------------------------------------------------------------------------- */

enum status run_moves_create(struct run *run, struct error *err)
{
    const struct plan *const plan = run->plan;
    struct run_moves *moves;
    bool some = false;
    for (uint32_t j = 0; j < plan->jobs.count; j++) some |= plan_goes_on_from(plan, j) != PLAN_NONE;
    if (!some) return STATUS_OK;
    TRY(ARENA_NEW(&run->arena, 1, moves, err));
    TRY(ARENA_NEW(&run->arena, plan->jobs.count, moves->from, err));
    TRY(ARENA_NEW(&run->arena, plan->jobs.count, moves->to, err));
    TRY(ARENA_NEW(&run->arena, plan->jobs.count, moves->moved, err));
    TRY(ARENA_NEW(&run->arena, (size_t)plan->jobs.count * plan_stream_count(plan), moves->ends, err));
    for (uint32_t j = 0; j < plan->jobs.count; j++) moves->to[j] = PLAN_NONE;
    for (uint32_t j = 0; j < plan->jobs.count; j++) {
        const uint32_t from = moves->from[j] = plan_goes_on_from(plan, j);
        if (from == PLAN_NONE) continue;
        if (!are_alike(run, from, j))
            return error_set(err, STATUS_BAD_INPUT, "job '%s' goes on from job '%s', and they have different states",
                             plan->jobs.jobs[j].name, plan->jobs.jobs[from].name);
        moves->to[from] = j;
    }
    run->moves = moves;
    return STATUS_OK;
}

enum status run_moves_start(struct run *run, struct error *err)
{
    struct run_moves *const moves = run->moves;
    if (!moves) return STATUS_OK;
    const struct device_options options = {
        .index = hardware_cpu(&run->plan->hardware) + 4, /* files have the number below */
        .threads = 1,
        .compute_only = true,
        .delay_seed = run->options->delay_seed,
    };
    const enum status status = device_open_host(&options, &moves->device, err);
    if (status != STATUS_OK) return error_add(err, "the stream of moves");
    moves->stream = device_stream(moves->device, STREAM_COMPUTE);
    return STATUS_OK;
}

void run_moves_stop(struct run *run)
{
    if (run->moves) device_stop(run->moves->device);
}

void run_moves_close(struct run *run)
{
    if (run->moves) device_close(run->moves->device);
}
