/*
 * Another solver, as a program: the model as an MPS file in a folder of its own, the program on it
 * until the limit, its solution file read back.
 *
 *     cbc, and files of any other name   FILE model.mps -sec SECONDS -solve -solution solution.txt
 *     highs, and files named so          FILE --time_limit SECONDS --solution_file solution.txt model.mps
 *
 * The solution of CBC begins with a line that says how it ended ("Optimal - objective value 12"),
 * then has a line "index name value cost" for each column that is not 0. That of HiGHS names its
 * sections ("Model status", "# Columns 12") and has a line "name value" for every column. A program of
 * one's own takes the arguments of CBC and writes either.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/files/file.h"
#include "base/process/progress.h"
#include "base/text/number.h"
#include "planner/solve/milp/milp_model.h"

enum { PATH_BYTES = 512, SOLUTION_BYTES_MAX = 1 << 30 };

static const double grace_s = 1; /* to write the solution once its own limit has come */

struct folder {
    char path[PATH_BYTES], model[PATH_BYTES + 16], solution[PATH_BYTES + 16];
};

static enum status make_folder(struct folder *f, struct error *err)
{
    const char *parent = getenv("TMPDIR");
    int length = snprintf(f->path, sizeof f->path, "%s/spillway-milp-XXXXXX",
                          parent && parent[0] == '/' ? parent : "/tmp");
    if (length >= (int)sizeof f->path)
        return error_set(err, STATUS_LIMIT, "TMPDIR is too long (limit is %d bytes)", PATH_BYTES);
    if (!mkdtemp(f->path)) return error_io(err, "cannot make a folder '%s'", f->path);
    snprintf(f->model, sizeof f->model, "%s/model.mps", f->path);
    snprintf(f->solution, sizeof f->solution, "%s/solution.txt", f->path);
    return STATUS_OK;
}

static void remove_folder(const struct folder *f)
{
    unlink(f->model);
    unlink(f->solution);
    rmdir(f->path);
}

/* --- the program ----------------------------------------------------------------------------- */

static void become(const char *const argv[], pid_t parent, int report)
{
    signal(SIGINT, SIG_IGN);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setpgid(0, 0); /* what it starts is ended with it */
    int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (getppid() == parent && nowhere >= 0 && dup2(nowhere, 0) >= 0 && dup2(nowhere, 1) >= 0 &&
        dup2(nowhere, 2) >= 0)
        execvp(argv[0], (char *const *)argv);
    int reason = errno;
    if (write(report, &reason, sizeof reason) < 0) _exit(126);
    _exit(127);
}

static enum status start(const char *const argv[], pid_t *pid, struct error *err)
{
    int ends[2], reason = 0;
    if (pipe2(ends, O_CLOEXEC) != 0) return error_io(err, "cannot start '%s'", argv[0]);
    pid_t parent = getpid();
    *pid = fork();
    if (*pid == 0) become(argv, parent, ends[1]);
    close(ends[1]);
    if (*pid < 0) {
        error_io(err, "cannot start '%s'", argv[0]);
        close(ends[0]);
        return err->status;
    }
    ssize_t length;
    do length = read(ends[0], &reason, sizeof reason);
    while (length < 0 && errno == EINTR);
    close(ends[0]);
    if (length != (ssize_t)sizeof reason) return STATUS_OK;
    waitpid(*pid, NULL, 0);
    return error_set(err, STATUS_DEVICE, "cannot start the solver '%s': %s", argv[0], strerror(reason));
}

/* Wait for its end, and make it end when it is late. */
static int await(pid_t pid, double until_s, bool *killed)
{
    int ended = 0;
    for (struct timespec nap = {0, 1000000};; nap.tv_nsec = nap.tv_nsec < 50000000 ? nap.tv_nsec * 2
                                                                                    : nap.tv_nsec) {
        pid_t done = waitpid(pid, &ended, *killed ? 0 : WNOHANG);
        if (done == pid) return ended;
        if (done < 0 && errno != EINTR) return 0;
        if (!*killed && clock_s() >= until_s) {
            *killed = true;
            if (kill(-pid, SIGKILL) != 0) kill(pid, SIGKILL);
        } else if (!*killed) {
            nanosleep(&nap, NULL);
        }
    }
}

/* --- its solution ---------------------------------------------------------------------------- */

struct names { /* columns by name */
    const struct milp *milp;
    uint32_t *order;
};

static int compare_names(const void *a, const void *b, void *context)
{
    const struct milp *m = context;
    return strcmp(m->columns[*(const uint32_t *)a].name, m->columns[*(const uint32_t *)b].name);
}

static bool find_column(const struct names *n, const char *name, uint32_t *out)
{
    size_t low = 0, high = n->milp->column_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(name, n->milp->columns[n->order[middle]].name);
        if (order == 0) {
            *out = n->order[middle];
            return true;
        }
        if (order < 0) high = middle;
        else low = middle + 1;
    }
    return false;
}

static bool ending(const char *line, enum milp_status *status)
{
    static const struct {
        const char *begins;
        enum milp_status status;
    } endings[] = {{"Optimal", MILP_OPTIMAL},      {"Infeasible", MILP_INFEASIBLE},
                   {"Integer infeasible", MILP_INFEASIBLE}, {"Stopped", MILP_STOPPED},
                   {"Time limit", MILP_STOPPED},   {"Interrupted", MILP_STOPPED},
                   {"Unbounded", MILP_STOPPED}};
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        if (strncmp(line, endings[i].begins, strlen(endings[i].begins)) == 0) {
            *status = endings[i].status;
            return true;
        }
    return false;
}

/* A line "[**] [index] name value [cost]"; false when it is none of a column. */
static bool value_line(const struct names *n, char *line, double *x)
{
    char *words[6], *rest = NULL;
    size_t count = 0;
    for (char *word = strtok_r(line, " \t\r", &rest); word && count < 6; word = strtok_r(NULL, " \t\r", &rest))
        if (strcmp(word, "**") != 0) words[count++] = word;
    for (size_t w = 0; w < 2 && w + 1 < count; w++) {
        uint32_t column;
        const char *end;
        double value;
        if (!find_column(n, words[w], &column)) continue;
        if (!number_read(words[w + 1], &end, &value) || *end) return false;
        x[column] = value;
        return true;
    }
    return false;
}

static enum status parse(const struct names *n, char *text, const char *solver, double *x,
                         enum milp_status *status, uint32_t *values, struct error *err)
{
    bool ended = false;
    char *rest = NULL;
    *values = 0;
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        if (!ended) {
            ended = ending(line, status);
            if (!ended && strncmp(line, "Model status", 12) != 0) break;
        } else if (strncmp(line, "# Rows", 6) == 0) {
            break; /* HiGHS: the rest is about rows */
        } else {
            *values += value_line(n, line, x);
        }
    }
    if (!ended)
        return error_set(err, STATUS_DEVICE, "the solution of the solver '%s' cannot be read", solver);
    return STATUS_OK;
}

static enum status read_solution(const struct milp *milp, const struct folder *folder,
                                 const char *solver, struct milp_result *result, struct error *err)
{
    struct error unread = {0};
    char *text = NULL;
    size_t length;
    if (file_read(folder->solution, SOLUTION_BYTES_MAX, &text, &length, &unread))
        return error_set(err, STATUS_DEVICE, "the solver '%s' left no solution", solver);
    struct names names = {milp, alloc_zeroed(milp->column_count + 1, sizeof *names.order)};
    double *x = alloc_zeroed(milp->column_count + 1, sizeof *x);
    enum milp_status status = MILP_STOPPED;
    uint32_t values = 0;
    if (!names.order || !x) {
        error_memory(err, "a solution", milp->column_count * sizeof *x);
        goto out;
    }
    for (uint32_t c = 0; c < milp->column_count; c++) names.order[c] = c;
    qsort_r(names.order, milp->column_count, sizeof *names.order, compare_names, (void *)(uintptr_t)milp);
    if (parse(&names, text, solver, x, &status, &values, err)) goto out;
    if (status != MILP_INFEASIBLE && !milp_result_take(milp, x, result, err) && status == MILP_OPTIMAL)
        error_set(err, STATUS_DEVICE, "the solution of the solver '%s' breaks the rows it was given", solver);
    if (!err->status) result->status = status;
out:
    free(names.order);
    free(x);
    free(text);
    return err->status;
}

enum status milp_program_solve(const struct milp *milp, const struct milp_options *options,
                               struct milp_result *result, struct error *err)
{
    struct folder folder;
    const char *slash = strrchr(options->solver, '/'), *name = slash ? slash + 1 : options->solver;
    char seconds[32];
    pid_t pid = 0;
    if (make_folder(&folder, err)) return err->status;
    if (milp_write_mps(milp, folder.model, err)) goto out;
    snprintf(seconds, sizeof seconds, "%.3f", options->limit_s);
    const char *highs[] = {options->solver, "--time_limit", seconds, "--solution_file",
                           folder.solution, folder.model, NULL};
    const char *cbc[] = {options->solver, folder.model, "-sec", seconds, "-solve", "-solution",
                         folder.solution, NULL};
    bool is_highs = strncmp(name, "highs", 5) == 0;
    if (start(is_highs ? highs : cbc, &pid, err)) goto out;
    int ended = await(pid, clock_s() + options->limit_s + grace_s, &result->killed);
    if (result->killed) goto out; /* stopped, with nothing told */
    if (WIFSIGNALED(ended)) {
        error_set(err, STATUS_DEVICE, "the solver '%s' was ended by signal %d (%s)", options->solver,
                  WTERMSIG(ended), strsignal(WTERMSIG(ended)));
        goto out;
    }
    if (WEXITSTATUS(ended) != 0) {
        error_set(err, STATUS_DEVICE, "the solver '%s' failed with exit code %d", options->solver,
                  WEXITSTATUS(ended));
        goto out;
    }
    read_solution(milp, &folder, options->solver, result, err);
out:
    remove_folder(&folder);
    return err->status;
}
