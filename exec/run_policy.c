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
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/contain.h"
#include "base/progress.h"
#include "planner/policy_load.h"

static const double ANSWER_S = 10;

struct hello {
    struct error error; /* STATUS_OK: it is loaded */
    char name[POLICY_NAME_MAX + 1];
    bool searched, resident, one_device;
    uint32_t seats_max;
};

struct question {
    double now;
    uint32_t job_count, device_count, kind_count, device;
    uint64_t seed, decision;
    bool ahead;
};

struct answer {
    struct policy_choice choice;
    bool chose, failed; /* failed: create() made no state */
};

struct run_policy {
    struct policy_handle handle; /* built in */
    struct policy there;         /* of the other process, as it is asked here */
    char name[POLICY_NAME_MAX + 1];
    pid_t process;               /* 0: built in, or ended */
    int socket;
    double answer_s;
    struct error failure;
};

/* --- both sides ------------------------------------------------------------------------------ */

/* Whole, or false: nobody is there any more. */
static bool send_all(int socket, const void *data, size_t length)
{
    const char *next = data;
    while (length > 0) {
        const ssize_t sent = send(socket, next, length, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        if (sent <= 0) return false;
        next += sent;
        length -= (size_t)sent;
    }
    return true;
}

/* `until_s`: of clock_s(); *late: that was it. */
static bool receive_all(int socket, void *data, size_t length, double until_s, bool *late)
{
    char *next = data;
    *late = false;
    while (length > 0) {
        const double left_s = until_s - clock_s();
        struct pollfd waiting = {.fd = socket, .events = POLLIN};
        const int ready = poll(&waiting, 1, left_s > 1e6 ? -1 : left_s > 0 ? (int)(left_s * 1e3) + 1 : 0);
        if (ready < 0 && errno == EINTR) continue;
        *late = ready == 0;
        if (ready <= 0) return false;
        const ssize_t got = recv(socket, next, length, 0);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return false;
        next += got;
        length -= (size_t)got;
    }
    return true;
}

static const double NEVER_S = 1e300;

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
    struct question q;
    bool late;
    if (!receive_all(socket, &q, sizeof q, NEVER_S, &late)) return false;
    if (!r->jobs) {
        r->jobs = alloc_zeroed(q.job_count, sizeof *r->jobs);
        r->devices = alloc_zeroed(q.device_count, sizeof *r->devices);
        r->costs = alloc_zeroed((size_t)q.job_count * q.kind_count, sizeof *r->costs);
        if (!r->jobs || !r->devices || !r->costs) return false;
    }
    if (!receive_all(socket, r->jobs, q.job_count * sizeof *r->jobs, NEVER_S, &late) ||
        !receive_all(socket, r->devices, q.device_count * sizeof *r->devices, NEVER_S, &late) ||
        !receive_all(socket, r->costs, (size_t)q.job_count * q.kind_count * sizeof *r->costs, NEVER_S, &late))
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
        struct answer answer = {.choice = {POLICY_NONE, POLICY_NONE}};
        if (!begun && policy->create) {
            state = policy->create(&r.view);
            answer.failed = !state;
        }
        begun = true;
        if (!answer.failed) answer.chose = policy_decide(policy, state, &r.view, &answer.choice);
        if (!send_all(socket, &answer, sizeof answer)) return;
    }
    if (state && policy->destroy) policy->destroy(state);
}

/* It is ended with the run, not by the signals that ask a run to stop. What it prints must not get
 * between the results. */
static _Noreturn void live_apart(int socket, const char *name, pid_t parent)
{
    struct policy_handle handle = {0};
    struct hello hello = {.error = {.status = STATUS_OK}};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(0);
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    dup2(STDERR_FILENO, STDOUT_FILENO);
    if (policy_open(name, &handle, &hello.error) == STATUS_OK) {
        const struct policy *const policy = handle.policy;
        strncpy(hello.name, policy->name, sizeof hello.name - 1);
        hello.searched = !policy->choose && !policy->rank;
        hello.resident = policy->resident;
        hello.one_device = policy->one_device;
        hello.seats_max = policy->seats_max;
    }
    if (send_all(socket, &hello, sizeof hello) && hello.error.status == STATUS_OK)
        answer_views(socket, handle.policy);
    _exit(0);
}

/* --- here ------------------------------------------------------------------------------------ */

/* It is over: why, for a sentence that begins with the process. */
static const char *end_process(struct run_policy *policy, bool late, char text[CONTAIN_TEXT_BYTES])
{
    const struct contain_limits limits = {.seconds = policy->answer_s};
    struct contain_end end = {.in_time = !late};
    int how = 0;
    if (late) kill(policy->process, SIGKILL);
    while (waitpid(policy->process, &how, 0) < 0 && errno == EINTR) {}
    policy->process = 0;
    if (WIFSIGNALED(how)) end.signal = WTERMSIG(how);
    if (WIFEXITED(how)) end.exit_code = WEXITSTATUS(how);
    return contain_text(&end, &limits, text);
}

static bool ask_there(struct run_policy *policy, const struct policy_view *view, struct answer *answer,
                      bool *late)
{
    const struct question q = {.now = view->now,
                               .job_count = view->job_count,
                               .device_count = view->device_count,
                               .kind_count = view->kind_count,
                               .device = view->device,
                               .seed = view->seed,
                               .decision = view->decision,
                               .ahead = view->ahead};
    *late = false;
    if (!send_all(policy->socket, &q, sizeof q) ||
        !send_all(policy->socket, view->jobs, view->job_count * sizeof *view->jobs) ||
        !send_all(policy->socket, view->devices, view->device_count * sizeof *view->devices))
        return false;
    for (uint32_t j = 0; j < view->job_count; j++)
        if (!send_all(policy->socket, view->jobs[j].next, view->kind_count * sizeof *view->jobs[j].next))
            return false;
    return receive_all(policy->socket, answer, sizeof *answer, clock_s() + policy->answer_s, late);
}

/* The choose() of a policy in another process. */
static bool choose_there(void *state, const struct policy_view *view, struct policy_choice *out)
{
    struct run_policy *const policy = state;
    struct answer answer;
    char why[CONTAIN_TEXT_BYTES];
    bool late;
    if (policy->process == 0) return false;
    if (ask_there(policy, view, &answer, &late)) {
        *out = answer.choice;
        if (!answer.failed) return answer.chose;
        error_set(&policy->failure, STATUS_BAD_INPUT, "policy '%s' has made no state (create() returned NULL)",
                  policy->name);
        return false;
    }
    error_set(&policy->failure, STATUS_BAD_INPUT, "policy '%s', decision %" PRIu64 " at %.6g: its process %s",
              policy->name, view->decision + 1, view->now, end_process(policy, late, why));
    return false;
}

static enum status greet(struct run_policy *policy, const char *file, struct error *err)
{
    struct hello hello;
    char why[CONTAIN_TEXT_BYTES];
    bool late;
    if (!receive_all(policy->socket, &hello, sizeof hello, clock_s() + policy->answer_s, &late))
        return error_set(err, STATUS_BAD_INPUT, "%s: while it was loaded its process %s", file,
                         end_process(policy, late, why));
    if (hello.error.status != STATUS_OK) return error_set(err, hello.error.status, "%s", hello.error.text);
    memcpy(policy->name, hello.name, sizeof policy->name);
    policy->name[sizeof policy->name - 1] = '\0';
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
    if (policy->process > 0) {
        kill(policy->process, SIGKILL); /* its destroy() is not waited for: it may loop */
        end_process(policy, false, why);
    }
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
