/* Rules are looked at in the order in which one needs the other. */
#include "planner/policy/policy_ask.h"

#include <inttypes.h>

#include "base/process/clock.h"
#include "base/try.h"

const char *const policy_rule_names[POLICY_RULE_COUNT] = {
    [POLICY_RULE_CHOICES] = "chooses among what is there",
    [POLICY_RULE_ORDER] = "keeps the order of units",
    [POLICY_RULE_MEMORY] = "never over memory",
    [POLICY_RULE_TERMINATES] = "terminates",
    [POLICY_RULE_DETERMINISTIC] = "deterministic",
};

enum status policy_session_begin(struct policy_session *session, const struct policy *policy,
                                 const struct policy_view *first, struct error *err)
{
    *session = (struct policy_session){.policy = policy, .timed = session->timed};
    if (!policy->create) return STATUS_OK;
    double started_s = session->timed ? clock_s() : 0;
    session->state = policy->create(first);
    if (session->timed) session->seconds += clock_s() - started_s;
    if (session->state) return STATUS_OK;
    session->broken = POLICY_RULE_TERMINATES;
    return error_set(err, STATUS_NO_MEMORY, "policy '%s' has made no state (create() returned NULL)",
                     policy->name);
}

void policy_session_end(struct policy_session *session)
{
    if (session->state && session->policy->destroy) session->policy->destroy(session->state);
    session->state = NULL;
}

/* "policy 'mine', decision 17 at 3.25: ..." */
static enum status refuse(struct policy_session *session, const struct policy_view *view,
                          enum policy_rule rule, struct error *err)
{
    session->broken = rule;
    return error_add(err, "policy '%s', decision %" PRIu64 " at %.6g", session->policy->name,
                     view->decision + 1, view->now);
}

static enum status check_job(struct policy_session *session, const struct policy_view *view,
                             uint32_t job, struct error *err)
{
    const struct policy_job *j = &view->jobs[job];
    if (policy_is_ready(view, job)) return STATUS_OK;
    if (!(j->remaining > 0))
        error_set(err, STATUS_BAD_INPUT, "returned job %u, which has no units left", job);
    else if (!j->admitted)
        error_set(err, STATUS_BAD_INPUT, "returned job %u, which has no seat", job);
    else if (j->taken)
        error_set(err, STATUS_BAD_INPUT, "returned job %u, which runs or was chosen ahead", job);
    else
        error_set(err, STATUS_BAD_INPUT, "returned job %u, which is not ready before %.6g", job,
                  j->ready);
    return refuse(session, view, POLICY_RULE_ORDER, err);
}

static enum status check_device(struct policy_session *session, const struct policy_view *view,
                                struct policy_choice choice, struct error *err)
{
    const struct policy_job *job = &view->jobs[choice.job];
    const struct policy_device *device = &view->devices[choice.device];
    if (!device->asks) {
        if (device->free > view->now)
            error_set(err, STATUS_BAD_INPUT, "returned device %u, which is busy until %.6g",
                      choice.device, device->free);
        else
            error_set(err, STATUS_BAD_INPUT, "returned device %u, which does not ask (device %u does)",
                      choice.device, view->device);
        return refuse(session, view, POLICY_RULE_CHOICES, err);
    }
    if (job->next_device != POLICY_NONE && job->next_device != choice.device) {
        error_set(err, STATUS_BAD_INPUT, "returned device %u for job %u, whose next unit is on device %u",
                  choice.device, choice.job, job->next_device);
        return refuse(session, view, POLICY_RULE_MEMORY, err);
    }
    if (job->memory > device->memory) {
        error_set(err, STATUS_BAD_INPUT,
                  "returned device %u for job %u, whose next unit takes %" PRIu64
                  " of memory where there are %" PRIu64,
                  choice.device, choice.job, job->memory, device->memory);
        return refuse(session, view, POLICY_RULE_MEMORY, err);
    }
    return STATUS_OK;
}

bool policy_decide(const struct policy *policy, void *state, const struct policy_view *view,
                   struct policy_choice *out)
{
    if (policy->choose) return policy->choose(state, view, out);
    double best = 0;
    bool found = false;
    for (uint32_t j = 0; j < view->job_count; j++) {
        if (!policy_is_ready(view, j)) continue;
        double rank = policy->rank(state, view, j);
        if (found && !(rank > best)) continue;
        /* asked last: it costs the most */
        uint32_t device = policy->emptiest ? policy_emptiest(view, j) : policy_place(view, j);
        if (device == POLICY_NONE) continue;
        *out = (struct policy_choice){j, device};
        best = rank;
        found = true;
    }
    return found;
}

enum status policy_session_ask(struct policy_session *session, struct policy_view *view,
                               struct policy_choice *out, bool *waits, struct error *err)
{
    struct policy_choice choice = {POLICY_NONE, POLICY_NONE};
    view->decision = session->decisions;
    double started_s = session->timed ? clock_s() : 0;
    *waits = !policy_decide(session->policy, session->state, view, &choice);
    if (session->timed) session->seconds += clock_s() - started_s;
    session->decisions++;
    if (*waits) return STATUS_OK;
    if (choice.job >= view->job_count) {
        error_set(err, STATUS_BAD_INPUT, "returned job %" PRIu32 " (there are %" PRIu32 ", from 0)",
                  choice.job, view->job_count);
        return refuse(session, view, POLICY_RULE_CHOICES, err);
    }
    if (choice.device >= view->device_count) {
        error_set(err, STATUS_BAD_INPUT, "returned device %" PRIu32 " (there are %" PRIu32 ", from 0)",
                  choice.device, view->device_count);
        return refuse(session, view, POLICY_RULE_CHOICES, err);
    }
    TRY(check_job(session, view, choice.job, err));
    TRY(check_device(session, view, choice, err));
    *out = choice;
    return STATUS_OK;
}

enum status policy_session_stuck(struct policy_session *session, const struct policy_view *view,
                                 struct error *err)
{
    session->broken = POLICY_RULE_TERMINATES;
    return error_set(err, STATUS_BAD_INPUT,
                     "policy '%s', decision %" PRIu64 " at %.6g: waits although nothing runs that could "
                     "end, so this would never be done", session->policy->name, session->decisions,
                     view->now);
}
