#include "cli/simulate/cli_interval.h"

#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/process/progress.h"
#include "base/text/quantity.h"
#include "base/try.h"
#include "cli/history/cli_history.h"
#include "sim/uncertainty/prediction_interval.h"
#include "sim/uncertainty/machine_draw.h"

/* --- by spreads ------------------------------------------------------------------------------ */

static enum status simulate_drawn(const struct plan *plan, const struct hardware *hardware,
                                  const struct sim_options *options, const struct cli_interval *interval,
                                  uint64_t number, double *makespan_s, double *tokens_per_s, struct error *err)
{
    struct hardware drawn = {0};
    struct sim_result result = {0};
    struct trace trace = {0};
    struct sim_options own = *options;
    own.hardware = &drawn;
    own.seed = options->seed + number; /* for --noise */
    own.record_spans = false;
    own.writer = NULL;
    own.on_progress = NULL;
    enum status status = machine_draw(hardware, interval->seed, number, &drawn, err);
    if (status == STATUS_OK) status = sim_run(plan, &own, &result, &trace, err);
    if (status == STATUS_OK) {
        *makespan_s = result.makespan_s;
        *tokens_per_s = trace_tokens_per_s(&trace);
    }
    trace_release(&trace);
    sim_result_release(&result);
    hardware_release(&drawn);
    return status;
}

static enum status by_spreads(const struct plan *plan, const struct hardware *hardware,
                              const struct sim_options *options, struct cli_interval *out, struct error *err)
{
    struct progress progress;
    double *makespans_s = alloc_zeroed(2 * out->seeds, sizeof *makespans_s), *rates = makespans_s + out->seeds;
    if (!makespans_s) return error_memory(err, "draws", 2 * out->seeds * sizeof *makespans_s);
    enum status status = STATUS_OK;
    progress_begin(&progress, "drawing machines", (double)out->seeds);
    for (uint64_t n = 0; n < out->seeds && status == STATUS_OK; n++) {
        status = simulate_drawn(plan, hardware, options, out, n, &makespans_s[n], &rates[n], err);
        progress_update(&progress, (double)(n + 1), NULL);
    }
    progress_end(&progress);
    if (status == STATUS_OK) {
        out->makespan_s = quantiles_of(makespans_s, out->seeds);
        out->tokens_per_s = quantiles_of(rates, out->seeds);
    }
    free(makespans_s);
    return status;
}

/* --- by runs --------------------------------------------------------------------------------- */

/* Reads complete runs; each plan is a kind. A missing history has none. */
static enum status read_runs(const char *machine, struct arena *arena, struct prediction_run **runs, uint64_t *count,
                             struct error *err)
{
    char path[CLI_PATH_BYTES];
    bool some = false;
    struct history *history = NULL;
    struct history_record *records = NULL;
    struct history_wrong wrong; /* `history` reports them */
    size_t found = 0;
    const struct history_filter filter = {.verb = "run", .hardware = machine, .last = INTERVAL_RUNS_MAX};
    *count = 0;
    TRY(cli_history_path(path, &some, err));
    if (!some || access(path, F_OK) != 0) return STATUS_OK;
    enum status status = history_open(path, false, &history, err);
    if (status == STATUS_OK) status = history_read(history, &filter, arena, &records, &found, &wrong, err);
    if (status == STATUS_OK) status = ARENA_NEW(arena, found, *runs, err);
    if (status == STATUS_OK) {
        for (size_t r = 0; r < found; r++)
            if (records[r].complete && records[r].predicted_s > 0 && records[r].measured_s > 0)
                (*runs)[(*count)++] =
                    (struct prediction_run){records[r].fingerprint, records[r].measured_s / records[r].predicted_s};
    }
    history_close(history);
    return status;
}

static enum status by_runs(const struct plan *plan, const char *machine, double makespan_s, double tokens_per_s,
                           struct cli_interval *out, struct error *err)
{
    struct arena arena = {0};
    struct prediction_run *runs = NULL;
    struct quantiles ratio = {0};
    char kind[HISTORY_FINGERPRINT_BYTES];
    snprintf(kind, sizeof kind, "%016" PRIx64, plan_fingerprint(plan));
    enum status status = read_runs(machine, &arena, &runs, &out->runs, err);
    out->by_runs = status == STATUS_OK && out->runs >= PREDICTION_RUNS_MIN;
    if (out->by_runs) status = prediction_interval_next(runs, out->runs, kind, &arena, &ratio, err);
    if (status == STATUS_OK && out->by_runs) {
        out->run_makespan_s =
            (struct quantiles){makespan_s * ratio.low, makespan_s * ratio.median, makespan_s * ratio.high};
        out->run_tokens_per_s =
            (struct quantiles){tokens_per_s / ratio.high, tokens_per_s / ratio.median, tokens_per_s / ratio.low};
    }
    arena_release(&arena);
    return status;
}

enum status cli_interval_find(const struct plan *plan, const struct hardware *hardware,
                              const struct sim_options *options, double makespan_s, double tokens_per_s,
                              struct cli_interval *out, struct error *err)
{
    out->spreads = machine_has_spread(hardware) || options->noise > 0;
    if (out->spreads) TRY(by_spreads(plan, hardware, options, out, err));
    return by_runs(plan, hardware->name, makespan_s, tokens_per_s, out, err);
}

/* --- reports --------------------------------------------------------------------------------- */

static void print_line(FILE *out, const char *heading, const struct quantiles *makespan_s,
                       const struct quantiles *tokens_per_s, enum job_unit unit, double per_token)
{
    char low[QUANTITY_TEXT_BYTES], median[QUANTITY_TEXT_BYTES], high[QUANTITY_TEXT_BYTES];
    fprintf(out, "%s 90 %% between %s and %s, median %s; %.5g to %.5g %s", heading,
            quantity_text(makespan_s->low, DIMENSION_SECONDS, low),
            quantity_text(makespan_s->high, DIMENSION_SECONDS, high),
            quantity_text(makespan_s->median, DIMENSION_SECONDS, median), per_token * tokens_per_s->low,
            per_token * tokens_per_s->high, cli_unit_rates[unit]);
}

void cli_interval_print(FILE *out, const struct cli_interval *interval, enum job_unit unit, double per_token)
{
    if (interval->seeds == 0) return;
    if (interval->spreads) {
        print_line(out, "by spreads ", &interval->makespan_s, &interval->tokens_per_s, unit, per_token);
        fprintf(out, " (%llu machines within the spreads of its values, seed %llu)\n",
                (unsigned long long)interval->seeds, (unsigned long long)interval->seed);
    } else {
        fputs("by spreads  no value of this machine has a spread\n", out);
    }
    if (interval->by_runs) {
        print_line(out, "by runs    ", &interval->run_makespan_s, &interval->run_tokens_per_s, unit, per_token);
        fprintf(out, " (%llu runs in the history, newer ones first of all)\n", (unsigned long long)interval->runs);
    } else {
        fprintf(out,
                "by runs     %llu of them on this machine in the history (%d are needed): the interval has only the "
                "spreads of values\n",
                (unsigned long long)interval->runs, PREDICTION_RUNS_MIN);
    }
}

static void quantiles_json(struct json_out *json, const char *key, const struct quantiles *quantiles)
{
    json_out_object_begin(json, key, true);
    json_out_double(json, "p5", quantiles->low);
    json_out_double(json, "p50", quantiles->median);
    json_out_double(json, "p95", quantiles->high);
    json_out_object_end(json);
}

void cli_interval_json(struct json_out *json, const struct cli_interval *interval)
{
    if (interval->seeds == 0) return;
    json_out_object_begin(json, "interval", false);
    json_out_u64(json, "seeds", interval->seeds);
    json_out_u64(json, "seed", interval->seed);
    if (interval->spreads) {
        json_out_object_begin(json, "by_spreads", false);
        quantiles_json(json, "makespan_s", &interval->makespan_s);
        quantiles_json(json, "tokens_per_s", &interval->tokens_per_s);
        json_out_object_end(json);
    }
    json_out_u64(json, "runs", interval->runs);
    if (interval->by_runs) {
        json_out_object_begin(json, "by_runs", false);
        quantiles_json(json, "makespan_s", &interval->run_makespan_s);
        quantiles_json(json, "tokens_per_s", &interval->run_tokens_per_s);
        json_out_object_end(json);
    }
    json_out_object_end(json);
}
