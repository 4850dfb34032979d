/*
 * The other process is a contained child, a copy of this one, which loads the shared object, says hello, and answers
 * views until the socket closes:
 *
 *     here                                       there
 *                                                policy_open(), hello: its flags, or why not
 *     question, jobs, devices, costs of jobs
 *                                                create() before decision 0, policy_decide(), answer
 *
 * For callers it is a policy whose choose() asks the process. Answers are checked as others (policy_ask.c). Without an
 * answer, choose() waits, and policy_process_failed() has the reason. Each of several schedules begins with decision 0
 * and its own state.
 */
#include "planner/policy/policy_process.h"

#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/process/contain.h"
#include "planner/policy/policy_load.h"
#include "planner/policy/policy_wire.h"

static const double ANSWER_S = 10;
static const struct contain_limits limits = {.memory_bytes = UINT64_C(8) << 30};

struct policy_process {
    struct policy_handle handle; /* built in */
    struct policy there;         /* of the other process, as it is asked here */
    char name[POLICY_NAME_MAX + 1];
    struct contain_process *process; /* NULL: built in, or ended */
    double answer_s;
    struct error failure;
};

/* --- the other process ----------------------------------------------------------------------- */

/* The view that was sent, in memory of its own. */
struct policy_process_received {
    struct policy_view view;
    struct policy_job *jobs;
    struct policy_device *devices;
    struct policy_cost *costs; /* (job_count, kind_count) */
};

static void received_release(struct policy_process_received *r)
{
    free(r->jobs);
    free(r->devices);
    free(r->costs);
    *r = (struct policy_process_received){.jobs = NULL};
}

static bool receive_view(int socket, struct policy_process_received *r)
{
    struct wire_question q;
    if (!wire_receive(socket, &q, sizeof q)) return false;
    if (q.decision == 0) { /* another schedule may have other jobs */
        received_release(r);
        r->jobs = alloc_zeroed(q.job_count, sizeof *r->jobs);
        r->devices = alloc_zeroed(q.device_count, sizeof *r->devices);
        r->costs = alloc_zeroed((size_t)q.job_count * q.kind_count, sizeof *r->costs);
    }
    if (!r->jobs || !r->devices || !r->costs) return false;
    if (!wire_receive(socket, r->jobs, q.job_count * sizeof *r->jobs) ||
        !wire_receive(socket, r->devices, q.device_count * sizeof *r->devices) ||
        !wire_receive(socket, r->costs, (size_t)q.job_count * q.kind_count * sizeof *r->costs))
        return false;
    for (uint32_t j = 0; j < q.job_count; j++) r->jobs[j].next = r->costs + (size_t)j * q.kind_count;
    r->view = (struct policy_view){.now = q.now,
                                   .jobs = r->jobs,
                                   .devices = r->devices,
                                   .job_count = q.job_count,
                                   .device_count = q.device_count,
                                   .kind_count = q.kind_count,
                                   .device = q.device,
                                   .ahead = q.ahead,
                                   .seed = q.seed,
                                   .decision = q.decision};
    return true;
}

/* Answers views until the other end closes. */
static void answer_views(int socket, const struct policy *policy)
{
    struct policy_process_received r = {.jobs = NULL};
    void *state = NULL;
    while (receive_view(socket, &r)) {
        struct wire_answer answer = {.choice = {POLICY_NONE, POLICY_NONE}};
        if (r.view.decision == 0) {
            if (state && policy->destroy) policy->destroy(state);
            state = policy->create ? policy->create(&r.view) : NULL;
        }
        answer.failed = policy->create && !state;
        if (!answer.failed) answer.chose = policy_decide(policy, state, &r.view, &answer.choice);
        if (!wire_send(socket, &answer, sizeof answer)) break;
    }
    received_release(&r);
    if (state && policy->destroy) policy->destroy(state);
}

/* In the child. It is ended by who asks, not by the signals that ask a run to stop. */
static void live_apart(void *context, int socket)
{
    const char *const name = *(const char *const *)context;
    struct policy_handle handle = {0};
    struct wire_hello hello = {.status = STATUS_OK};
    struct error err = {0};
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    if (policy_open(name, &handle, &err) == STATUS_OK) {
        const struct policy *const policy = handle.policy;
        strncpy(hello.name, policy->name, sizeof hello.name - 1);
        hello.searched = !policy->choose && !policy->rank;
        hello.resident = policy->resident;
        hello.one_device = policy->one_device;
        hello.seats_max = policy->seats_max;
    }
    hello.status = err.status;
    memcpy(hello.error, err.text, sizeof hello.error);
    if (wire_send(socket, &hello, sizeof hello) && err.status == STATUS_OK)
        answer_views(socket, handle.policy);
}

/* --- here ------------------------------------------------------------------------------------ */

/* Ends the process. Writes the reason, for a sentence that begins with the process. */
static const char *end_process(struct policy_process *policy, enum wire_end came, char text[CONTAIN_TEXT_BYTES])
{
    const struct contain_limits told = {.seconds = policy->answer_s};
    struct contain_end end;
    contain_stop(policy->process, came == WIRE_CLOSED, &end);
    policy->process = NULL;
    if (came == WIRE_WRONG) return "wrote something of its own into its socket";
    if (came == WIRE_CLOSED && !end.in_time) return "closed its socket";
    return contain_text(&end, &told, text);
}

static enum wire_end ask_there(struct policy_process *policy, const struct policy_view *view,
                               struct wire_answer *answer)
{
    const struct wire_question q = {.now = view->now,
                                    .job_count = view->job_count,
                                    .device_count = view->device_count,
                                    .kind_count = view->kind_count,
                                    .device = view->device,
                                    .seed = view->seed,
                                    .decision = view->decision,
                                    .ahead = view->ahead};
    const int socket = contain_socket(policy->process);
    if (!wire_send(socket, &q, sizeof q) ||
        !wire_send(socket, view->jobs, view->job_count * sizeof *view->jobs) ||
        !wire_send(socket, view->devices, view->device_count * sizeof *view->devices))
        return WIRE_CLOSED;
    for (uint32_t j = 0; j < view->job_count; j++)
        if (!wire_send(socket, view->jobs[j].next, view->kind_count * sizeof *view->jobs[j].next))
            return WIRE_CLOSED;
    return wire_receive_answer(socket, policy->answer_s, answer);
}

/* Asks the policy in the other process; its choose() here. */
static bool choose_there(void *state, const struct policy_view *view, struct policy_choice *out)
{
    struct policy_process *const policy = state;
    struct wire_answer answer;
    char why[CONTAIN_TEXT_BYTES];
    if (!policy->process) return false;
    const enum wire_end came = ask_there(policy, view, &answer);
    if (came == WIRE_WHOLE) {
        *out = answer.choice;
        if (!answer.failed) return answer.chose;
        error_set(&policy->failure, STATUS_BAD_INPUT, "policy '%s' has made no state (create() returned NULL)",
                  policy->name);
        return false;
    }
    error_set(&policy->failure, STATUS_BAD_INPUT, "policy '%s', decision %" PRIu64 " at %.6g: its process %s",
              policy->name, view->decision + 1, view->now, end_process(policy, came, why));
    return false;
}

static enum status greet(struct policy_process *policy, const char *file, struct error *err)
{
    struct wire_hello hello;
    char why[CONTAIN_TEXT_BYTES];
    const enum wire_end came = wire_receive_hello(contain_socket(policy->process), policy->answer_s, &hello);
    if (came != WIRE_WHOLE)
        return error_set(err, STATUS_BAD_INPUT, "%s: while it was loaded its process %s", file,
                         end_process(policy, came, why));
    if (hello.status != STATUS_OK) return error_set(err, (enum status)hello.status, "%s", hello.error);
    memcpy(policy->name, hello.name, sizeof policy->name);
    policy->there = (struct policy){.version = SPILLWAY_POLICY_VERSION,
                                    .name = policy->name,
                                    .choose = hello.searched ? NULL : choose_there,
                                    .resident = hello.resident,
                                    .seats_max = hello.seats_max,
                                    .one_device = hello.one_device};
    return STATUS_OK;
}

enum status policy_process_open(const char *name, double answer_s, struct policy_process **out, struct error *err)
{
    struct policy_process *policy = alloc_zeroed(1, sizeof *policy);
    if (!policy) return error_memory(err, "a policy", sizeof *policy);
    policy->answer_s = answer_s > 0 ? answer_s : ANSWER_S;
    enum status status = policy_is_file(name) ? contain_start(live_apart, &name, &limits, &policy->process, err)
                                              : policy_open(name, &policy->handle, err);
    if (status == STATUS_OK && policy->process) status = greet(policy, name, err);
    if (status == STATUS_OK)
        *out = policy;
    else
        policy_process_close(policy);
    return status;
}

void policy_process_close(struct policy_process *policy)
{
    char why[CONTAIN_TEXT_BYTES];
    if (!policy) return;
    if (policy->process) end_process(policy, WIRE_LATE, why); /* its destroy() is not waited for: it may loop */
    policy_close(&policy->handle);
    free(policy);
}

struct plan_dispatch_options policy_process_dispatch(struct policy_process *policy, uint64_t seed)
{
    if (policy->handle.policy) return (struct plan_dispatch_options){.policy = policy->handle.policy, .seed = seed};
    return (struct plan_dispatch_options){.policy = &policy->there, .state = policy, .seed = seed};
}

enum status policy_process_failed(const struct policy_process *policy, struct error *err)
{
    if (policy->failure.status == STATUS_OK) return STATUS_OK;
    return error_set(err, policy->failure.status, "%s", policy->failure.text);
}
