/*
 * Kept outputs of frozen layers: jobs that make them, and jobs that take them (struct job_outputs).
 *
 * A job that makes them has the minibatches that its samples need, and each of these ends with its outputs on the host.
 * A taker's recalls expect there the outputs of the last of them, and minibatches come in order: so all are there. That
 * a copy goes to the place of its minibatch is a rule of interpreters, not of plans.
 */
#include <inttypes.h>

#include "base/size.h"
#include "base/try.h"
#include "models/jobs/job_outputs.h"
#include "planner/check/plan_check_walk.h"
#include "planner/plan_work.h"

static enum status check_maker(struct checker *c, uint32_t job)
{
    const struct job *about = &c->plan->jobs.jobs[job];
    const uint64_t in_each = job_samples(about), all = about->outputs.samples + about->outputs.held_out;
    const uint64_t held_out = about->evaluation.every > 0 ? about->evaluation.minibatches * in_each : 0;
    const uint64_t needed = (all + in_each - 1) / in_each;
    uint64_t bytes;
    if (about->first_minibatch > 0 || about->minibatches != needed)
        return check_fail(c, CHECK_RULE_FORM, "%s makes outputs in %" PRIu64 " minibatches (expected %" PRIu64 ")",
                          about->name, about->minibatches, needed);
    if (!size_mul(needed * in_each, job_output_bytes(about), &bytes))
        return check_fail(c, CHECK_RULE_MEMORY, "%s makes outputs of more than 2^64 bytes", about->name);
    if (about->outputs.held_out != held_out)
        return check_fail(c, CHECK_RULE_FORM, "%s makes outputs of %" PRIu64 " held-out samples (expected %" PRIu64 ")",
                          about->name, about->outputs.held_out, held_out);
    return STATUS_OK;
}

static enum status check_taker(struct checker *c, uint32_t job)
{
    const struct job *about = &c->plan->jobs.jobs[job], *maker = &c->plan->jobs.jobs[about->outputs.maker];
    char text[JOB_OUTPUTS_TEXT];
    if (!job_makes_outputs(maker) || maker->outputs.layers != about->outputs.layers)
        return check_fail(c, CHECK_RULE_FORM, "%s takes outputs of %" PRIu64 " layers, which %s does not make",
                          about->name, about->outputs.layers, maker->name);
    const char *what = job_outputs_differ(maker, about, text);
    if (!what) return STATUS_OK;
    return check_fail(c, CHECK_RULE_FORM, "%s does not compute the outputs of %s: %s", about->name, maker->name, what);
}

enum status check_outputs(struct checker *c, uint32_t job)
{
    const struct job *about = &c->plan->jobs.jobs[job];
    const char *why;
    if (about->outputs.layers == 0) return STATUS_OK;
    if (job_outputs_most(about, &why) < about->outputs.layers)
        return check_fail(c, CHECK_RULE_FORM, "the outputs of the first %" PRIu64 " layers of %s cannot be kept: %s",
                          about->outputs.layers, about->name, why ? why : "not all of them are frozen");
    if (about->outputs.makes) return check_maker(c, job);
    if (about->outputs.maker >= c->plan->jobs.count)
        return check_fail(c, CHECK_RULE_FORM, "%s takes the outputs of job %" PRIu32, about->name,
                          about->outputs.maker);
    return check_taker(c, job);
}

enum status check_outputs_buffer(struct checker *c, uint32_t index)
{
    const struct plan_buffer *b = &c->plan->buffers[index];
    const struct job *job = &c->plan->jobs.jobs[b->job];
    char text[PLAN_TEXT_BYTES];
    if (!job_makes_outputs(job))
        return check_fail(c, CHECK_RULE_FORM, "%s, of a job that makes none", plan_buffer_text(c->plan, index, text));
    const uint64_t one = job_samples(job) * job_output_bytes(job), bytes = b->on_device ? one : one * job->minibatches;
    if (b->bytes == bytes) return STATUS_OK;
    return check_fail(c, CHECK_RULE_MEMORY, "%s has %" PRIu64 " bytes (expected %" PRIu64 ")",
                      plan_buffer_text(c->plan, index, text), b->bytes, bytes);
}

enum status check_outputs_copy(struct checker *c, const struct plan_access *from, const struct plan_access *to)
{
    const struct job *job = &c->plan->jobs.jobs[c->unit->job];
    if (check_buffer_of(c, from)->kind != BUFFER_OUTPUTS) return STATUS_OK;
    if (!job_makes_outputs(job)) return check_fail(c, CHECK_RULE_FORM, "copies kept outputs, which it does not make");
    const uint64_t bytes = job_samples(job) * job_output_bytes(job);
    if (c->op->stream == STREAM_D2H && from->offset_bytes == 0 && to->offset_bytes == 0 && c->op->bytes == bytes)
        return STATUS_OK;
    return check_fail(c, CHECK_RULE_FORM, "copies %" PRIu64 " bytes of kept outputs on the %s stream (expected %" PRIu64
                      ", a minibatch's, on d2h)", c->op->bytes, plan_stream_names[c->op->stream], bytes);
}

static enum status check_recalled_work(struct checker *c)
{
    const struct plan_shard *shard = &c->plan->shards[c->jobs[c->unit->job].first_shard];
    struct work_item expected[PLAN_WORK_ITEMS_MAX];
    const uint32_t count = plan_work_items(&c->plan->jobs.jobs[c->unit->job], 0, shard->layer_count, PLAN_RECALL, 0, 0,
                                           0, expected);
    const struct plan_work *work = c->op->work == PLAN_NONE ? NULL : &c->plan->works[c->op->work];
    const struct work_item *found = work ? &c->plan->items[work->first_item] : NULL;
    if (count == 1 && work && work->item_count == 1 && found->kernel == expected->kernel &&
        found->count == expected->count && found->m == expected->m && found->n == expected->n &&
        found->k == expected->k)
        return STATUS_OK;
    return check_fail(c, CHECK_RULE_WORK, "a recall does not copy the rows of a minibatch");
}

enum status check_recall_op(struct checker *c)
{
    const uint32_t job = c->unit->job;
    const struct job *about = &c->plan->jobs.jobs[job];
    const struct check_shard_facts *f = &c->shards[c->jobs[job].first_shard];
    const struct plan_access *all = &c->plan->accesses[c->op->first_access], *boundary = all + 1;
    const bool held_out = c->unit->pass == PLAN_EVALUATE;
    const struct job *maker = &c->plan->jobs.jobs[about->outputs.maker];
    if (!job_takes_outputs(about) || c->unit->shard != 0 || c->op->row_count != 0 || c->op->slice != 0 ||
        (c->unit->pass != PLAN_FORWARD && c->unit->pass != PLAN_EVALUATE))
        return check_fail(c, CHECK_RULE_FORM, "a recall of outputs that the job does not take");
    if (c->op->access_count != 2 || check_buffer_of(c, all)->kind != BUFFER_OUTPUTS ||
        check_buffer_of(c, all)->on_device || all->flags != ACCESS_READ ||
        check_buffer_of(c, boundary)->kind != BUFFER_BOUNDARY || check_buffer_of(c, boundary)->shard != 1 ||
        check_buffer_of(c, boundary)->on_device || boundary->flags != ACCESS_WRITE)
        return check_fail(c, CHECK_RULE_FORM, "a recall reads the host's outputs and writes the host's boundary");
    if (check_buffer_of(c, boundary)->bytes < f->output_bytes)
        return check_fail(c, CHECK_RULE_MEMORY, "the boundary has %" PRIu64 " bytes (expected %" PRIu64 ")",
                          check_buffer_of(c, boundary)->bytes, f->output_bytes);
    TRY(check_recalled_work(c));
    TRY(check_add_claim(c, all, (struct check_claim){.thing = check_job_thing(c, about->outputs.maker,
                                                                              CHECK_THING_OUTPUTS),
                                                     .kept = true,
                                                     .bytes = job_samples(maker) * job_output_bytes(maker)}));
    return check_add_claim(c, boundary,
                           (struct check_claim){.thing = check_shard_thing(c->jobs[job].first_shard + 1,
                                                                           CHECK_THING_BOUNDARY),
                                                .makes = true, .held_out = held_out, .bytes = f->output_bytes});
}

enum status check_outputs_made(struct check_walk *r, uint32_t job)
{
    const struct job *about = &r->plan->jobs.jobs[job];
    const struct buffer_extent wanted = {.end = job_samples(about) * job_output_bytes(about),
                                         .thing = check_job_thing(r->c, job, CHECK_THING_OUTPUTS),
                                         .version = r->jobs[job].minibatch};
    const uint32_t buffer = r->jobs[job].outputs;
    const struct buffer_extent *found;
    if (buffer != PLAN_NONE && buffer_contents_hold(&r->hosts[r->index_of[buffer]], &wanted, &found)) return STATUS_OK;
    return check_fail(r->c, CHECK_RULE_TRAINING, "the outputs of minibatch %" PRIu64 " of %s are not on the host",
                      r->jobs[job].minibatch, about->name);
}
