/*
 * The child runs the policy and writes a head and, if it succeeded, steps and starts. The parent checks everything that
 * it reads, because the user's code may have overwritten any of it.
 */
#include "planner/policy/trial/policy_trial.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/try.h"
#include "planner/solve/instance/timetable_check.h"

struct policy_trial_head {
    char name[POLICY_NAME_MAX + 1];
    char text[POLICY_TRIAL_TEXT_BYTES];
    enum status status;
    enum policy_rule broken;
    uint32_t task_count;
    int64_t value;
    uint64_t decisions;
    struct policy_decided decided;
    double seconds;
};

struct policy_trial_attempt {
    const char *policy;
    const struct instance *in;
    const struct policy_trial_options *options;
    struct policy_trial_head head;
    struct policy_run run;
};

/* --- trying ---------------------------------------------------------------------------------- */

static void fail(struct policy_trial_head *head, enum status status, enum policy_rule broken, const char *text)
{
    head->status = status;
    head->broken = broken;
    snprintf(head->text, sizeof head->text, "%s", text);
}

/* Returns the number of the first choice that differs, from 1; 0: none. */
static uint32_t first_difference(const struct policy_run *a, const struct policy_run *b)
{
    for (uint32_t t = 0; t < a->task_count && t < b->task_count; t++)
        if (a->steps[t].job != b->steps[t].job || a->steps[t].device != b->steps[t].device)
            return t + 1;
    return a->task_count == b->task_count ? 0 : 1;
}

static void repeat(struct policy_trial_attempt *a, const struct policy *policy,
                   const struct policy_run_options *options)
{
    struct policy_run again = {0};
    struct error err = {0};
    if (policy_run(policy, a->in, options, &again, &err)) {
        fail(&a->head, err.status == STATUS_BAD_INPUT ? STATUS_CHECK : err.status, again.broken, err.text);
    } else {
        uint32_t at = first_difference(&a->run, &again);
        char text[POLICY_TRIAL_TEXT_BYTES];
        if (at > 0) {
            const struct dispatch_step *x = &a->run.steps[at - 1], *y = &again.steps[at - 1];
            snprintf(text, sizeof text,
                     "policy '%s', task %" PRIu32 ": job %" PRIu32 " on device %" PRIu32
                     " the first time and job %" PRIu32 " on device %" PRIu32
                     " the second, with equal views and seeds",
                     policy->name, at, x->job, x->device, y->job, y->device);
            fail(&a->head, STATUS_CHECK, POLICY_RULE_DETERMINISTIC, text);
        }
    }
    policy_run_release(&again);
}

static void attempt(struct policy_trial_attempt *a)
{
    struct policy_handle handle = {0}, other = {0};
    struct policy_run_options options = a->options->run;
    struct error err = {0};
    struct policy_trial_head *head = &a->head;
    if (policy_open(a->policy, &handle, &err) || (a->options->other && policy_open(a->options->other, &other, &err))) {
        fail(head, STATUS_BAD_INPUT, POLICY_RULE_CHOICES, err.text);
        policy_close(&handle);
        return;
    }
    if (a->options->other) options.other = other.policy;
    snprintf(head->name, sizeof head->name, "%s", handle.policy->name);
    if (policy_run(handle.policy, a->in, &options, &a->run, &err))
        fail(head, err.status == STATUS_BAD_INPUT ? STATUS_CHECK : err.status, a->run.broken, err.text);
    else if (a->options->twice)
        repeat(a, handle.policy, &options);
    head->task_count = a->run.task_count;
    head->value = a->run.value;
    head->decisions = a->run.decisions;
    head->seconds = a->run.seconds;
    head->decided = a->run.decided;
    policy_close(&other);
    policy_close(&handle);
}

static void attempt_and_tell(void *context, struct contain_sink *sink)
{
    struct policy_trial_attempt *a = context;
    attempt(a);
    contain_write(sink, &a->head, sizeof a->head);
    if (a->head.status != STATUS_OK) return;
    contain_write(sink, a->run.steps, a->run.task_count * sizeof *a->run.steps);
    contain_write(sink, a->run.starts, a->run.task_count * sizeof *a->run.starts);
}

/* --- listening ------------------------------------------------------------------------------- */

/* Parses a child's report into the attempt. Returns false when it is invalid. */
static bool understand(struct policy_trial_attempt *a, const char *result, size_t length)
{
    uint32_t tasks = a->in->task_count;
    size_t steps_bytes = tasks * sizeof *a->run.steps, starts_bytes = tasks * sizeof *a->run.starts;
    if (length < sizeof a->head) return false;
    memcpy(&a->head, result, sizeof a->head);
    a->head.name[sizeof a->head.name - 1] = a->head.text[sizeof a->head.text - 1] = '\0';
    if ((unsigned)a->head.status >= STATUS_COUNT || (unsigned)a->head.broken >= POLICY_RULE_COUNT)
        return false;
    if (a->head.status != STATUS_OK) return length == sizeof a->head;
    if (a->head.task_count != tasks || length != sizeof a->head + steps_bytes + starts_bytes) return false;
    memcpy(a->run.steps, result + sizeof a->head, steps_bytes);
    memcpy(a->run.starts, result + sizeof a->head + steps_bytes, starts_bytes);
    for (uint32_t t = 0; t < tasks; t++)
        if (a->run.steps[t].job >= a->in->job_count || a->run.steps[t].device >= a->in->device_count)
            return false;
    a->run.task_count = tasks;
    a->run.value = a->head.value;
    a->run.decisions = a->head.decisions;
    a->run.seconds = a->head.seconds;
    a->run.decided = a->head.decided;
    const struct policy_decided *decided = &a->run.decided;
    return !decided->made || decided->waits ||
           (decided->choice.job < a->in->job_count && decided->choice.device < a->in->device_count);
}

static enum status attempt_in_child(struct policy_trial_attempt *a, struct error *err)
{
    const struct contain_limits *limits = &a->options->limits;
    struct contain_end end;
    char why[CONTAIN_TEXT_BYTES], text[256];
    void *result;
    size_t length, tasks = a->in->task_count;
    a->run.steps = alloc_zeroed(tasks, sizeof *a->run.steps);
    a->run.starts = alloc_zeroed(tasks, sizeof *a->run.starts);
    if (!a->run.steps || !a->run.starts)
        return error_memory(err, "a trial", tasks * sizeof *a->run.steps);
    /* the child has a run of its own, to be told by bytes */
    struct policy_trial_attempt child = {.policy = a->policy, .in = a->in, .options = a->options};
    size_t most = sizeof a->head + tasks * (sizeof *a->run.steps + sizeof *a->run.starts);
    TRY(contain_run(attempt_and_tell, &child, limits, most, &result, &length, &end, err));
    if (!result) {
        snprintf(text, sizeof text, "the process of the policy %s", contain_text(&end, limits, why));
        fail(&a->head, STATUS_CHECK, POLICY_RULE_TERMINATES, text);
    } else if (!understand(a, result, length)) {
        fail(&a->head, STATUS_CHECK, POLICY_RULE_TERMINATES,
             "the process of the policy left a result that makes no sense: its memory was overwritten");
    }
    free(result);
    return STATUS_OK;
}

/* --- judging --------------------------------------------------------------------------------- */

static enum status judge(struct policy_trial_attempt *a, struct error *err)
{
    const struct instance *in =
        a->options->run.live && a->options->run.actual ? a->options->run.actual : a->in;
    struct timetable timetable = {0};
    struct error found = {0};
    char text[POLICY_TRIAL_TEXT_BYTES];
    enum status status =
        timetable_place(in, a->run.steps, a->run.starts, a->run.value, &timetable, err);
    if (status == STATUS_OK && timetable_check(in, &timetable, &found)) {
        snprintf(text, sizeof text, "the schedule is wrong: %.900s", found.text);
        fail(&a->head, STATUS_CHECK, POLICY_RULE_MEMORY, text);
    }
    timetable_release(&timetable);
    return status;
}

enum status policy_trial(const char *policy, const struct instance *in,
                         const struct policy_trial_options *options, struct policy_trial *out,
                         struct error *err)
{
    struct policy_trial_attempt a = {.policy = policy, .in = in, .options = options};
    bool contained = policy_is_file(policy) || (options->other && policy_is_file(options->other));
    if (!contained) attempt(&a);
    else if (attempt_in_child(&a, err)) {}
    if (!err->status && a.head.status == STATUS_NO_MEMORY)
        error_set(err, STATUS_NO_MEMORY, "%s", a.head.text);
    if (!err->status && a.head.status == STATUS_OK && judge(&a, err)) {}
    if (err->status) {
        policy_run_release(&a.run);
        return err->status;
    }
    memcpy(out->name, a.head.name, sizeof out->name);
    memcpy(out->text, a.head.text, sizeof out->text);
    out->status = a.head.status;
    out->broken = a.head.broken;
    out->run = a.run;
    return STATUS_OK;
}

void policy_trial_release(struct policy_trial *trial)
{
    policy_run_release(&trial->run);
    *trial = (struct policy_trial){0};
}
