/*
 * Figures are fitted as logarithms, or with an upper limit as log(value / (limit - value)).
 *
 * Machines are built once per number of nodes, jobs once per run. GSL computes all residuals once per step, and once
 * more per value.
 */
#include "cli/machine/cli_calibrate_fit.h"

#include <gsl/gsl_errno.h>
#include <gsl/gsl_multifit_nlinear.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/process/progress.h"
#include "base/try.h"
#include "cli/common/cli.h"
#include "planner/capacity/what_if_floor.h"

static const double soft_scale = 0.005, pull = 0.02, ratio_most = 0.98;
static const double gain_least = 1e-3; /* relative decrease for which another round is done */
enum { ITERATIONS_MAX = 30, ROUNDS_MAX = 8 };

/* --- runs --------------------------------------------------------------------------------------- */

struct fit_run {
    const struct measured_run *run;
    struct job_set jobs;
    struct what_if_way way;
    uint32_t machine;   /* index into machines */
    double weight_root; /* of its weight */
    double factor_log;  /* log(simulated / closed form) */
};

struct fit {
    const struct calibration_problem *problem;
    struct arena arena;
    struct hardware *machines;
    uint32_t machine_count;
    struct fit_run *runs; /* the fitted runs */
    uint32_t run_count;
    double start[CALIBRATION_VALUES], most[CALIBRATION_VALUES]; /* upper limits; 0: none */
    uint32_t free[CALIBRATION_VALUES], free_count;
    struct progress progress;
    uint64_t evaluations;
    struct error error; /* of the first run without a prediction */
};

/* Finds a machine of whole nodes with enough devices. */
static enum status find_machine(struct fit *fit, const struct measured_run *run, uint32_t *out, struct error *err)
{
    uint32_t node = fit->machines[0].device_count, have = (run->of[RUN_DEVICES] + node - 1) / node * node;
    for (*out = 0; *out < fit->machine_count; ++*out)
        if (fit->machines[*out].device_count == have) return STATUS_OK;
    TRY(calibration_machine(fit->problem->machine, run, &fit->machines[fit->machine_count], err));
    fit->machine_count++;
    return STATUS_OK;
}

static enum status add_run(struct fit *fit, const struct measured_run *run, double weight, struct error *err)
{
    struct fit_run *out = &fit->runs[fit->run_count];
    *out = (struct fit_run){.run = run, .weight_root = sqrt(weight)};
    TRY(find_machine(fit, run, &out->machine, err));
    TRY(calibration_job(run, &out->jobs, err));
    fit->run_count++;
    const struct job *job = &out->jobs.jobs[0];
    out->way.fit.devices = 1;
    out->way.fit.parallel = job->parallel;
    out->way.fit.parallel.scatter = false; /* the factor has its effect */
    out->way.microbatch = job->microbatch;
    out->way.microbatches = job->microbatches;
    return STATUS_OK;
}

static enum status add_runs(struct fit *fit, const struct calibration_split *split, struct error *err)
{
    const struct calibration_problem *problem = fit->problem;
    size_t all = 0;
    for (uint32_t s = 0; s < problem->set_count; s++) all += problem->sets[s].count;
    TRY(ARENA_NEW(&fit->arena, all, fit->runs, err));
    TRY(ARENA_NEW(&fit->arena, all + 1, fit->machines, err));
    struct measured_run one = problem->sets[0].runs[0];
    one.of[RUN_DEVICES] = 1;
    TRY(calibration_machine(problem->machine, &one, &fit->machines[0], err));
    fit->machine_count = 1;
    for (uint32_t s = 0; s < problem->set_count; s++) {
        const struct measured_runs *set = &problem->sets[s];
        uint32_t fitted = 0;
        for (uint32_t i = 0; i < set->count; i++) fitted += calibration_is_fitted(split, &set->runs[i], i);
        double weight = problem->weights ? problem->weights[s] : 1;
        for (uint32_t i = 0; i < set->count; i++)
            if (calibration_is_fitted(split, &set->runs[i], i)) TRY(add_run(fit, &set->runs[i], weight / fitted, err));
    }
    return STATUS_OK;
}

static void release(struct fit *fit)
{
    for (uint32_t i = 0; i < fit->run_count; i++) job_set_release(&fit->runs[i].jobs);
    for (uint32_t i = 0; i < fit->machine_count; i++) hardware_release(&fit->machines[i]);
    arena_release(&fit->arena);
}

/* --- residuals ---------------------------------------------------------------------------------- */

static double value_of(const struct fit *fit, uint32_t value, double moved)
{
    double start = fit->start[value], most = fit->most[value];
    if (most <= 0) return start * exp(moved);
    if (most <= start) return start; /* already at its limit */
    return most / (1 + (most - start) / start * exp(-moved));
}

static void values_of(const struct fit *fit, const gsl_vector *moved, double out[CALIBRATION_VALUES])
{
    memcpy(out, fit->start, sizeof fit->start);
    for (uint32_t i = 0; i < fit->free_count; i++)
        out[fit->free[i]] = value_of(fit, fit->free[i], gsl_vector_get(moved, i));
}

/* Returns the signed root of rho(r) = 2 s^2 (sqrt(1 + (r / s)^2) - 1), which is squared later. */
static double soften(double r)
{
    double ratio = r / soft_scale;
    return copysign(soft_scale * sqrt(2 * (sqrt(1 + ratio * ratio) - 1)), r);
}

static double residual(const struct fit_run *run, double seconds_log)
{
    return run->weight_root * soften(seconds_log - log(run->run->seconds));
}

/* Uses the machines' present values. */
static enum status closed_form(const struct fit *fit, const struct fit_run *run, double *out_log, struct error *err)
{
    struct what_if_floor floor;
    TRY(what_if_floor(&fit->machines[run->machine], &run->jobs.jobs[0], &run->way, &floor, err));
    *out_log = floor.run_s > 0 ? log(floor.run_s) : 0; /* 0: the factor is the whole time */
    return STATUS_OK;
}

static double pull_of(const struct fit *fit, const gsl_vector *moved, uint32_t i)
{
    return pull * gsl_vector_get(moved, i) / sqrt(fit->free_count);
}

static void put_values(struct fit *fit, const double values[CALIBRATION_VALUES])
{
    for (uint32_t m = 0; m < fit->machine_count; m++) calibration_put(&fit->machines[m], values, 0, NULL);
}

static int evaluate(const gsl_vector *moved, void *context, gsl_vector *out)
{
    struct fit *fit = context;
    double values[CALIBRATION_VALUES], seconds_log;
    values_of(fit, moved, values);
    put_values(fit, values);
    for (uint32_t i = 0; i < fit->run_count; i++) {
        const struct fit_run *run = &fit->runs[i];
        if (closed_form(fit, run, &seconds_log, &fit->error) != STATUS_OK) return GSL_EFAILED;
        gsl_vector_set(out, i, residual(run, seconds_log + run->factor_log));
    }
    for (uint32_t i = 0; i < fit->free_count; i++) gsl_vector_set(out, fit->run_count + i, pull_of(fit, moved, i));
    progress_update(&fit->progress, (double)++fit->evaluations, NULL);
    return GSL_SUCCESS;
}

/* --- rounds ------------------------------------------------------------------------------------- */

/* Sets factors by simulation, and returns the sum. */
static enum status simulate(struct fit *fit, const gsl_vector *moved, double *out_sum, struct error *err)
{
    double values[CALIBRATION_VALUES], closed_log, seconds;
    values_of(fit, moved, values);
    put_values(fit, values);
    *out_sum = 0;
    for (uint32_t i = 0; i < fit->run_count; i++) {
        struct fit_run *run = &fit->runs[i];
        TRY(calibration_predict(fit->problem->machine, values, run->run, &seconds, err));
        TRY(closed_form(fit, run, &closed_log, err));
        run->factor_log = log(seconds) - closed_log;
        *out_sum += pow(residual(run, log(seconds)), 2);
    }
    for (uint32_t i = 0; i < fit->free_count; i++) *out_sum += pow(pull_of(fit, moved, i), 2);
    progress_update(&fit->progress, (double)++fit->evaluations, NULL);
    return STATUS_OK;
}

static enum status solve(struct fit *fit, gsl_multifit_nlinear_workspace *work, gsl_vector *moved, struct error *err)
{
    gsl_multifit_nlinear_fdf system = {
        .f = evaluate, .n = fit->run_count + fit->free_count, .p = fit->free_count, .params = fit};
    int info;
    gsl_multifit_nlinear_init(moved, &system, work);
    if (fit->error.status == STATUS_OK)
        gsl_multifit_nlinear_driver(ITERATIONS_MAX, 1e-3, 1e-6, 1e-5, NULL, NULL, &info, work);
    if (fit->error.status != STATUS_OK) {
        *err = fit->error;
        return err->status;
    }
    gsl_vector_memcpy(moved, gsl_multifit_nlinear_position(work));
    return STATUS_OK;
}

/* best: zeroed before. */
static enum status run_rounds(struct fit *fit, gsl_multifit_nlinear_workspace *work, gsl_vector *moved,
                              gsl_vector *best, struct error *err)
{
    double best_sum, sum;
    TRY(simulate(fit, best, &best_sum, err));
    for (uint32_t round = 0; round < ROUNDS_MAX; round++) {
        gsl_vector_memcpy(moved, best);
        TRY(solve(fit, work, moved, err));
        TRY(simulate(fit, moved, &sum, err));
        if (sum >= best_sum) return STATUS_OK;
        double gain = 1 - sum / best_sum;
        gsl_vector_memcpy(best, moved);
        best_sum = sum;
        if (gain < gain_least) return STATUS_OK;
    }
    return STATUS_OK;
}

/* --- public ------------------------------------------------------------------------------------- */

static void prepare(struct fit *fit, const double values[CALIBRATION_VALUES])
{
    memcpy(fit->start, values, sizeof fit->start);
    fit->most[CALIBRATION_MATMUL_EFFICIENCY] = fit->most[CALIBRATION_MEMORY_EFFICIENCY] = ratio_most;
    fit->most[CALIBRATION_MATMUL_SUSTAINED] = fit->most[CALIBRATION_MISALIGNED_RATE] = ratio_most;
    fit->most[CALIBRATION_NVLINK_BANDWIDTH] = 300e9;
    fit->most[CALIBRATION_NIC_BANDWIDTH] = 25e9;
    for (uint32_t f = 0; f < CALIBRATION_VALUES; f++)
        if (values[f] > 0 && !fit->problem->keep[f]) fit->free[fit->free_count++] = f;
}

static enum status fit_all(struct fit *fit, double values[CALIBRATION_VALUES], struct error *err)
{
    gsl_multifit_nlinear_parameters parameters = gsl_multifit_nlinear_default_parameters();
    parameters.h_df = 0.02; /* skips steps of tiles and schedules */
    gsl_multifit_nlinear_workspace *work = gsl_multifit_nlinear_alloc(gsl_multifit_nlinear_trust, &parameters,
                                                                      fit->run_count + fit->free_count,
                                                                      fit->free_count);
    gsl_vector *moved = gsl_vector_calloc(fit->free_count), *best = gsl_vector_calloc(fit->free_count);
    enum status status = work && moved && best ? run_rounds(fit, work, moved, best, err)
                                               : error_set(err, STATUS_NO_MEMORY,
                                                           "no memory for a fit to %" PRIu32 " runs", fit->run_count);
    if (status == STATUS_OK) values_of(fit, best, values);
    if (work) gsl_multifit_nlinear_free(work);
    if (moved) gsl_vector_free(moved);
    if (best) gsl_vector_free(best);
    return status;
}

enum status calibration_fit(const struct calibration_problem *problem, const struct calibration_split *split,
                            double values[CALIBRATION_VALUES], struct error *err)
{
    struct fit fit = {.problem = problem};
    prepare(&fit, values);
    enum status status = add_runs(&fit, split, err);
    if (status == STATUS_OK && (fit.free_count == 0 || fit.run_count < 2 * fit.free_count))
        status = error_set(err, STATUS_BAD_INPUT, "%s %s too few for %s",
                           CLI_COUNT(fit.run_count, "measured run"), fit.run_count == 1 ? "is" : "are",
                           CLI_COUNT(fit.free_count, "value"));
    if (status == STATUS_OK) {
        gsl_error_handler_t *handler = gsl_set_error_handler_off();
        progress_begin(&fit.progress, "fitting", 0);
        status = fit_all(&fit, values, err);
        progress_end(&fit.progress);
        gsl_set_error_handler(handler);
    }
    release(&fit);
    return status;
}
