/*
 * The order arises during the run: when a unit is over, the policy is asked, and its choice is pushed into the walk
 * (plan_walk_push()) and handed to the streams at once. Waits follow from this order.
 *
 *     policy  ->  plan_dispatch_next()  ->  walk  ->  run_enqueue()  ->  streams
 *        ^                                                                 |
 *        +-----  plan_dispatch_over()  <-  a unit's last operations  <-----+
 *
 * A unit is over when its device's streams have passed all its operations (without any, the host's streams). A call
 * after its last operation on each stream counts down, and the last wakes this thread. The next unit that needs
 * pending updates on the host's processor waits for them, by rule 2 of plan.h. Of parallel jobs such a unit is a
 * minibatch, on all devices of the job.
 *
 * Every order is a plan order: of units that leave no state on the device, each in a choice that plan_check() has found
 * room for, or of parallel jobs in memory of their own. So no device exceeds its memory, and no deadlock is possible.
 *
 * In several processes only rank 0 asks. It tells the others each task before it pushes it, and they push it into their
 * walks. A unit is over when each rank's streams have passed it:
 *
 *     rank 0    asks -> tells task -> push ->                  wait -> over
 *     rank 1            take task  -> push -> streams pass -> tell -----^
 *
 * A job's next unit comes after that, so a rank has at most each job's tasks of one unit to come.
 *
 * As in run.c, each job ends the minibatch that it has begun, and the policy is no longer asked. A policy that breaks
 * a rule or whose process fails stops the run in the same way; its error is the run's.
 */
#include "exec/run/run_live.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/process/clock.h"
#include "base/try.h"
#include "exec/run/run_enqueue.h"
#include "exec/state/run_in_flight.h"
#include "exec/state/run_peers.h"
#include "planner/policy/plan_dispatch.h"
#include "planner/policy/plan_executed.h"
#include "planner/policy/policy_process.h"

static const double POLL_S = 0.1;

struct run_live_unit {
    struct run_live *live;
    uint32_t job;
    atomic_uint left; /* not yet passed */
};

struct run_live_told {
    uint32_t task;
    enum run_peers_task what;
};

struct run_live {
    struct run_loop *loop;
    struct plan_dispatch *dispatch; /* NULL: rank 0 has it */
    struct run_live_unit *units;   /* per job */
    struct plan_task *executed; /* in the order of pushing; may be NULL */
    uint64_t executed_count, executed_limit;
    bool *passes;                /* per stream: the unit that is being enqueued has operations there */
    bool without_policy;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint32_t *over;                /* jobs whose units ended since the last check ... */
    double *over_s;                /* ... and when */
    uint32_t over_count;
    struct run_live_told *told;    /* rank after rank 0: a ring of tasks that rank 0 told ... */
    uint64_t told_next, told_count; /* ... of which so many were taken, and have come */
};

/* --- on the streams' threads ----------------------------------------------------------------- */

/* Counts one of those that the unit's end waits for. The last one ends it: here, or at rank 0. */
static void count_down(struct run_live_unit *unit)
{
    struct run_live *const live = unit->live;
    if (atomic_fetch_sub(&unit->left, 1) > 1) return;
    if (!live->dispatch) {
        const struct run_peers_message message = {.kind = PEERS_OVER, .job = unit->job};
        ranks_tell(live->loop->run->peers->ranks, 0, &message, sizeof message);
        return;
    }
    pthread_mutex_lock(&live->lock);
    live->over[live->over_count] = unit->job;
    live->over_s[live->over_count++] = clock_s() - live->loop->run->start_s;
    pthread_cond_signal(&live->changed);
    pthread_mutex_unlock(&live->lock);
}

static void call_behind(void *argument)
{
    struct run_live_unit *unit;
    memcpy(&unit, argument, sizeof unit);
    count_down(unit);
}

/* --- between ranks ----------------------------------------------------------------------------- */

static uint64_t told_limit(const struct run_live *live)
{
    return live->loop->plan->task_count + UINT64_C(1);
}

static void take_task(struct run_live *live, uint32_t task, enum run_peers_task what)
{
    if (!live->told || (what != PEERS_TASK_NONE && task >= live->loop->plan->task_count)) return;
    pthread_mutex_lock(&live->lock);
    const bool fits = live->told_count - live->told_next < told_limit(live);
    if (fits) live->told[live->told_count++ % told_limit(live)] = (struct run_live_told){task, what};
    pthread_cond_signal(&live->changed);
    pthread_mutex_unlock(&live->lock);
    if (!fits) ranks_report(live->loop->run->peers->ranks, "was told more tasks than the plan has");
}

/* Takes what another rank tells. */
static void hear(void *context, const struct run_peers_message *message)
{
    struct run_live *const live = context;
    if (message->kind == PEERS_TASK) take_task(live, message->replica, (enum run_peers_task)message->holds);
    else if (live->dispatch) count_down(&live->units[message->job]);
}

void run_live_listen(struct run_live *live)
{
    struct run_peers *const peers = live ? live->loop->run->peers : NULL;
    if (!peers) return;
    peers->live = live;
    peers->hear_live = hear;
}

/* Tells the other ranks the next task. */
static void tell(const struct run_live *live, uint32_t task, enum run_peers_task what)
{
    const struct run_peers *const peers = live->loop->run->peers;
    const struct run_peers_message message = {.kind = PEERS_TASK, .replica = task, .holds = what};
    if (peers && live->dispatch) ranks_tell_all(peers->ranks, &message, sizeof message);
}

/* --- a unit ---------------------------------------------------------------------------------- */

/* Returns true if the unit's end waits for this stream: of a device, or for a unit without any, of the host. */
static bool waits_for(const struct run_live *live, uint32_t stream, bool on_devices)
{
    const struct plan *const plan = live->loop->plan;
    return live->passes[stream] &&
           (!on_devices || stream < plan->hardware.device_count * plan_device_streams(plan));
}

/* Counts what the end of a unit waits for besides streams: the call below, and other ranks. */
static void begin_end(struct run_live *live, struct run_live_unit *own)
{
    const struct run_peers *const peers = live->loop->run->peers;
    atomic_store(&own->left, peers && live->dispatch ? peers->count : 1);
}

/* Lets a call follow the unit or minibatch on each stream that it waits for. */
static void await_end(struct run_live *live, struct run_live_unit *own)
{
    const struct plan *const plan = live->loop->plan;
    const uint32_t streams = plan_stream_count(plan);
    bool on_devices = false;
    unsigned count = 0;
    for (uint32_t s = 0; s < plan->hardware.device_count * plan_device_streams(plan); s++)
        on_devices |= live->passes[s];
    for (uint32_t s = 0; s < streams; s++) count += waits_for(live, s, on_devices);
    atomic_fetch_add(&own->left, count);
    for (uint32_t s = 0; s < streams; s++)
        if (waits_for(live, s, on_devices))
            device_call(live->loop->run->streams[s], call_behind, &own, sizeof own, NULL);
    memset(live->passes, 0, streams * sizeof *live->passes);
    count_down(own);
}

static enum run_peers_task kind_of(const struct plan_dispatched *next)
{
    if (!next->decided) return PEERS_TASK_FOLLOWS;
    return next->more ? PEERS_TASK_DECIDED : PEERS_TASK_LAST;
}

static enum status enqueue_unit(struct run_live *live, const struct plan_dispatched *next, struct error *err)
{
    struct run_loop *const loop = live->loop;
    struct run_live_unit *const unit = &live->units[loop->plan->units[next->task->unit].job];
    const bool ends = next->decided && !next->more;
    struct plan_walk_op op;
    if (ends) begin_end(live, unit);
    tell(live, (uint32_t)(next->task - loop->plan->tasks), kind_of(next));
    if (live->executed) {
        assert(live->executed_count < live->executed_limit);
        live->executed[live->executed_count++] = *next->task;
    }
    plan_walk_push(loop->walk, next->task);
    while (plan_walk_next(loop->walk, &op)) {
        TRY(run_await_room(loop, &op, err));
        TRY(run_enqueue(loop, &op, false, err));
        live->passes[op.stream] |= next->decided;
    }
    if (plan_walk_failed(loop->walk)) return error_set(err, STATUS_NO_MEMORY, "no memory left to walk the plan");
    if (ends) await_end(live, unit);
    return STATUS_OK;
}

/* --- what comes next ------------------------------------------------------------------------- */

static void end_policy(struct run_live *live)
{
    if (live->without_policy) return;
    live->without_policy = true;
    plan_dispatch_end_policy(live->dispatch);
}

/* Ends the run like a stop, with this error. */
static void fail_policy(struct run_live *live, const struct error *why)
{
    struct run *const run = live->loop->run;
    pthread_mutex_lock(&run->lock);
    if (run->fatal.status == STATUS_OK) run->fatal = *why;
    pthread_mutex_unlock(&run->lock);
    end_policy(live);
}

static void look_at_limits(struct run_live *live)
{
    struct run_loop *const loop = live->loop;
    run_look_at_stop(loop);
    if (loop->stopping) end_policy(live);
    for (uint32_t j = 0; j < loop->plan->jobs.count; j++)
        if (loop->walked[j] >= atomic_load(&loop->run->jobs[j].limit)) plan_dispatch_drop_job(live->dispatch, j);
}

static enum status begin_units(struct run_live *live, struct error *err)
{
    const struct run *const run = live->loop->run;
    for (;;) {
        struct plan_dispatched next;
        struct error why = {0};
        bool found = false;
        look_at_limits(live);
        enum status status =
            plan_dispatch_next(live->dispatch, clock_s() - run->start_s, &next, &found, &why);
        struct error broken = {0};
        if (policy_process_failed(run->options->live, &broken) != STATUS_OK && !live->without_policy) {
            fail_policy(live, &broken);
        } else if (status == STATUS_BAD_INPUT) {
            fail_policy(live, &why);
        } else if (status != STATUS_OK) {
            return error_set(err, status, "%s", why.text);
        } else if (found) {
            TRY(enqueue_unit(live, &next, err));
        } else {
            return STATUS_OK;
        }
    }
}

/* Sleeps until a unit is over or a task is told, or for a moment. */
static void await_change(struct run_live *live)
{
    const double end_s = clock_s() + POLL_S;
    pthread_mutex_lock(&live->lock);
    while (live->over_count == 0 && live->told_next == live->told_count &&
           clock_wait_until(&live->changed, &live->lock, end_s))
        ;
    pthread_mutex_unlock(&live->lock);
}

/* Returns false when no unit has ended. */
static bool end_units(struct run_live *live)
{
    pthread_mutex_lock(&live->lock);
    const uint32_t count = live->over_count;
    for (uint32_t i = 0; i < count; i++) plan_dispatch_over(live->dispatch, live->over[i], live->over_s[i]);
    live->over_count = 0;
    pthread_mutex_unlock(&live->lock);
    return count > 0;
}

/* Takes the next task that rank 0 has told. */
static bool take_told(struct run_live *live, struct run_live_told *out)
{
    pthread_mutex_lock(&live->lock);
    const bool has = live->told_next < live->told_count;
    if (has) *out = live->told[live->told_next++ % told_limit(live)];
    pthread_mutex_unlock(&live->lock);
    return has;
}

/* Walks the tasks that rank 0 tells. */
static enum status follow(struct run_live *live, struct error *err)
{
    struct run_loop *const loop = live->loop;
    struct run_live_told told;
    for (;;) {
        struct run_watch watch = run_watch_begin(loop);
        run_look_at_stop(loop);
        while (!take_told(live, &told)) {
            await_change(live);
            TRY(run_retire_ended(loop, err));
            TRY(run_watch_keep(loop, &watch, err));
        }
        if (told.what == PEERS_TASK_NONE) return STATUS_OK;
        const struct plan_dispatched next = {.task = &loop->plan->tasks[told.task],
                                             .decided = told.what != PEERS_TASK_FOLLOWS,
                                             .more = told.what == PEERS_TASK_DECIDED};
        TRY(enqueue_unit(live, &next, err));
    }
}

enum status run_live_walk(struct run_live *live, struct error *err)
{
    struct run_loop *const loop = live->loop;
    if (!live->dispatch) return follow(live, err);
    enum status status = begin_units(live, err);
    while (status == STATUS_OK && plan_dispatch_running(live->dispatch) > 0) {
        struct run_watch watch = run_watch_begin(loop);
        while (status == STATUS_OK && !end_units(live)) {
            await_change(live);
            status = run_watch_keep(loop, &watch, err);
        }
        if (status == STATUS_OK) status = run_retire_ended(loop, err);
        if (status == STATUS_OK) status = begin_units(live, err);
    }
    if (status == STATUS_OK) tell(live, 0, PEERS_TASK_NONE);
    return status;
}

/* --- before and after ------------------------------------------------------------------------ */

static enum status make_room_for_order(struct run_live *live, struct error *err)
{
    const struct plan *const plan = live->loop->plan;
    for (uint32_t s = 0; s < plan->segment_count; s++)
        live->executed_limit += (uint64_t)plan->segments[s].task_count * plan->segments[s].repeat_count;
    if (live->executed_limit > PLAN_TASKS_MAX)
        return error_set(err, STATUS_LIMIT, "too many units for a trace or a plan of live dispatch "
                         "(limit is %d)", PLAN_TASKS_MAX);
    return ARENA_NEW(&live->loop->run->result->arena, live->executed_limit, live->executed, err);
}

/* Prepares to ask the policy, or to be told. */
static enum status make_dispatch(struct run_live *live, struct error *err)
{
    const struct run_options *const options = live->loop->run->options;
    if (options->live) {
        const struct plan_dispatch_options asked = policy_process_dispatch(options->live, options->live_seed);
        return plan_dispatch_create(live->loop->plan, &asked, &live->dispatch, err);
    }
    live->told = alloc_zeroed(told_limit(live), sizeof *live->told);
    return live->told ? STATUS_OK : error_memory(err, "live dispatch", told_limit(live) * sizeof *live->told);
}

enum status run_live_create(struct run_loop *loop, struct run_live **out, struct error *err)
{
    const struct run_options *const options = loop->run->options;
    const uint32_t jobs = loop->plan->jobs.count;
    struct run_live *live = alloc_zeroed(1, sizeof *live);
    if (!live) return error_memory(err, "live dispatch", sizeof *live);
    live->loop = loop;
    pthread_mutex_init(&live->lock, NULL);
    pthread_cond_init(&live->changed, NULL);
    live->units = alloc_zeroed(jobs, sizeof *live->units);
    live->over = alloc_zeroed(jobs, sizeof *live->over);
    live->over_s = alloc_zeroed(jobs, sizeof *live->over_s);
    live->passes = alloc_zeroed(plan_stream_count(loop->plan), sizeof *live->passes);
    enum status status = STATUS_OK;
    if (!live->units || !live->over || !live->over_s || !live->passes)
        status = error_memory(err, "live dispatch", jobs * sizeof *live->units);
    for (uint32_t j = 0; j < jobs && status == STATUS_OK; j++)
        live->units[j] = (struct run_live_unit){.live = live, .job = j};
    if (status == STATUS_OK) status = make_dispatch(live, err);
    if (status == STATUS_OK && (options->record_spans || options->writer || options->record_order))
        status = make_room_for_order(live, err);
    if (status == STATUS_OK)
        *out = live;
    else
        run_live_destroy(live);
    return status;
}

void run_live_destroy(struct run_live *live)
{
    if (!live) return;
    plan_dispatch_destroy(live->dispatch);
    pthread_cond_destroy(&live->changed);
    pthread_mutex_destroy(&live->lock);
    free(live->units);
    free(live->over);
    free(live->over_s);
    free(live->passes);
    free(live->told);
    free(live);
}

enum status run_live_sum_up(struct run_live *live, struct trace *trace, struct error *err)
{
    const struct run *const run = live->loop->run;
    struct run_result *const result = run->result;
    struct plan_executed executed;
    if (!live->dispatch) return STATUS_OK;
    TRY(arena_string(&trace->arena, policy_process_dispatch(run->options->live, 0).policy->name,
                                      &trace->policy, err));
    result->decisions = plan_dispatch_decisions(live->dispatch);
    if (!live->executed) return STATUS_OK;
    result->order = live->executed;
    result->order_count = live->executed_count;
    if (!trace->complete) return STATUS_OK;
    TRY(plan_executed_make(run->plan, live->executed, (uint32_t)live->executed_count, &executed, err));
    trace->plan_fingerprint = plan_fingerprint(&executed.plan);
    plan_executed_release(&executed);
    return STATUS_OK;
}
