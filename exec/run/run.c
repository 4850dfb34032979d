/*
 * One thread walks the plan (with live dispatch in the policy's order: run_live.c) and hands every operation to its
 * stream (run_enqueue.c). It waits for no operation, so work overlaps as far as the plan allows. run_callbacks.c has
 * the functions that streams call; run_in_flight.c limits the distance between walk and streams, and records ended
 * operations.
 *
 * Stopping. A job that has begun a minibatch must end it, else its shards would be of different steps. When the flag
 * is set, each job's limit becomes the number of minibatches that it has begun, and enqueued work beyond is skipped
 * when its turn comes. A skipped operation still enqueues its waits, because others rely on them. State that the plan
 * would have written back later is written back at the end (run_write_back.c).
 *
 * A job that fails, stops for a loss that is not finite, or loses its device gets such a limit for itself
 * (run_faults.c); the walk continues for the others. With live dispatch it has no further operations, and its state is
 * written back at the end, too.
 */
#include "exec/run/run.h"

#include <math.h>
#include <string.h>

#include "base/process/clock.h"
#include "base/size.h"
#include "base/try.h"
#include "exec/run/run_enqueue.h"
#include "exec/run/run_live.h"
#include "exec/run/run_ranks.h"
#include "exec/run/run_result.h"
#include "exec/state/run_in_flight.h"
#include "exec/state/run_loop.h"
#include "exec/state/run_peers.h"
#include "exec/state/run_saver.h"
#include "exec/state/run_write_back.h"
#include "models/cost/cost.h"
#include "planner/plan_files.h"

/* --- the walk ----------------------------------------------------------------------------------- */

/* Returns true when, while stopping, some job's last minibatch is not completely enqueued. */
static bool work_is_left(const struct run_loop *loop)
{
    for (uint32_t j = 0; j < loop->plan->jobs.count; j++)
        if (loop->walked[j] < loop->run->jobs[j].limit) return true;
    return false;
}

static enum status walk_all(struct run_loop *loop, struct error *err)
{
    enum status status = STATUS_OK;
    struct plan_walk_op op;
    while (status == STATUS_OK && plan_walk_next(loop->walk, &op)) {
        status = run_await_room(loop, &op, err);
        if (status != STATUS_OK) break;
        run_look_at_stop(loop);
        if (loop->stopping && !work_is_left(loop) && op.join_at == 0) break;
        const bool own_pace = parallel_has_own_pace(&loop->plan->jobs.jobs[op.unit->job].parallel);
        const uint64_t minibatch = own_pace ? loop->walked[op.unit->job] : op.minibatch; /* an update ends it */
        const bool beyond = loop->stopping && minibatch >= loop->run->jobs[op.unit->job].limit;
        status = run_enqueue(loop, &op, beyond && !run_saves_state(loop, &op), err);
    }
    if (status == STATUS_OK && plan_walk_failed(loop->walk))
        status = error_set(err, STATUS_NO_MEMORY, "no memory left to walk the plan");
    return status;
}

/* --- before -------------------------------------------------------------------------------------- */

static void predict_p2p(struct run_loop *loop, const struct plan_task *task)
{
    const struct plan *const plan = loop->plan;
    const struct plan_unit *const unit = &plan->units[task->unit];
    for (uint32_t o = unit->first_op; o < unit->first_op + unit->op_count; o++) {
        if (plan->ops[o].stream != STREAM_P2P) continue;
        const uint32_t from = plan_task_peer(plan, task, 0), to = plan_task_device(plan, task, 0);
        loop->predicted_s[o] = cost_p2p_s(&plan->hardware, from, to, plan->ops[o].bytes);
        loop->predicted_max_s = fmax(loop->predicted_max_s, loop->predicted_s[o]);
    }
}

static void predict(struct run_loop *loop)
{
    const struct plan *const plan = loop->plan;
    for (uint32_t i = 0; i < plan->op_count; i++) {
        const struct plan_op *const op = &plan->ops[i];
        double seconds = 0;
        if (op->kind == OP_COPY && plan_stream_is_host(op->stream)) {
            seconds = cost_storage_s(&plan->hardware,
                                     op->stream == STREAM_READ ? STORAGE_READ : STORAGE_WRITE,
                                     op->bytes);
        } else if (op->kind == OP_COPY && op->stream != STREAM_P2P) {
            seconds = cost_copy_s(&plan->hardware, 0,
                                  op->stream == STREAM_H2D ? COPY_H2D : COPY_D2H, op->bytes);
        } else if (plan_op_of_files(op)) {
            seconds = plan_file_s(plan, &plan->hardware, op);
        } else if (op->kind == OP_COMPUTE && op->work != PLAN_NONE) {
            const struct plan_work *const work = &plan->works[op->work];
            const bool host = plan_stream_is_host(op->stream);
            const uint32_t device = host ? hardware_cpu(&plan->hardware) : 0;
            seconds = cost_work_s(&plan->hardware, device, &plan->items[work->first_item],
                                  work->item_count, NULL);
        }
        loop->predicted_s[i] = seconds;
        loop->predicted_max_s = fmax(loop->predicted_max_s, seconds);
    }
    for (uint32_t i = 0; i < plan->task_count; i++)
        if (plan->tasks[i].peer != PLAN_NONE) predict_p2p(loop, &plan->tasks[i]);
    for (uint32_t s = 0; s < plan->segment_count; s++) {
        const struct plan_segment *const segment = &plan->segments[s];
        double once_s = 0;
        for (uint32_t i = 0; i < segment->task_count; i++) {
            const struct plan_unit *const unit =
                &plan->units[plan->tasks[segment->first_task + i].unit];
            for (uint32_t o = unit->first_op; o < unit->first_op + unit->op_count; o++)
                if (plan->ops[o].kind == OP_COMPUTE) once_s += loop->predicted_s[o];
        }
        loop->total_s += once_s * segment->repeat_count;
    }
}

static size_t count_passes(const struct plan *plan)
{
    size_t count = 0;
    for (uint32_t s = 0; s < plan->shard_count; s++) count += run_shard_places(plan, s);
    return count;
}

static enum status loop_init(struct run_loop *loop, struct error *err)
{
    struct run *const run = loop->run;
    const struct plan *const plan = run->plan;
    const size_t device_buffers = (size_t)plan->hardware.device_count * plan->buffer_count;
    const size_t users = run->options->poison ? device_buffers * STREAM_HOST : 0;
    const struct {
        size_t count, size;
        void *out; /* the address of a pointer */
    } arrays[] = {
        {RUN_WINDOW, sizeof *loop->flights, &loop->flights},
        {plan_stream_count(plan), sizeof *loop->backlog_s, &loop->backlog_s},
        {plan_stream_count(plan), sizeof *loop->ended_s, &loop->ended_s},
        {plan->op_count, sizeof *loop->predicted_s, &loop->predicted_s},
        {plan->jobs.count, sizeof *loop->walked, &loop->walked},
        {plan->jobs.count, sizeof *loop->targets, &loop->targets},
        {plan->jobs.count, sizeof *loop->last, &loop->last},
        {count_passes(plan), sizeof *loop->passes, &loop->passes},
        {plan->shard_count, sizeof *loop->first_passes, &loop->first_passes},
        {device_buffers, sizeof *loop->states, &loop->states},
        {run->storage ? plan->buffer_count : 0, sizeof *loop->staged, &loop->staged},
        {users, sizeof *loop->users, &loop->users},
    };
    for (size_t i = 0; i < ARRAY_COUNT(arrays); i++)
        TRY(arena_array(&run->arena, arrays[i].count, arrays[i].size, arrays[i].out, err));
    for (uint32_t s = 1; s < plan->shard_count; s++)
        loop->first_passes[s] = loop->first_passes[s - 1] + run_shard_places(plan, s - 1);
    predict(loop);
    return run_is_live(run->options) ? plan_walk_create_open(plan, &loop->walk, err)
                                     : plan_walk_create(plan, NULL, &loop->walk, err);
}

/* --- public -------------------------------------------------------------------------------------- */

enum status run_plan(const struct plan *plan, const struct run_options *options,
                     struct run_result *result, struct trace *trace, struct error *err)
{
    struct run run = {.plan = plan, .options = options, .result = result,
                      .lock = PTHREAD_MUTEX_INITIALIZER};
    struct run_loop loop = {.run = &run, .plan = plan};
    struct run_live *live = NULL;
    const double setup_s = clock_s();
    enum status status = run_is_live(options) ? run_live_create(&loop, &live, err) : STATUS_OK;
    if (status == STATUS_OK) status = run_setup(&run, err);
    if (status == STATUS_OK) status = loop_init(&loop, err);
    if (status == STATUS_OK) status = run_saver_create(&run, loop.states, &run.saver, err);
    if (status == STATUS_OK)
        status = run_record_create(plan, options->record_spans, options->writer, trace, &loop.record, err);
    if (status != STATUS_OK) goto out;

    run_live_listen(live);
    run_ranks_listen(&run);
    run.start_s = clock_s();
    result->setup_s = run.start_s - setup_s;
    status = run_ranks_begin_trace(&loop, err);
    const struct load_mark begun = load_now();
    if (status == STATUS_OK) status = live ? run_live_walk(live, err) : walk_all(&loop, err);
    while (status == STATUS_OK && loop.oldest < loop.next) status = run_retire_flight(&loop, err);
    const struct load_mark ended = load_now();
    result->load = load_between(&begun, &ended);
    if (status == STATUS_OK && (loop.stopping || live)) status = run_save_states(&loop, err);
    if (status == STATUS_OK) status = run_ranks_gather(&loop, err);
    if (status == STATUS_OK) status = run_ranks_gather_trace(&loop, err);
    if (status == STATUS_OK) status = run_sum_up(&loop, trace, err);
    if (status == STATUS_OK && live) status = run_live_sum_up(live, trace, err);
out:
    status = run_ranks_close(&run, status, err);
    const char *const end = status != STATUS_OK ? err->text : result->stopped ? "stopped" : "complete";
    const double elapsed_s = run.start_s > 0 ? clock_s() - run.start_s : 0;
    run_saver_stop(run.saver); /* before the streams, which may wait for it */
    run_teardown(&run); /* ends the streams before their data */
    struct error unwritten = {0};
    result->log_failed = run_log_close(run.log, end, elapsed_s, &unwritten) != STATUS_OK;
    if (result->log_failed) run_result_unwritten(result, &unwritten);
    run_saver_destroy(run.saver);
    run_live_destroy(live);
    spool_destroy(loop.ended);
    run_record_destroy(loop.record);
    plan_walk_destroy(loop.walk);
    pthread_mutex_destroy(&run.lock);
    return status;
}
