/*
 * With link_s for a base to cross and c for a job's minibatch, one job alone takes max(link_s, c) for a minibatch,
 * and k together max(link_s, k c): together they are at most k times as fast, and no faster where c >= link_s.
 */
#include "cli/reports/cli_shared_base.h"

#include <inttypes.h>

#include "base/extreme.h"
#include "base/text/quantity.h"
#include "models/cost/cost.h"
#include "models/jobs/job_base.h"
#include "planner/pass_seconds.h"

struct shared_base {
    uint32_t jobs;               /* that share it */
    uint64_t bytes;              /* in host memory */
    double crossings;            /* bytes fetched in the whole run, over all of its bytes */
    double link_s, compute_s;    /* in a minibatch of the longest job: of copies of the base, and of all jobs' passes on
                                  * devices, each added up */
    double gain;                 /* at most, over one job after the other, each with the base to itself */
};

struct counting {
    const struct plan *plan;
    uint32_t owner;
    double fetched_bytes, link_s, compute_s;
};

/* Adds an operation that is carried out `times` times. */
static void count_op(struct counting *c, const struct plan_task *task, const struct plan_op *op, double times)
{
    const struct plan *plan = c->plan;
    const struct plan_unit *unit = &plan->units[task->unit];
    const struct plan_buffer *from = &plan->buffers[plan->accesses[op->first_access].buffer];
    if (op->kind == OP_COPY && op->stream == STREAM_H2D && from->kind == BUFFER_BASE && from->job == c->owner) {
        c->fetched_bytes += times * (double)op->bytes;
        c->link_s += times * pass_seconds_copy(&plan->hardware, task->device, COPY_H2D, op->bytes);
    } else if (op->kind == OP_COMPUTE && op->stream == STREAM_COMPUTE && op->work != PLAN_NONE &&
               job_base_owner(&plan->jobs, unit->job) == c->owner) {
        const struct plan_work *work = &plan->works[op->work];
        c->compute_s += times * cost_work_s(&plan->hardware, task->device, plan->items + work->first_item,
                                            work->item_count, NULL);
    }
}

static void count_all(struct counting *c)
{
    const struct plan *plan = c->plan;
    for (uint32_t s = 0; s < plan->segment_count; s++)
        for (uint32_t t = 0; t < plan->segments[s].task_count; t++) {
            const struct plan_task *task = &plan->tasks[plan->segments[s].first_task + t];
            const struct plan_unit *unit = &plan->units[task->unit];
            for (uint32_t o = 0; o < unit->op_count; o++)
                count_op(c, task, &plan->ops[unit->first_op + o], plan->segments[s].repeat_count);
        }
}

/* Works out the base of job `owner`; false: the job owns none. */
static bool work_out(const struct plan *plan, uint32_t owner, struct shared_base *out)
{
    struct counting c = {.plan = plan, .owner = owner};
    double longest = 0, all = 0;
    *out = (struct shared_base){0};
    if (job_base_owner(&plan->jobs, owner) != owner) return false;
    for (uint32_t j = owner; j < plan->jobs.count; j++) {
        if (job_base_owner(&plan->jobs, j) != owner) continue;
        out->jobs++;
        all += (double)plan->jobs.jobs[j].minibatches;
        longest = max_s(longest, (double)plan->jobs.jobs[j].minibatches);
    }
    for (uint32_t b = 0; b < plan->buffer_count; b++)
        if (plan->buffers[b].kind == BUFFER_BASE && plan->buffers[b].job == owner && !plan->buffers[b].on_device)
            out->bytes += plan->buffers[b].bytes;
    count_all(&c);
    out->crossings = out->bytes > 0 ? c.fetched_bytes / (double)out->bytes : 0;
    out->link_s = c.link_s / longest;
    out->compute_s = c.compute_s / longest;
    const double alone = all * max_s(out->link_s, c.compute_s / all), together = max_s(c.link_s, c.compute_s);
    out->gain = together > 0 ? alone / together : 1;
    return true;
}

/* Returns the base's name, or its owner's. */
static const char *name_of(const struct plan *plan, uint32_t owner)
{
    const struct job *job = &plan->jobs.jobs[owner];
    return job->base ? job->base : job->name;
}

void cli_shared_base_print(FILE *out, const struct plan *plan, int width)
{
    char bytes[QUANTITY_TEXT_BYTES], link[QUANTITY_TEXT_BYTES], compute[QUANTITY_TEXT_BYTES];
    for (uint32_t j = 0; j < plan->jobs.count; j++) {
        struct shared_base base;
        if (!work_out(plan, j, &base)) continue;
        fprintf(out, "%-*s%s of '%s', for %" PRIu32 " job%s: in a minibatch of all it crosses in %s, and they "
                "compute for %s; ",
                width, "base", quantity_text((double)base.bytes, DIMENSION_BYTES, bytes), name_of(plan, j), base.jobs,
                base.jobs == 1 ? "" : "s", quantity_text(base.link_s, DIMENSION_SECONDS, link),
                quantity_text(base.compute_s, DIMENSION_SECONDS, compute));
        if (base.gain > 1.005) fprintf(out, "sharing gains at most %.2f times\n", base.gain);
        else fputs("sharing gains no time\n", out);
    }
}

void cli_shared_base_json(struct json_out *json, const struct plan *plan)
{
    struct shared_base base;
    bool any = false;
    for (uint32_t j = 0; j < plan->jobs.count; j++) any |= plan->jobs.jobs[j].shares_base;
    if (!any) return;
    json_out_array_begin(json, "bases", false);
    for (uint32_t j = 0; j < plan->jobs.count; j++) {
        if (!work_out(plan, j, &base)) continue;
        json_out_object_begin(json, NULL, true);
        json_out_string(json, "base", name_of(plan, j));
        json_out_u64(json, "jobs", base.jobs);
        json_out_u64(json, "bytes", base.bytes);
        json_out_double(json, "crossings", base.crossings);
        json_out_double(json, "link_s", base.link_s);
        json_out_double(json, "compute_s", base.compute_s);
        json_out_double(json, "gain", base.gain);
        json_out_object_end(json);
    }
    json_out_array_end(json);
}
