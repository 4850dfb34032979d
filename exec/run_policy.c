/*
 * The other process begins as a copy of this one, loads the shared object, says hello, and then answers
 * views until the socket closes:
 *
 *     here                                       there
 *                                                policy_open(), hello: its flags, or why not
 *     question, jobs, devices, costs of jobs
 *                                                create() the first time, policy_decide(), answer
 *
 * To plan_dispatch.h the whole is a policy like others, whose choose() asks. Answers are held against the
 * rules where all answers are (policy_ask.c). When one does not come, choose() waits for nothing, and
 * run_policy_failed() says why.
 */
#include "exec/run_policy.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/contain.h"
#include "exec/policy_wire.h"
#include "planner/policy_load.h"

static const double ANSWER_S = 10;

struct run_policy {
    struct policy_handle handle; /* built in */
    struct policy there;         /* of the other process, as it is asked here */
    char name[POLICY_NAME_MAX + 1];
    pid_t process;               /* 0: built in, or ended */
    int socket;
    double answer_s;
    struct error failure;
};

/* --- the other process ----------------------------------------------------------------------- */

/* The view that was sent, in memory of its own. */
struct received {
    struct policy_view view;
    struct policy_job *jobs;
    struct policy_device *devices;
    struct policy_cost *costs; /* (job_count, kind_count) */
};

static bool receive_view(int socket, struct received *r)
{
    struct wire_question q;
    if (!wire_receive(socket, &q, sizeof q)) return false;
    if (!r->jobs) {
        r->jobs = alloc_zeroed(q.job_count, sizeof *r->jobs);
        r->devices = alloc_zeroed(q.device_count, sizeof *r->devices);
        r->costs = alloc_zeroed((size_t)q.job_count * q.kind_count, sizeof *r->costs);
        if (!r->jobs || !r->devices || !r->costs) return false;
    }
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

/* Until nobody asks any more. */
static void answer_views(int socket, const struct policy *policy)
{
    struct received r = {.jobs = NULL};
    void *state = NULL;
    bool begun = false;
    while (receive_view(socket, &r)) {
        struct wire_answer answer = {.choice = {POLICY_NONE, POLICY_NONE}};
        if (!begun && policy->create) {
            state = policy->create(&r.view);
            answer.failed = !state;
        }
        begun = true;
        if (!answer.failed) answer.chose = policy_decide(policy, state, &r.view, &answer.choice);
        if (!wire_send(socket, &answer, sizeof answer)) return;
    }
    if (state && policy->destroy) policy->destroy(state);
}

/* It is ended with the run, not by the signals that ask a run to stop. What it prints must not get
 * between the results. */
static _Noreturn void live_apart(int socket, const char *name, pid_t parent)
{
    struct policy_handle handle = {0};
    struct wire_hello hello = {.status = STATUS_OK};
    struct error err = {0};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(0);
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    dup2(STDERR_FILENO, STDOUT_FILENO);
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
    _exit(0);
}

/* --- here ------------------------------------------------------------------------------------ */

/* Has it ended, a moment after its end of the socket was closed? One that closed it by itself may live on. */
static bool ended_by_itself(pid_t process, int *how)
{
    const struct timespec pause = {.tv_nsec = 10 * 1000 * 1000};
    for (int tries = 0; tries < 200; tries++) {
        if (waitpid(process, how, WNOHANG) == process) return true;
        nanosleep(&pause, NULL);
    }
    return false;
}

/* It is over: why, for a sentence that begins with the process. */
static const char *end_process(struct run_policy *policy, enum wire_end came, char text[CONTAIN_TEXT_BYTES])
{
    const struct contain_limits limits = {.seconds = policy->answer_s};
    struct contain_end end = {.in_time = came != WIRE_LATE};
    int how = 0;
    const bool ended = came == WIRE_CLOSED && ended_by_itself(policy->process, &how);
    if (!ended) {
        kill(policy->process, SIGKILL);
        while (waitpid(policy->process, &how, 0) < 0 && errno == EINTR) {}
    }
    policy->process = 0;
    if (came == WIRE_WRONG) return "wrote something of its own into the executor's socket";
    if (came == WIRE_CLOSED && !ended) return "closed the executor's socket";
    if (WIFSIGNALED(how)) end.signal = WTERMSIG(how);
    if (WIFEXITED(how)) end.exit_code = WEXITSTATUS(how);
    return contain_text(&end, &limits, text);
}

static enum wire_end ask_there(struct run_policy *policy, const struct policy_view *view, struct wire_answer *answer)
{
    const struct wire_question q = {.now = view->now,
                                    .job_count = view->job_count,
                                    .device_count = view->device_count,
                                    .kind_count = view->kind_count,
                                    .device = view->device,
                                    .seed = view->seed,
                                    .decision = view->decision,
                                    .ahead = view->ahead};
    if (!wire_send(policy->socket, &q, sizeof q) ||
        !wire_send(policy->socket, view->jobs, view->job_count * sizeof *view->jobs) ||
        !wire_send(policy->socket, view->devices, view->device_count * sizeof *view->devices))
        return WIRE_CLOSED;
    for (uint32_t j = 0; j < view->job_count; j++)
        if (!wire_send(policy->socket, view->jobs[j].next, view->kind_count * sizeof *view->jobs[j].next))
            return WIRE_CLOSED;
    return wire_receive_answer(policy->socket, policy->answer_s, answer);
}

/* The choose() of a policy in another process. */
static bool choose_there(void *state, const struct policy_view *view, struct policy_choice *out)
{
    struct run_policy *const policy = state;
    struct wire_answer answer;
    char why[CONTAIN_TEXT_BYTES];
    if (policy->process == 0) return false;
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

static enum status greet(struct run_policy *policy, const char *file, struct error *err)
{
    struct wire_hello hello;
    char why[CONTAIN_TEXT_BYTES];
    const enum wire_end came = wire_receive_hello(policy->socket, policy->answer_s, &hello);
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

static enum status start(struct run_policy *policy, const char *file, struct error *err)
{
    int ends[2];
    const pid_t parent = getpid();
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        return error_set(err, STATUS_DEVICE, "cannot make a socket for a policy's process: %s", strerror(errno));
    const pid_t process = fork();
    if (process == 0) {
        close(ends[0]);
        live_apart(ends[1], file, parent);
    }
    close(ends[1]);
    if (process < 0) {
        close(ends[0]);
        return error_set(err, STATUS_DEVICE, "cannot start a policy's process: %s", strerror(errno));
    }
    policy->process = process;
    policy->socket = ends[0];
    return greet(policy, file, err);
}

enum status run_policy_open(const char *name, double answer_s, struct run_policy **out, struct error *err)
{
    struct run_policy *policy = alloc_zeroed(1, sizeof *policy);
    if (!policy) return error_memory(err, "a policy", sizeof *policy);
    policy->socket = -1;
    policy->answer_s = answer_s > 0 ? answer_s : ANSWER_S;
    const enum status status =
        policy_is_file(name) ? start(policy, name, err) : policy_open(name, &policy->handle, err);
    if (status == STATUS_OK)
        *out = policy;
    else
        run_policy_close(policy);
    return status;
}

void run_policy_close(struct run_policy *policy)
{
    char why[CONTAIN_TEXT_BYTES];
    if (!policy) return;
    if (policy->socket >= 0) close(policy->socket);
    if (policy->process > 0) end_process(policy, WIRE_LATE, why); /* its destroy() is not waited for: it may loop */
    policy_close(&policy->handle);
    free(policy);
}

struct plan_dispatch_options run_policy_dispatch(struct run_policy *policy, uint64_t seed)
{
    if (policy->handle.policy) return (struct plan_dispatch_options){.policy = policy->handle.policy, .seed = seed};
    return (struct plan_dispatch_options){.policy = &policy->there, .state = policy, .seed = seed};
}

enum status run_policy_failed(const struct run_policy *policy, struct error *err)
{
    if (policy->failure.status == STATUS_OK) return STATUS_OK;
    return error_set(err, policy->failure.status, "%s", policy->failure.text);
}
