#include "exec/run/run_moves.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/files/spool.h"
#include "base/try.h"
#include "exec/state/run_faults.h"
#include "exec/state/run_peers.h"
#include "exec/state/run_storage.h"
#include "models/jobs/job_files.h"

struct run_moves {
    struct device *device;        /* its stream does the moves */
    struct device_stream *stream;
    uint32_t *from, *to;          /* per job: the one that it goes on from, and the one that goes on; PLAN_NONE: none */
    uint64_t *moved;              /* per job: the event after which it has its state; 0: it was not asked for */
    uint64_t *ends;               /* [job][stream of the plan]: the last operation's event */
    struct spool **waiting;       /* per job: the state that it left in a file, until another job has it */
};

/* --- states ----------------------------------------------------------------------------------- */

/* A place among the tensors of a job's shards: of states, or of best weights. */
struct tensor_place {
    const struct state_tables *tables;
    float *const *values; /* per shard */
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

static struct tensor_place first_place(const struct run *run, uint32_t job, const struct state_tables *all,
                                       float *const *values)
{
    struct tensor_place place = {.tables = &all[run->plan->job_first_shard[job]], .values = values,
                                 .count = plan_job_shards(run->plan, job), .entry = UINT32_MAX};
    (void)next_place(&place);
    return place;
}

static const struct memory_entry *entry_at(const struct tensor_place *place, uint32_t part)
{
    return &place->tables[place->shard].parts[part].entries[place->entry];
}

/* Returns 0 where the job has no such part. */
static uint64_t bytes_at(const struct tensor_place *place, uint32_t part)
{
    return place->tables[place->shard].parts[part].count > 0 ? entry_at(place, part)->bytes : 0;
}

static char *address_at(const struct tensor_place *place, uint32_t part)
{
    return (char *)place->values[place->shard] + place->tables[place->shard].layout.parts[part].offset_bytes +
           entry_at(place, part)->offset_bytes;
}

/* Returns true if both jobs have the same tensors, in the same precision and with the same moments. */
static bool are_alike(const struct run *run, uint32_t from, uint32_t to)
{
    struct tensor_place a = first_place(run, from, run->state_tables, NULL),
                        b = first_place(run, to, run->state_tables, NULL);
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

static void copy_tensors(struct tensor_place from, struct tensor_place to)
{
    do {
        for (uint32_t part = 0; part < STATE_PARTS; part++)
            if (bytes_at(&to, part) > 0) memcpy(address_at(&to, part), address_at(&from, part), bytes_at(&to, part));
    } while (next_place(&from) && next_place(&to));
}

static void write_tensors(struct spool *file, struct tensor_place place)
{
    do {
        for (uint32_t part = 0; part < STATE_PARTS; part++)
            if (bytes_at(&place, part) > 0) spool_write(file, address_at(&place, part), bytes_at(&place, part));
    } while (next_place(&place));
}

static enum status read_tensors(struct spool *file, struct tensor_place place, uint64_t *at, struct error *err)
{
    do {
        for (uint32_t part = 0; part < STATE_PARTS; part++) {
            if (bytes_at(&place, part) == 0) continue;
            TRY(spool_read(file, *at, address_at(&place, part), bytes_at(&place, part), err));
            *at += bytes_at(&place, part);
        }
    } while (next_place(&place));
    return STATUS_OK;
}

static struct tensor_place best_of(const struct run *run, uint32_t job)
{
    return first_place(run, job, run->value_tables, &run->kept[run->plan->job_first_shard[job]]);
}

static enum status borrow(struct run *run, uint32_t job, enum run_states_use use, struct run_states *out,
                          struct error *err)
{
    return run_states_borrow_during(run, run->plan->job_first_shard[job], plan_job_shards(run->plan, job), use, out,
                                    err);
}

/* Writes a job's state, and its best weights, to a file without a name: in the folder of storage, beside the weights
 * that the training is to write, or among temporary files. */
static enum status write_waiting(struct run *run, uint32_t job, struct error *err)
{
    const char *const folder = run->options->storage.folder;
    char path[JOB_PATH_BYTES];
    struct run_states states = {0};
    struct error ignored = {0};
    bool partial;
    snprintf(path, sizeof path, "%s/state", folder ? folder : "");
    TRY(spool_create(folder ? path : run_moves_weights(run, job, &partial), &run->moves->waiting[job], err));
    struct spool *const file = run->moves->waiting[job];
    const enum status status = borrow(run, job, RUN_STATES_WHOLE, &states, err);
    if (status == STATUS_OK) write_tensors(file, first_place(run, job, run->state_tables, states.states));
    (void)!run_states_give_back(run, &states, false, &ignored);
    if (status == STATUS_OK && run->jobs[job].kept) write_tensors(file, best_of(run, job));
    return status;
}

/* Reads the state that `from` left in a file into the host memory of `to`, which may be the same job. */
static enum status read_waiting(struct run *run, uint32_t from, uint32_t to, struct error *err)
{
    struct spool *const file = run->moves->waiting[from];
    struct run_states target = {0};
    uint64_t at = 0;
    enum status status = borrow(run, to, RUN_STATES_FILL, &target, err);
    if (status == STATUS_OK)
        status = read_tensors(file, first_place(run, to, run->state_tables, target.states), &at, err);
    const enum status given = run_states_give_back(run, &target, status == STATUS_OK, err);
    if (status == STATUS_OK) status = given;
    if (status == STATUS_OK && run->jobs[from].kept) status = read_tensors(file, best_of(run, to), &at, err);
    return status;
}

static enum status copy_states(struct run *run, uint32_t from, uint32_t to, struct error *err)
{
    struct run_states source = {0}, target = {0};
    struct error ignored = {0};
    enum status status = borrow(run, from, RUN_STATES_WHOLE, &source, err);
    if (status == STATUS_OK) status = borrow(run, to, RUN_STATES_FILL, &target, err);
    if (status == STATUS_OK)
        copy_tensors(first_place(run, from, run->state_tables, source.states),
                     first_place(run, to, run->state_tables, target.states));
    const enum status given = run_states_give_back(run, &target, status == STATUS_OK, err);
    (void)!run_states_give_back(run, &source, false, &ignored);
    if (status == STATUS_OK) status = given;
    if (status == STATUS_OK && run->jobs[from].kept) copy_tensors(best_of(run, from), best_of(run, to));
    return status;
}

static enum status move_states(struct run *run, uint32_t from, uint32_t to, struct error *err)
{
    TRY((run->moves->waiting[from] ? read_waiting(run, from, to, err) : copy_states(run, from, to, err)));
    run_fill_copies(run, to);
    spool_destroy(run->moves->waiting[from]);
    run->moves->waiting[from] = NULL;
    return STATUS_OK;
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
    run->jobs[to].kept = run->jobs[from].kept;
    run->jobs[to].taken = true;
    pthread_mutex_unlock(&run->lock);
}

static void call_move(void *argument)
{
    const struct move_call *const call = argument;
    struct error why = {0};
    if (!may_move(call)) return;
    if (run_moves_take(call->run, call->to, &why) != STATUS_OK) run_fail_job(call->run, call->to, false, &why);
}

bool run_moves_awaits(const struct run *run, uint32_t job)
{
    return run->moves && run->moves->from[job] != PLAN_NONE;
}

bool run_moves_may_take(struct run *run, uint32_t job)
{
    const struct move_call call = {.run = run, .from = run_moves_awaits(run, job) ? run->moves->from[job] : PLAN_NONE,
                                   .to = job};
    return call.from == PLAN_NONE || may_move(&call);
}

enum status run_moves_take(struct run *run, uint32_t job, struct error *err)
{
    TRY(move_states(run, run->moves->from[job], job, err));
    move_history(run, run->moves->from[job], job);
    return STATUS_OK;
}

void run_moves_leave(struct run *run, uint32_t job)
{
    struct error why = {0};
    const bool goes_on = run->moves && run->moves->to[job] != PLAN_NONE;
    if (!goes_on || run->jobs[job].losses < run->plan->jobs.jobs[job].minibatches || run->jobs[job].diverged) return;
    if (write_waiting(run, job, &why) != STATUS_OK) run_fail_job(run, run->moves->to[job], false, &why);
}

bool run_moves_return(struct run *run, uint32_t job, struct error *err)
{
    if (!run->moves || !run->moves->waiting[job]) return false;
    const enum status status = read_waiting(run, job, job, err);
    if (status == STATUS_OK) run_fill_copies(run, job);
    spool_destroy(run->moves->waiting[job]);
    run->moves->waiting[job] = NULL;
    return status == STATUS_OK;
}

/* --- around operations ------------------------------------------------------------------------ */

static uint64_t *ends_of(const struct run *run, uint32_t job)
{
    return run->moves->ends + (size_t)job * plan_stream_count(run->plan);
}

/* Makes a stream wait for all operations of a job. */
static void await_end(struct run *run, uint32_t job, struct device_stream *stream)
{
    const uint64_t *const ends = ends_of(run, job);
    for (uint32_t s = 0; s < plan_stream_count(run->plan); s++)
        if (ends[s] > 0 && run->streams[s] != stream) device_wait(stream, run->streams[s], ends[s]);
}

static void ask_for_state(struct run *run, uint32_t job)
{
    struct run_moves *const moves = run->moves;
    const struct move_call call = {.run = run, .from = moves->from[job], .to = job};
    await_end(run, call.from, moves->stream);
    device_call(moves->stream, call_move, &call, sizeof call, NULL);
    moves->moved[job] = device_record(moves->stream);
}

void run_moves_before(struct run *run, const struct plan_walk_op *op)
{
    const uint32_t job = op->unit->job;
    if (!run_moves_awaits(run, job)) return;
    if (plan_has_range(run->plan, job)) { /* its OPEN takes the state, and rule 2 of plan.h makes the others wait for
                                             it */
        if (op->op->pass == PLAN_OPEN) await_end(run, run->moves->from[job], run->streams[op->stream]);
        return;
    }
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
    if (run->jobs[last].taken || run->moves->waiting[job]) return NULL;
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
    TRY(ARENA_NEW(&run->arena, plan->jobs.count, moves->waiting, err));
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
    if (!run->moves) return;
    device_close(run->moves->device);
    for (uint32_t j = 0; j < run->plan->jobs.count; j++) spool_destroy(run->moves->waiting[j]);
}
