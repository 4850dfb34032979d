/*
 * Writes the model as an MPS file to a folder of its own, runs a program until the limit, and reads its solution file.
 *
 *     cbc, and files of any other name   FILE model.mps -sec SECONDS -solve -solution solution.txt
 *     highs, and files named so          FILE --time_limit SECONDS --solution_file solution.txt model.mps
 *
 * CBC's solution begins with its end ("Optimal - objective value 12"), then has a line "index name value cost" per
 * column that is not 0. HiGHS's names its sections ("Model status", "# Columns 12") and has a line "name value" for
 * every column. A user's program gets CBC's arguments and writes either form.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/files/file.h"
#include "base/files/folder.h"
#include "base/process/clock.h"
#include "base/process/launch.h"
#include "base/text/number.h"
#include "base/try.h"
#include "planner/solve/milp/milp_model.h"

enum { PATH_BYTES = 512, SOLUTION_BYTES_MAX = 1 << 30 };

static const double grace_s = 1; /* to write the solution after its own limit */

struct milp_program_folder {
    char path[PATH_BYTES], model[PATH_BYTES + 16], solution[PATH_BYTES + 16];
};

static enum status make_folder(struct milp_program_folder *f, struct error *err)
{
    TRY(folder_make_temporary("milp", f->path, sizeof f->path, err));
    snprintf(f->model, sizeof f->model, "%s/model.mps", f->path);
    snprintf(f->solution, sizeof f->solution, "%s/solution.txt", f->path);
    return STATUS_OK;
}

/* --- its solution ---------------------------------------------------------------------------- */

struct milp_program_names { /* columns by name */
    const struct milp *milp;
    uint32_t *order;
};

static int compare_names(const void *a, const void *b, void *context)
{
    const struct milp *m = context;
    return strcmp(m->columns[*(const uint32_t *)a].name, m->columns[*(const uint32_t *)b].name);
}

static bool find_column(const struct milp_program_names *n, const char *name, uint32_t *out)
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

/* Reads a line "[**] [index] name value [cost]". Returns false if it is not about a column. */
static bool value_line(const struct milp_program_names *n, char *line, double *x)
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

static enum status parse(const struct milp_program_names *n, char *text, const char *solver, double *x,
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

static enum status read_solution(const struct milp *milp, const struct milp_program_folder *folder,
                                 const char *solver, struct milp_result *result, struct error *err)
{
    struct error unread = {0};
    char *text = NULL;
    size_t length;
    if (file_read(folder->solution, SOLUTION_BYTES_MAX, &text, &length, &unread))
        return error_set(err, STATUS_DEVICE, "the solver '%s' left no solution", solver);
    struct milp_program_names names = {milp, alloc_zeroed(milp->column_count + 1, sizeof *names.order)};
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

/* Runs the program. A program that is stopped at its limit has no result: result->killed. */
static enum status run(const char *const argv[], const struct milp_options *options, struct milp_result *result,
                       struct error *err)
{
    const struct launch how = {.argv = argv, .by_name = true, .death_signal = SIGKILL, .ignores_interrupt = true,
                               .streams = {LAUNCH_NOWHERE, LAUNCH_NOWHERE, LAUNCH_NOWHERE}};
    struct launch_end end;
    pid_t child;
    const int reason = launch_program(&how, &child);
    if (reason != 0)
        return error_set(err, STATUS_DEVICE, "cannot start the solver '%s': %s", argv[0], strerror(reason));
    TRY(launch_wait_until(child, clock_s() + options->limit_s + grace_s, &end, err));
    result->killed = end.late;
    if (end.late) return STATUS_OK;
    if (end.signal != 0)
        return error_set(err, STATUS_DEVICE, "the solver '%s' was ended by signal %d (%s)", argv[0], end.signal,
                         strsignal(end.signal));
    if (end.exit_code != 0)
        return error_set(err, STATUS_DEVICE, "the solver '%s' failed with exit code %d", argv[0], end.exit_code);
    return STATUS_OK;
}

enum status milp_program_solve(const struct milp *milp, const struct milp_options *options,
                               struct milp_result *result, struct error *err)
{
    struct milp_program_folder folder;
    const char *slash = strrchr(options->solver, '/'), *name = slash ? slash + 1 : options->solver;
    char seconds[32];
    TRY(make_folder(&folder, err));
    snprintf(seconds, sizeof seconds, "%.3f", options->limit_s);
    const char *highs[] = {options->solver, "--time_limit", seconds, "--solution_file",
                           folder.solution, folder.model, NULL};
    const char *cbc[] = {options->solver, folder.model, "-sec", seconds, "-solve", "-solution",
                         folder.solution, NULL};
    bool is_highs = strncmp(name, "highs", 5) == 0;
    if (!milp_write_mps(milp, folder.model, err) && !run(is_highs ? highs : cbc, options, result, err) &&
        !result->killed)
        (void)!read_solution(milp, &folder, options->solver, result, err);
    folder_remove(folder.path);
    return err->status;
}
