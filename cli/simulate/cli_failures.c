/* A run's number is its seed: events are equal for each interval. */
#include "cli/simulate/cli_failures.h"

#include <gsl/gsl_statistics_double.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/order.h"
#include "base/random.h"
#include "base/try.h"

/* Simulates all runs: wall_s[0 .. *ended) ascends; with sums. */
static enum status run_all(const struct cli_failures *wanted, const struct cli_failure_outcome *s, double every_s,
                           double *wall_s, uint64_t *ended, struct failure_simulation *sum, double *interruptions,
                           struct error *err)
{
    *ended = 0;
    *interruptions = 0;
    *sum = (struct failure_simulation){0};
    for (uint64_t i = 0; i < s->runs; i++) {
        struct failure_simulation one;
        struct failure_simulation_case of = {.failures = &s->failures, .devices = s->devices, .work_s = s->work_s,
                                   .checkpoint_every_s = every_s, .seed = random_u64(wanted->seed, i)};
        TRY(failure_simulation_run(&of, &one, err));
        if (one.ended) wall_s[(*ended)++] = one.wall_s;
        sum->wall_s += one.wall_s;
        sum->work_s += one.work_s;
        sum->again_s += one.again_s;
        sum->slow_s += one.slow_s;
        sum->checkpoint_s += one.checkpoint_s;
        sum->restart_s += one.restart_s;
        sum->waiting_s += one.waiting_s;
        *interruptions += one.interruptions;
    }
    qsort(wall_s, *ended, sizeof *wall_s, order_double);
    return STATUS_OK;
}

static double quantile(const double *sorted, uint64_t count, double share)
{
    return count > 0 ? gsl_stats_quantile_from_sorted_data(sorted, 1, count, share) : HUGE_VAL;
}

enum status cli_failures_run(const struct cli_failures *wanted, uint32_t devices, double makespan_s,
                             struct cli_failure_outcome *out, struct error *err)
{
    struct failure_simulation sum;
    uint64_t ended;
    double interruptions, *wall_s = alloc_zeroed(wanted->runs, sizeof *wall_s);
    *out = (struct cli_failure_outcome){.devices = devices, .runs = wanted->runs, .best_median_s = HUGE_VAL};
    if (!wall_s) return error_memory(err, "runs", wanted->runs * sizeof *wall_s);
    if (failures_read(wanted->path, devices, &out->arena, &out->failures, err)) goto out;
    const struct failures *f = &out->failures;
    out->work_s = f->work_s > 0 ? f->work_s : makespan_s;
    out->best_interval_s = failures_best_interval_s(devices / f->mtbf_s, f->checkpoint_s);
    if (out->best_interval_s < HUGE_VAL) {
        if (run_all(wanted, out, out->best_interval_s, wall_s, &ended, &sum, &interruptions, err)) goto out;
        out->best_median_s = quantile(wall_s, ended, 0.5);
    }
    if (run_all(wanted, out, f->checkpoint_every_s, wall_s, &out->ended, &out->mean, &out->interruptions, err))
        goto out;
    out->low_s = quantile(wall_s, out->ended, 0.05);
    out->median_s = quantile(wall_s, out->ended, 0.5);
    out->high_s = quantile(wall_s, out->ended, 0.95);
out:
    free(wall_s);
    return err->status;
}

void cli_failures_release(struct cli_failure_outcome *outcome)
{
    arena_release(&outcome->arena);
    *outcome = (struct cli_failure_outcome){0};
}

/* --- reports --------------------------------------------------------------------------------- */

static double share(const struct cli_failure_outcome *s, double part_s)
{
    return s->mean.wall_s > 0 ? part_s / s->mean.wall_s : 0;
}

void cli_failures_print(FILE *out, const struct cli_failure_outcome *s)
{
    char a[QUANTITY_TEXT_BYTES], b[QUANTITY_TEXT_BYTES], c[QUANTITY_TEXT_BYTES];
    fprintf(out, "\nwith failures, %s of %s of work on %s (random simulations)\n", CLI_COUNT(s->runs, "run"),
            quantity_text(s->work_s, DIMENSION_SECONDS, a), CLI_COUNT(s->devices, "device"));
    if (s->ended < s->runs)
        fprintf(out, "given up    %" PRIu64 " of the runs: not done after %g times the work\n", s->runs - s->ended,
                FAILURE_SIMULATION_PATIENCE);
    if (s->ended > 0)
        fprintf(out, "time        %s (median), 90 %% take %s to %s\n",
                quantity_text(s->median_s, DIMENSION_SECONDS, a), quantity_text(s->low_s, DIMENSION_SECONDS, b),
                quantity_text(s->high_s, DIMENSION_SECONDS, c));
    fprintf(out, "goes to     work %s, done again %s,", cli_percent(share(s, s->mean.work_s), a),
            cli_percent(share(s, s->mean.again_s), b));
    fprintf(out, " slowness %s, checkpoints %s,", cli_percent(share(s, s->mean.slow_s), a),
            cli_percent(share(s, s->mean.checkpoint_s), b));
    fprintf(out, " restarts %s, waiting %s; %.3g interruptions a run\n", cli_percent(share(s, s->mean.restart_s), a),
            cli_percent(share(s, s->mean.waiting_s), b), s->interruptions / (double)s->runs);
    if (s->best_interval_s < HUGE_VAL && s->best_median_s < HUGE_VAL)
        fprintf(out, "checkpoints every %s (Daly's interval): %s (median)\n",
                quantity_text(s->best_interval_s, DIMENSION_SECONDS, a),
                quantity_text(s->best_median_s, DIMENSION_SECONDS, b));
}

void cli_failures_json(struct json_out *json, const struct cli_failure_outcome *s)
{
    const double runs = (double)s->runs;
    json_out_object_begin(json, "failures", false);
    json_out_u64(json, "runs", s->runs);
    json_out_u64(json, "ended", s->ended);
    json_out_u64(json, "devices", s->devices);
    json_out_double(json, "undisturbed_s", s->work_s);
    if (s->ended > 0) {
        json_out_double(json, "p5_s", s->low_s);
        json_out_double(json, "p50_s", s->median_s);
        json_out_double(json, "p95_s", s->high_s);
    }
    json_out_object_begin(json, "mean", true);
    json_out_double(json, "wall_s", s->mean.wall_s / runs);
    json_out_double(json, "work_s", s->mean.work_s / runs);
    json_out_double(json, "again_s", s->mean.again_s / runs);
    json_out_double(json, "slow_s", s->mean.slow_s / runs);
    json_out_double(json, "checkpoint_s", s->mean.checkpoint_s / runs);
    json_out_double(json, "restart_s", s->mean.restart_s / runs);
    json_out_double(json, "waiting_s", s->mean.waiting_s / runs);
    json_out_double(json, "interruptions", s->interruptions / runs);
    json_out_object_end(json);
    if (s->best_interval_s < HUGE_VAL && s->best_median_s < HUGE_VAL) {
        json_out_double(json, "best_interval_s", s->best_interval_s);
        json_out_double(json, "best_interval_p50_s", s->best_median_s);
    }
    json_out_object_end(json);
}
