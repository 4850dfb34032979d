/*
 * The plan has a piece for each unfinished job. At an interval's end pieces have ended, run or have not begun. The
 * first decision is which running pieces go on: all, none, all but one, none but one. The others' remaining work then
 * makes a smaller instance, on devices free after the continuing pieces. The best plan is taken if it ends soon enough:
 * other running pieces end at once, and pieces not begun are dropped.
 *
 *     left of a job: `left` ticks of the configuration it had last, which takes `whole`; in another,
 *     of t ticks, ceil(left * t / whole), and a restart if it had begun
 */
#include "planner/saturn/spase/spase_introspect.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/try.h"
#include "planner/saturn/spase/spase_baseline.h"
#include "planner/saturn/spase/spase_search.h"

struct spase_introspect_piece {
    struct spase_piece at;
    uint32_t *devices;   /* (device_count of the instance): room for the widest gang */
    int64_t left, whole; /* ticks of work at its start, and of its configuration in all */
    bool begun;          /* an earlier piece of this job was recorded, however short */
    bool done;
};

struct course {
    const struct spase *in;
    const struct spase_introspect_options *options;
    struct spase_introspect_piece *plan, *trial, *best; /* (job_count) */
    uint32_t *devices;                                  /* room for all pieces of the three */
    bool *holds;                                        /* (job_count): goes on as it is */
    int64_t *free_at;                                   /* (device_count) */
    uint32_t *jobs;                                     /* (job_count): of the smaller instance's jobs */
    struct spase_step *steps;
    uint32_t class_of[SPASE_DEVICES_MAX];
    struct spase_course *out;
};

static int64_t end_of_plan(const struct course *c, const struct spase_introspect_piece *plan)
{
    int64_t end = 0;
    for (uint32_t j = 0; j < c->in->job_count; j++)
        if (!plan[j].done && plan[j].at.end > end) end = plan[j].at.end;
    return end;
}

static void copy_plan(const struct course *c, struct spase_introspect_piece *to,
                      const struct spase_introspect_piece *from)
{
    for (uint32_t j = 0; j < c->in->job_count; j++) {
        uint32_t *devices = to[j].devices;
        memcpy(devices, from[j].devices, from[j].at.device_count * sizeof *devices);
        to[j] = from[j];
        to[j].devices = devices;
    }
}

static enum status record(struct course *c, const struct spase_introspect_piece *piece, int64_t end, struct error *err)
{
    struct spase_course *out = c->out;
    TRY(array_reserve(&out->pieces, &out->piece_capacity, out->piece_count, sizeof *out->pieces,
                      SPASE_INTERVALS_MAX * 64, "pieces of jobs", err));
    struct spase_piece made = piece->at;
    made.first_device = (uint32_t)out->device_count;
    for (uint32_t i = 0; i < made.device_count; i++) {
        TRY(array_reserve(&out->devices, &out->device_capacity, out->device_count, sizeof *out->devices, UINT32_MAX,
                          "devices of pieces", err));
        out->devices[out->device_count++] = piece->devices[i];
    }
    made.end = end;
    if (made.restart > end - made.start) made.restart = end - made.start;
    out->pieces[out->piece_count++] = made;
    if (end > out->makespan) out->makespan = end;
    return STATUS_OK;
}

/* --- remaining work --------------------------------------------------------------------------- */

/* Returns a piece's work left when stopped at `now`, in ticks of its configuration. */
static int64_t left_at(const struct spase_introspect_piece *piece, int64_t now)
{
    int64_t worked = now - piece->at.start - piece->at.restart;
    return worked > 0 ? piece->left - worked : piece->left;
}

/* Makes the instance of unfinished jobs that do not go on, with their remaining work. */
static enum status make_rest(const struct course *c, int64_t now, struct spase *rest, struct error *err)
{
    const struct spase *in = c->in;
    uint32_t jobs = 0, configs = 0;
    for (uint32_t j = 0; j < in->job_count; j++)
        if (!c->plan[j].done && !c->holds[j]) {
            c->jobs[jobs++] = j;
            configs += in->jobs[j].config_count;
        }
    TRY(spase_init(rest, in->class_count, in->node_count, jobs, configs, err));
    for (uint32_t k = 0; k < in->class_count; k++) rest->class_names[k] = in->class_names[k];
    for (uint32_t n = 0; n < in->node_count; n++) rest->nodes[n] = in->nodes[n];
    configs = 0;
    for (uint32_t i = 0; i < jobs; i++) {
        const struct spase_job *job = &in->jobs[c->jobs[i]];
        const struct spase_introspect_piece *piece = &c->plan[c->jobs[i]];
        bool begun = piece->begun || piece->at.start < now;
        int64_t left = piece->at.start < now ? left_at(piece, now) : piece->left;
        rest->jobs[i] = (struct spase_job){.name = job->name, .first_config = configs,
                                           .config_count = job->config_count};
        for (uint32_t o = 0; o < job->config_count; o++, configs++) {
            rest->configs[configs] = in->configs[job->first_config + o];
            for (uint32_t k = 0; k < in->class_count; k++) {
                int64_t t = spase_ticks(in, job->first_config + o, k), ticks = SPASE_NOWHERE;
                if (t != SPASE_NOWHERE)
                    ticks = (int64_t)(((__int128)left * t + piece->whole - 1) / piece->whole) +
                            (begun ? c->options->restart_ticks : 0);
                rest->ticks[(size_t)configs * in->class_count + k] = ticks;
            }
        }
    }
    return spase_finish(rest, err);
}

/* Turns a schedule of the rest into pieces of c->trial. */
static void replan_rest(struct course *c, const struct spase *rest, const struct spase_schedule *schedule,
                        int64_t now)
{
    for (uint32_t i = 0; i < rest->job_count; i++) {
        uint32_t j = c->jobs[i];
        const struct spase_introspect_piece *old = &c->plan[j];
        struct spase_introspect_piece *piece = &c->trial[j];
        const struct spase_task *task = &schedule->tasks[i];
        const uint32_t *devices = schedule->devices + schedule->device_first[i];
        uint32_t config = c->in->jobs[j].first_config + (task->config - rest->jobs[i].first_config);
        bool begun = old->begun || old->at.start < now;
        int64_t restart = begun ? c->options->restart_ticks : 0;
        piece->at = (struct spase_piece){.job = j, .config = config,
                                         .device_count = schedule->device_first[i + 1] - schedule->device_first[i],
                                         .start = now + task->start, .end = now + task->start + task->ticks,
                                         .restart = restart};
        piece->left = task->ticks - restart;
        piece->whole = spase_ticks(c->in, config, c->class_of[devices[0]]);
        piece->begun = begun;
        piece->done = false;
        memcpy(piece->devices, devices, piece->at.device_count * sizeof *devices);
    }
}

/* --- planning again -------------------------------------------------------------------------- */

/* Plans the rest after the continuing jobs, from `now` on. */
static enum status plan_rest(struct course *c, const struct spase *rest, uint64_t iterations, int64_t now,
                             struct spase_schedule *schedule, struct error *err)
{
    int64_t value;
    uint64_t made;
    struct spase_search_options search = {.seed = c->options->seed, .iterations = iterations,
                                          .until_s = HUGE_VAL, .free_at = c->free_at};
    memset(c->free_at, 0, c->in->device_count * sizeof *c->free_at);
    for (uint32_t j = 0; j < c->in->job_count; j++)
        for (uint32_t i = 0; c->holds[j] && i < c->plan[j].at.device_count; i++)
            c->free_at[c->plan[j].devices[i]] = c->plan[j].at.end - now;
    if (c->options->optimus
            ? spase_baseline_run(rest, SPASE_BASELINE_OPTIMUS, 0, c->free_at, c->steps, &value, err)
            : spase_search(rest, &search, false, c->steps, &value, &made, err))
        return err->status;
    return spase_schedule_make(rest, c->steps, c->free_at, schedule, err);
}

/* Plans the rest with the current c->holds, and keeps it in c->best if it ends before *end. */
static enum status try_holding(struct course *c, uint64_t iterations, int64_t now, int64_t *end, struct error *err)
{
    struct spase rest = {0};
    struct spase_schedule schedule = {0};
    bool any = false;
    for (uint32_t j = 0; j < c->in->job_count; j++) any |= !c->plan[j].done && !c->holds[j];
    if (!any) return STATUS_OK;
    if (!make_rest(c, now, &rest, err) && !plan_rest(c, &rest, iterations, now, &schedule, err)) {
        copy_plan(c, c->trial, c->plan);
        replan_rest(c, &rest, &schedule, now);
        int64_t ends = end_of_plan(c, c->trial);
        if (ends < *end) {
            *end = ends;
            copy_plan(c, c->best, c->trial);
        }
    }
    spase_schedule_release(&schedule);
    spase_release(&rest);
    return err->status;
}

static bool running(const struct spase_introspect_piece *piece, int64_t now)
{
    return !piece->done && piece->at.start < now && piece->at.end > now;
}

/* Ends pieces that c->best stops, if it changes running or later ones. */
static enum status change_plan(struct course *c, int64_t now, struct error *err)
{
    for (uint32_t j = 0; j < c->in->job_count; j++) {
        bool stays = c->best[j].at.start == c->plan[j].at.start;
        if (running(&c->plan[j], now) && !stays) TRY(record(c, &c->plan[j], now, err));
    }
    copy_plan(c, c->plan, c->best);
    c->out->replans++;
    return STATUS_OK;
}

static enum status plan_again(struct course *c, int64_t now, struct error *err)
{
    uint32_t jobs = c->in->job_count, count = 0;
    int64_t planned = end_of_plan(c, c->plan), end = planned;
    for (uint32_t j = 0; j < jobs; j++) count += running(&c->plan[j], now);
    uint64_t iterations = c->options->iterations / (2u * count + 2u) + 1;
    for (uint32_t choice = 0; choice < 2; choice++) { /* all go on, and all but one; none, and none but one */
        for (uint32_t j = 0; j < jobs; j++) c->holds[j] = choice == 0 && running(&c->plan[j], now);
        TRY(try_holding(c, iterations, now, &end, err));
        for (uint32_t j = 0; j < jobs && count > 1; j++) {
            if (!running(&c->plan[j], now)) continue;
            c->holds[j] = !c->holds[j];
            TRY(try_holding(c, iterations, now, &end, err));
            c->holds[j] = !c->holds[j];
        }
    }
    if (end < planned && end <= planned - c->options->threshold_ticks) return change_plan(c, now, err);
    return STATUS_OK;
}

/* Returns the number of unfinished jobs. */
static enum status end_pieces(struct course *c, int64_t now, uint32_t *left, struct error *err)
{
    *left = 0;
    for (uint32_t j = 0; j < c->in->job_count; j++) {
        struct spase_introspect_piece *piece = &c->plan[j];
        if (!piece->done && piece->at.end <= now) {
            TRY(record(c, piece, piece->at.end, err));
            piece->done = true;
        }
        *left += !piece->done;
    }
    return STATUS_OK;
}

/* --- the whole ------------------------------------------------------------------------------- */

static enum status begin(struct course *c, const struct spase_step *steps, struct error *err)
{
    const struct spase *in = c->in;
    struct spase_schedule schedule = {0};
    uint32_t jobs = in->job_count;
    size_t rooms = (size_t)jobs * in->device_count;
    c->plan = alloc_zeroed(jobs, sizeof *c->plan);
    c->trial = alloc_zeroed(jobs, sizeof *c->trial);
    c->best = alloc_zeroed(jobs, sizeof *c->best);
    c->devices = alloc_zeroed(3 * rooms, sizeof *c->devices);
    c->holds = alloc_zeroed(jobs, sizeof *c->holds);
    c->free_at = alloc_zeroed(in->device_count, sizeof *c->free_at);
    c->jobs = alloc_zeroed(jobs, sizeof *c->jobs);
    c->steps = alloc_zeroed(jobs, sizeof *c->steps);
    if (!c->plan || !c->trial || !c->best || !c->devices || !c->holds || !c->free_at || !c->jobs || !c->steps)
        return error_memory(err, "introspection", 3 * rooms * sizeof *c->devices);
    for (uint32_t n = 0; n < in->node_count; n++)
        for (uint32_t d = 0; d < in->nodes[n].device_count; d++)
            c->class_of[in->nodes[n].first_device + d] = in->nodes[n].class;
    for (uint32_t j = 0; j < jobs; j++) {
        uint32_t *room = c->devices + (size_t)j * in->device_count;
        c->jobs[j] = j;
        c->plan[j] = (struct spase_introspect_piece){.devices = room};
        c->trial[j].devices = room + rooms;
        c->best[j].devices = room + 2 * rooms;
    }
    TRY(spase_schedule_make(in, steps, NULL, &schedule, err));
    copy_plan(c, c->trial, c->plan);
    replan_rest(c, in, &schedule, 0);
    copy_plan(c, c->plan, c->trial);
    spase_schedule_release(&schedule);
    return STATUS_OK;
}

enum status spase_introspect(const struct spase *in, const struct spase_step *steps,
                             const struct spase_introspect_options *options, struct spase_course *out,
                             struct error *err)
{
    struct course *c = alloc_zeroed(1, sizeof *c);
    uint32_t left = 1;
    if (!c) return error_memory(err, "introspection", sizeof *c);
    c->in = in;
    c->options = options;
    c->out = out;
    if (begin(c, steps, err)) goto out;
    if (end_of_plan(c, c->plan) / options->interval_ticks >= SPASE_INTERVALS_MAX) {
        error_set(err, STATUS_LIMIT, "too many intervals (limit is %d)", SPASE_INTERVALS_MAX);
        goto out;
    }
    for (int64_t now = options->interval_ticks;; now += options->interval_ticks) {
        if (end_pieces(c, now, &left, err) || left == 0) break;
        out->intervals++;
        if (plan_again(c, now, err)) break;
    }
out:
    free(c->plan);
    free(c->trial);
    free(c->best);
    free(c->devices);
    free(c->holds);
    free(c->free_at);
    free(c->jobs);
    free(c->steps);
    free(c);
    return err->status;
}

void spase_course_release(struct spase_course *course)
{
    free(course->pieces);
    free(course->devices);
    *course = (struct spase_course){0};
}
