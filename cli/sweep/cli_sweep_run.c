/*
 * Rank r of `count` computes every count-th pending point. No rank waits before the end, when rank 0 receives results,
 * which do not show the rank.
 */
#include "cli/sweep/cli_sweep_run.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/process/children.h"
#include "base/process/progress.h"
#include "base/try.h"
#include "cli/sweep/report_figure.h"

struct sweep_run_running {
    const struct cli_sweep *sweep;
    struct cli_sweep_words **words; /* per running point */
    unsigned char *pending;         /* per point: at the beginning, equal on all ranks */
    uint64_t next_point, seen;      /* pending points passed */
    uint64_t wanted, known;         /* rank 0: points to compute; known */
    struct progress progress;
    struct error first;             /* not started */
};

const char *cli_sweep_point(const struct sweep_grid *grid, uint64_t point, char text[CLI_SWEEP_POINT_BYTES])
{
    size_t used = 0;
    text[0] = '\0';
    for (uint32_t a = 0; a < grid->axis_count && used < CLI_SWEEP_POINT_BYTES; a++)
        used += (size_t)snprintf(text + used, CLI_SWEEP_POINT_BYTES - used, "%s%s=%s", a ? ", " : "",
                                 grid->axes[a].name, sweep_grid_value(grid, point, a)->text);
    return text;
}

/* --- the next point -------------------------------------------------------------------------- */

static bool mine(struct sweep_run_running *running, uint64_t point)
{
    const struct sweep_ranks *ranks = running->sweep->ranks;
    return running->pending[point] && running->seen++ % ranks->count == ranks->rank;
}

static bool next(void *context, struct children_start *out)
{
    struct sweep_run_running *running = context;
    const struct cli_sweep *sweep = running->sweep;
    while (running->next_point < sweep->grid->point_count && !mine(running, running->next_point)) running->next_point++;
    if (running->next_point == sweep->grid->point_count || running->first.status != STATUS_OK) return false;
    uint64_t point = running->next_point++;
    struct cli_sweep_words *words = alloc_zeroed(1, sizeof *words);
    if (!words) {
        error_memory(&running->first, "a point's words", sizeof *words);
        return false;
    }
    if (cli_sweep_words(sweep->command, sweep->grid, point, words, &running->first) != STATUS_OK) {
        free(words);
        return false;
    }
    running->words[point] = words;
    *out = (struct children_start){.argv = words->argv, .id = point};
    return true;
}

/* --- results ----------------------------------------------------------------------------------- */

static enum status record(struct sweep_run_running *running, const struct sweep_result *result, struct error *err)
{
    const struct cli_sweep *sweep = running->sweep;
    sweep->results->points[result->point] = *result;
    progress_update(&running->progress, (double)++running->known, NULL);
    return sweep->kept ? sweep_kept_add(sweep->kept, result, err) : STATUS_OK;
}

static void read_figures(const struct sweep_results *results, const struct children_end *end,
                         struct sweep_result *result)
{
    json_t *report = json_loadb(end->output, end->output_length, 0, NULL);
    for (uint32_t f = 0; report && f < results->figure_count; f++)
        result->figures[f] = sweep_figure_read(report, results->figures[f]);
    json_decref(report);
}

/* Names the user's jobs file in messages, not the temporary one. */
static void name_jobs(const struct cli_sweep *sweep, const char *temporary, struct sweep_result *result)
{
    char behind[SWEEP_REASON_BYTES];
    char *name = temporary ? strstr(result->reason, temporary) : NULL;
    if (!name) return;
    const char *rest = name + strlen(temporary);
    rest += strspn(rest, ":0123456789");
    snprintf(behind, sizeof behind, "%s%s", rest[-1] == ':' ? ":" : "", rest);
    snprintf(name, sizeof result->reason - (size_t)(name - result->reason), "%s%s", sweep->command->jobs_path, behind);
}

static void read_reason(const struct cli_sweep *sweep, const struct cli_sweep_words *words,
                        const struct children_end *end, struct sweep_result *result)
{
    children_reason(end->complaint, result->reason, sizeof result->reason);
    name_jobs(sweep, words->jobs_temporary, result);
}

static enum status ended(void *context, const struct children_end *end, struct error *err)
{
    static const uint32_t outcomes[] = {SWEEP_DONE, SWEEP_NO, SWEEP_REFUSED}; /* by exit code */
    struct sweep_run_running *running = context;
    const struct cli_sweep *sweep = running->sweep;
    char text[CLI_SWEEP_POINT_BYTES];
    struct sweep_result result = sweep->results->points[end->id];
    if (end->signal == 0 && end->exit_code != 0) read_reason(sweep, running->words[end->id], end, &result);
    cli_sweep_words_release(running->words[end->id]);
    free(running->words[end->id]);
    running->words[end->id] = NULL;
    if (end->signal != 0)
        return error_set(err, STATUS_DEVICE, "%s: ended by signal %d", cli_sweep_point(sweep->grid, end->id, text),
                         end->signal);
    if (end->exit_code < 0 || end->exit_code > 2)
        return error_set(err, STATUS_DEVICE, "%s: %s", cli_sweep_point(sweep->grid, end->id, text), result.reason);
    result.outcome = outcomes[end->exit_code];
    if (result.outcome == SWEEP_DONE) read_figures(sweep->results, end, &result);
    if (sweep->ranks->rank == 0) return record(running, &result, err);
    sweep->results->points[end->id] = result;
    sweep_ranks_tell(sweep->ranks, &result, sizeof result);
    return STATUS_OK;
}

/* --- ranks ----------------------------------------------------------------------------------- */

/* Marks a failed rank's message; its reason is the error. */
static const uint64_t failed_point = UINT64_MAX;

static enum status hear_all(void *context, struct error *err)
{
    struct sweep_run_running *running = context;
    struct sweep_result result;
    while (sweep_ranks_hear(running->sweep->ranks, &result, sizeof result)) {
        if (result.point == failed_point) return error_set(err, result.outcome, "%s", result.reason);
        TRY(record(running, &result, err));
    }
    return STATUS_OK;
}

static enum status hear_the_rest(struct sweep_run_running *running, struct error *err)
{
    while (running->known < running->wanted) {
        TRY(hear_all(running, err));
        usleep(2000);
    }
    return STATUS_OK;
}

static void tell_failure(const struct sweep_run_running *running, const struct error *err)
{
    struct sweep_result result = {.point = failed_point, .outcome = (uint32_t)err->status};
    snprintf(result.reason, sizeof result.reason, "%.*s", SWEEP_REASON_BYTES - 1, err->text);
    sweep_ranks_tell(running->sweep->ranks, &result, sizeof result);
}

/* Shares pending points, which rank 0 found in its file. */
static void share_pending(struct sweep_run_running *running)
{
    const struct cli_sweep *sweep = running->sweep;
    uint64_t count = sweep->grid->point_count;
    for (uint64_t p = 0; p < count; p++) running->pending[p] = sweep->results->points[p].outcome == SWEEP_PENDING;
    sweep_ranks_share(sweep->ranks, running->pending, count);
    for (uint64_t p = 0; p < count; p++) running->known += !running->pending[p];
    running->wanted = count;
}

/* --- the sweep ----------------------------------------------------------------------------------- */

static enum status run(struct sweep_run_running *running, struct error *err)
{
    const struct cli_sweep *sweep = running->sweep;
    const struct children_client client = {running, next, ended, hear_all};
    enum status status = children_run(&client, sweep->processes, err);
    if (status == STATUS_OK && running->first.status != STATUS_OK) {
        *err = running->first;
        status = err->status;
    }
    if (sweep->ranks->rank > 0) {
        if (status != STATUS_OK) tell_failure(running, err);
        return status;
    }
    return status == STATUS_OK ? hear_the_rest(running, err) : status;
}

enum status cli_sweep_run(const struct cli_sweep *sweep, struct error *err)
{
    uint64_t count = sweep->grid->point_count;
    struct sweep_run_running running = {.sweep = sweep};
    running.words = alloc_zeroed(count, sizeof *running.words);
    running.pending = alloc_zeroed(count, 1);
    enum status status = STATUS_OK;
    if (!running.words || !running.pending) {
        status = error_memory(err, "a sweep", count * sizeof *running.words);
    } else {
        share_pending(&running);
        progress_begin(&running.progress, "sweeping", (double)count);
        status = run(&running, err);
        progress_end(&running.progress);
    }
    for (uint64_t p = 0; running.words && p < count; p++) {
        if (running.words[p]) cli_sweep_words_release(running.words[p]);
        free(running.words[p]);
    }
    free(running.words);
    free(running.pending);
    return status;
}
