/*
 *     parent                              child
 *     fork ------------------------------> load, solve
 *     poll(pipe, time left) <------------- BOUND, SOLUTION x, BOUND, ...
 *     past the limit: SIGKILL              END or FAILED
 *
 * The child gets our limit; `grace_s` is the extra time that it may spend inside one LP.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/process/clock.h"
#include "base/process/launch.h"
#include "planner/solve/milp/milp_model.h"

const char *const milp_solver_names[] = {"glpk", "cbc", "highs", NULL};

static const double grace_s = 0.1;

struct milp_solve_reading {
    int pipe;
    double until_s;
    bool late, ended; /* the clock ran out; the child closed its end */
};

/* Receives all `length` bytes. Returns false if they came late or ended early. */
static bool receive(struct milp_solve_reading *r, void *data, size_t length)
{
    char *at = data;
    while (length > 0) {
        double left = r->until_s - clock_s();
        struct pollfd wait = {.fd = r->pipe, .events = POLLIN};
        int wait_ms = left > 1e6 ? 1000000000 : left > 0 ? (int)(left * 1000) + 1 : 0;
        int ready = poll(&wait, 1, wait_ms);
        if (ready < 0 && errno == EINTR) continue;
        if (ready == 0) {
            r->late = clock_s() >= r->until_s;
            if (r->late) return false;
            continue;
        }
        ssize_t got = read(r->pipe, at, length);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) {
            r->ended = true;
            return false;
        }
        at += got;
        length -= (size_t)got;
    }
    return true;
}

/* Receives one more setting. Returns false if it was not complete, or memory ran out. */
static bool receive_setting(const struct milp_options *options, struct milp_solve_reading *r, double value,
                            struct milp_result *result, struct error *err)
{
    size_t length = options->listed_count;
    assert(result->setting_count < options->list_max);
    if (!result->settings) result->settings = alloc_zeroed(options->list_max * length + 1, 1);
    if (!result->setting_values) result->setting_values = alloc_zeroed(options->list_max, sizeof(double));
    if (!result->settings || !result->setting_values) {
        error_memory(err, "settings", options->list_max * length);
        return false;
    }
    if (!receive(r, result->settings + result->setting_count * length, length)) return false;
    result->setting_values[result->setting_count++] = value;
    return true;
}

/* Returns true if the child ended by itself and said so. */
static bool follow(const struct milp *milp, const struct milp_options *options, struct milp_solve_reading *r,
                   struct milp_result *result, double *x, struct error *err)
{
    struct milp_report report;
    size_t sets = 1 + (size_t)options->variant_count, rows = milp->row_count;
    while (receive(r, &report, sizeof report)) {
        if (report.nodes > result->nodes) result->nodes = report.nodes;
        switch (report.kind) {
        case MILP_REPORT_BOUND:
            result->bound = report.bound;
            result->bounded = true;
            break;
        case MILP_REPORT_SOLUTION:
            if (!receive(r, x, milp->column_count * sizeof *x)) return false;
            if (!milp_result_take(milp, x, result, err)) {
                error_set(err, STATUS_DEVICE, "GLPK's solution breaks its own rows");
                return true;
            }
            break;
        case MILP_REPORT_DUALS:
            assert(result->dual_count < sets);
            if (!result->duals) result->duals = alloc_zeroed(sets * rows + 1, sizeof *result->duals);
            if (!result->duals) {
                error_memory(err, "the duals of a program", sets * rows * sizeof *result->duals);
                return true;
            }
            if (!receive(r, result->duals + result->dual_count * rows, rows * sizeof *result->duals))
                return false; /* an incomplete value */
            result->dual_count++;
            break;
        case MILP_REPORT_SETTING:
            if (!receive_setting(options, r, report.bound, result, err)) return err->status != STATUS_OK;
            break;
        case MILP_REPORT_END:
            result->status = report.status;
            return true;
        case MILP_REPORT_FAILED:
            error_set(err, STATUS_DEVICE, "%s", report.text);
            return true;
        }
    }
    return false;
}

struct glpk_work {
    const struct milp *milp;
    const struct milp_options *options;
    int ends[2];
};

static void become_glpk(void *context)
{
    const struct glpk_work *work = context;
    close(work->ends[0]);
    milp_glpk_child(work->milp, work->options, work->ends[1]);
}

static enum status solve_glpk(const struct milp *milp, const struct milp_options *options,
                              struct milp_result *result, struct error *err)
{
    static const struct launch how = {.death_signal = SIGKILL, .ignores_interrupt = true, /* the parent decides */
                                      .streams = {LAUNCH_SAME, LAUNCH_NOWHERE, LAUNCH_NOWHERE}};
    struct glpk_work work = {.milp = milp, .options = options};
    const int *ends = work.ends;
    pid_t pid;
    double *x = alloc_zeroed(milp->column_count + 1, sizeof *x);
    if (!x) return error_memory(err, "a solution", milp->column_count * sizeof *x);
    if (pipe2(work.ends, O_CLOEXEC) != 0) {
        error_io(err, "cannot start GLPK");
        free(x);
        return err->status;
    }
    const int reason = launch_copy(&how, become_glpk, &work, &pid);
    close(ends[1]);
    if (reason != 0) {
        launch_fail("GLPK", reason, err);
    } else {
        struct milp_solve_reading r = {.pipe = ends[0], .until_s = clock_s() + options->limit_s + grace_s};
        bool told = follow(milp, options, &r, result, x, err);
        struct launch_end end;
        if (!told && r.late) {
            launch_kill(pid);
            result->killed = true;
        } else if (launch_wait(pid, &end, err) == STATUS_OK && !told) {
            if (end.signal != 0)
                error_set(err, STATUS_DEVICE, "GLPK was ended by signal %d (%s)", end.signal, strsignal(end.signal));
            else
                error_set(err, STATUS_DEVICE, "GLPK ended without an answer (exit code %d)", end.exit_code);
        }
    }
    close(ends[0]);
    free(x);
    if (result->dual_count == 0) {
        free(result->duals);
        result->duals = NULL;
    }
    return err->status;
}

enum status milp_solve(const struct milp *milp, const struct milp_options *options,
                       struct milp_result *result, struct error *err)
{
    *result = (struct milp_result){.status = MILP_STOPPED};
    if (milp->err.status) return error_set(err, milp->err.status, "%s", milp->err.text);
    if (options->incumbent && !milp_result_take(milp, options->incumbent, result, err))
        return error_set(err, STATUS_CHECK, "the solution to start from breaks a row or a bound");
    if (err->status) return err->status;
    if (!(options->limit_s > 0)) return STATUS_OK;
    double started = clock_s();
    bool glpk = !options->solver || strcmp(options->solver, milp_solver_names[0]) == 0;
    enum status status = glpk ? solve_glpk(milp, options, result, err)
                              : milp_program_solve(milp, options, result, err);
    result->seconds = clock_s() - started;
    if (options->relaxed || options->listed) return err->status;
    if (!status && result->status == MILP_OPTIMAL && !result->found)
        return error_set(err, STATUS_DEVICE, "the solver says 'optimal' and has no solution");
    if (result->status == MILP_OPTIMAL) {
        result->bound = result->value;
        result->bounded = true;
    }
    return err->status;
}
