#include "tests/support/exec/support_rough_job.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "planner/check/plan_check.h"
#include "planner/strategy/planner.h"
#include "planner/walk/plan_walk.h"
#include "tests/support/exec/support_checkpoints.h"
#include "tests/support/planner/support_planner.h"
#include "tests/support/support_folder.h"
#include "tests/support/support_memory.h"

char *rough_job_text(const struct rough_job *s, char text[256])
{
    char how[PARALLEL_TEXT_BYTES];
    snprintf(text, 256, "%.60s... %s, %s, recompute %s, %u microbatches, precision %u%s, clip %g, evaluation %u",
             s->config, s->parallel.tensor > 0 ? parallel_text(&s->parallel, how) : "spilled",
             pipeline_schedule_names[s->parallel.schedule], recompute_names[s->parallel.recompute],
             (unsigned)s->microbatches, s->precision, s->encodes ? ", encoded" : "", s->clip, (unsigned)s->every);
    return text;
}

static void make_plan(const struct rough_job *s, struct plan *plan)
{
    struct hardware hardware;
    struct job_set jobs;
    struct error err = {0};
    char text[256];
    const bool spilled = s->parallel.tensor == 0;
    test_hardware(&hardware, spilled ? 1 : (uint32_t)parallel_devices(&s->parallel), 1 << 24, 1e9);
    hardware.backend = "host";
    hardware.threads = 1;
    hardware.host_bandwidth = hardware.types[0].memory_bandwidth;
    if (s->parallel.storage)
        hardware.storage.capacity_bytes = hardware.storage.read_rate = hardware.storage.write_rate =
        hardware.host_bandwidth;
    const struct hardware_options slower = {.dilation = s->dilation, .p2p_bytes_per_s = 1e9};
    if (s->dilation > 0 && hardware_adjust(&hardware, &slower, &err)) fail_msg("%s", err.text);
    test_network_jobs(&jobs, 1, s->config, s->last);
    struct job *job = &jobs.jobs[0];
    job->microbatch = 2;
    job->microbatches = s->microbatches;
    job->precision = s->precision;
    job->optimizer.kind = OPTIMIZER_MOMENTUM;
    job->optimizer.learning_rate = 0.01;
    job->optimizer.clip = s->clip;
    job->evaluation = (struct job_evaluation){.every = s->every, .minibatches = s->held_out};
    job->first_minibatch = s->first;
    job->minibatches = s->last - s->first;
    job->parallel = s->parallel;
    if (s->encodes && !spilled) job->gradients = PRECISION_BF16;
    if (s->encodes && s->parallel.pipeline > 1 && !s->parallel.scatter && !pipeline_has_halves(s->parallel.schedule))
        job->compression[COMPRESSION_BOUNDARIES] =
            (struct compression){.ratio = 2, .encode_bytes_per_s = 1e11, .decode_bytes_per_s = 1e11};
    const struct planner_options options = {.policy = spilled ? "spill-sequential" : NULL, .shards = 3,
                                            .activations = PLANNER_AUTO,
                                            .optimizer = s->clip > 0 ? PLANNER_AUTO : PLANNER_PLACE_DEVICE};
    enum status status = parallel_check(job, &err);
    if (!status) status = planner_plan(&hardware, &jobs, &options, plan, &err);
    if (!status) status = plan_check(plan, &err);
    if (status) fail_msg("%s: %s", rough_job_text(s, text), err.text);
    if (!spilled) assert_true(parallel_is_carried_out(&plan->jobs.jobs[0].parallel));
}

/* Members of a collective of replicas, or over paced links, transfer from the moment when the last one has come; waits
 * are over then. */
static void check_waits(const struct plan *plan, const struct trace *trace, bool paced)
{
    struct plan_walk *walk;
    struct plan_walk_op op;
    struct error err = {0};
    double waited_s = 0, begun_s = 0;
    uint64_t members = 0;
    if (plan_walk_create(plan, NULL, &walk, &err)) fail_msg("%s", err.text);
    while (plan_walk_next(walk, &op)) {
        const struct trace_span *const span = &trace->spans[op.number];
        const bool together = op.op->stream == STREAM_DATA || paced;
        if (op.op->kind != OP_COLLECTIVE || !together || op.join_count < 2) continue;
        if (op.join_at == 0) begun_s = span->start_s;
        assert_true(!(span->start_s < begun_s) && !(span->start_s > begun_s));
        waited_s += span->waited_s;
        members++;
    }
    plan_walk_destroy(walk);
    assert_true(members == 0 || waited_s > 0);
}

/* Carries the setting out until `stop` is set, with checkpoints in `folder`. */
void rough_job_run_until(const struct rough_job *s, const char *folder, uint64_t delay_seed, const volatile bool *stop,
                            struct rough_job_outcome *out)
{
    struct plan plan = {0};
    struct run_result result = {0};
    struct trace trace = {0};
    struct error err = {0};
    char text[256];
    const struct run_checkpoints checkpoints = {.folder = folder, .every_steps = 1, .keep = 100, .each = true};
    const struct run_options options = {.poison = true, .delay_seed = delay_seed, .record_spans = true,
                                        .checkpoints = folder ? &checkpoints : NULL, .stop = stop,
                                        .storage = {.folder = P_tmpdir}};
    make_plan(s, &plan);
    if (run_plan(&plan, &options, &result, &trace, &err)) fail_msg("%s: %s", rough_job_text(s, text), err.text);
    if (trace_check(&trace, &err)) fail_msg("%s: %s", rough_job_text(s, text), err.text);
    if (!result.stopped) assert_memory_as_planned(&plan, &result);
    if (!result.stopped) assert_int_equal(trace.span_count, plan_operations(&plan));
    if (!result.stopped) check_waits(&plan, &trace, s->dilation > 0);
    *out = (struct rough_job_outcome){.fingerprint = result.jobs[0].weights_fingerprint,
                                      .minibatches = result.jobs[0].minibatches,
                            .stopped = result.stopped};
    memcpy(out->losses, result.jobs[0].losses, out->minibatches * sizeof *out->losses);
    out->evaluation_count = result.jobs[0].evaluation_count;
    assert_true(out->evaluation_count <= ROUGH_JOB_EVALUATIONS);
    memcpy(out->evaluations, result.jobs[0].evaluations, out->evaluation_count * sizeof *out->evaluations);
    trace_release(&trace);
    run_result_release(&result);
    plan_release(&plan);
}

void rough_job_run(const struct rough_job *s, const char *folder, uint64_t delay_seed, struct rough_job_outcome *out)
{
    rough_job_run_until(s, folder, delay_seed, NULL, out);
}

void rough_job_compare(const struct rough_job *s, const struct rough_job_outcome *wanted,
                       const struct rough_job_outcome *found)
{
    const double tolerance = s->precision == PRECISION_FP32 ? 1e-5 : 1e-2;
    char text[256];
    assert_int_equal(found->minibatches, s->last);
    for (uint64_t i = 0; i < s->last; i++)
        if (!(fabs(found->losses[i] / wanted->losses[i] - 1) <= tolerance))
            fail_msg("%s: loss %u is %.9g (expected %.9g)", rough_job_text(s, text), (unsigned)i, found->losses[i],
                     wanted->losses[i]);
    assert_int_equal(found->evaluation_count, wanted->evaluation_count);
    for (uint64_t i = 0; i < found->evaluation_count; i++)
        if (!(fabs(found->evaluations[i].loss / wanted->evaluations[i].loss - 1) <= tolerance))
            fail_msg("%s: evaluation %u is %.9g (expected %.9g)", rough_job_text(s, text), (unsigned)i,
                     found->evaluations[i].loss, wanted->evaluations[i].loss);
}

/* Compares all weights after the last step. */
void rough_job_compare_checkpoints(const struct rough_job *s, const char *wanted, const char *found)
{
    struct job_set jobs;
    char text[256];
    test_network_jobs(&jobs, 1, s->config, s->last);
    support_checkpoints_compare(&jobs.jobs[0].network, wanted, found, s->last, rough_job_text(s, text));
    job_set_release(&jobs);
}

void rough_job_same(const struct rough_job *s, const struct rough_job_outcome *wanted,
                    const struct rough_job_outcome *found)
{
    char text[256];
    assert_int_equal(found->minibatches, wanted->minibatches);
    if (memcmp(found->losses, wanted->losses, found->minibatches * sizeof *found->losses) != 0)
        fail_msg("%s: other losses", rough_job_text(s, text));
    for (uint64_t i = 0; i < found->evaluation_count; i++)
        if (memcmp(&found->evaluations[i].loss, &wanted->evaluations[i].loss, sizeof(double)) != 0)
            fail_msg("%s: another evaluation %u", rough_job_text(s, text), (unsigned)i);
    if (found->fingerprint != wanted->fingerprint) fail_msg("%s: other weights", rough_job_text(s, text));
}

void rough_job_go_on(struct rough_job *s, const struct parallel *cuts, uint64_t count)
{
    struct rough_job_outcome wanted, found = {0};
    char one[SUPPORT_FOLDER_BYTES], many[SUPPORT_FOLDER_BYTES];
    support_folder_make(one);
    support_folder_make(many);
    s->last = count;
    rough_job_run(s, one, 0, &wanted);
    for (uint64_t i = 0; i < count; i++) {
        s->parallel = cuts[i];
        s->first = i;
        s->last = i + 1;
        rough_job_run(s, many, 9 + i, &found);
        rough_job_compare(s, &wanted, &found);
    }
    rough_job_compare_checkpoints(s, one, many);
    support_folder_remove(one);
    support_folder_remove(many);
}
