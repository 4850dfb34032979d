#include "cli/ways/cli_saturn.h"

#include "base/text/quantity.h"

/* Schedules with slower links; accepted ratio of simulated to scheduled time. */
enum { SLOWED_TRIES_MAX = 2 };
static const double kept_promise = 1.02;

/* Divides simulated by scheduled makespan. */
static double ratio(const struct plan *plan, double makespan_s)
{
    return plan->estimated_makespan_s > 0 ? makespan_s / plan->estimated_makespan_s : 1;
}

static enum status make(const struct cli_source *source, const struct saturn_options *options,
                        struct cli_candidate *out, struct saturn_report *report, struct error *err)
{
    struct hardware hardware = {0};
    struct job_set jobs = {0};
    enum status status = job_set_share(source->jobs, &jobs, err);
    if (status == STATUS_OK) status = cli_machine_read(&source->machine, &hardware, err);
    if (status == STATUS_OK) status = cli_parallel_apply(&source->parallel, &jobs, err);
    if (status == STATUS_OK) status = saturn_plan(&hardware, &jobs, options, report, &out->plan, err);
    hardware_release(&hardware);
    job_set_release(&jobs);
    if (status == STATUS_OK) status = cli_predict(&out->plan, NULL, NULL, &out->prediction, err);
    return status;
}


static bool streams(const struct plan *plan)
{
    for (uint32_t j = 0; j < plan->jobs.count; j++)
        if (!parallel_is_set(&plan->jobs.jobs[j].parallel)) return true;
    return false;
}

/* Returns the ratio if spilled jobs may be the cause; else 1. */
static double late(const struct cli_candidate *c)
{
    double by = ratio(&c->plan, c->prediction.result.makespan_s);
    return by > kept_promise && streams(&c->plan) ? by : 1;
}

/* Replaces *out if the new schedule ends no later. */
static enum status make_slowed(const struct cli_source *source, struct saturn_options *options,
                               struct cli_candidate *out, struct saturn_report *report, struct error *err)
{
    double by = late(out);
    options->slowed = 1;
    for (uint32_t i = 0; i < SLOWED_TRIES_MAX && by > 1; i++) {
        struct cli_candidate other = {0};
        struct saturn_report of_other = {0};
        struct error why = {0};
        options->slowed *= by;
        enum status status = make(source, options, &other, &of_other, &why);
        by = status ? 1 : late(&other);
        if (!status && other.prediction.result.makespan_s <= out->prediction.result.makespan_s) {
            cli_candidate_release(out);
            *out = other;
            *report = of_other;
            other = (struct cli_candidate){0};
        }
        cli_candidate_release(&other);
        if (status && status != STATUS_INFEASIBLE) return error_set(err, status, "%s", why.text);
    }
    return STATUS_OK;
}

enum status cli_saturn(const struct cli_source *source, const struct saturn_options *options,
                       struct cli_candidate *out, struct saturn_report *report, struct error *err)
{
    const struct saturn_clock clock = {.time = sim_seconds};
    struct saturn_times times = {0};
    struct saturn_options timed = *options;
    timed.clock = &clock;
    timed.kept_times = &times;
    enum status status = make(source, &timed, out, report, err);
    timed.bound_s = (double)report->certificate.bound * report->tick_s;
    if (!status && timed.rule == SATURN_RULE_SPASE && !(timed.interval_s > 0))
        status = make_slowed(source, &timed, out, report, err);
    saturn_times_release(&times);
    return status;
}

static void other_rule(FILE *out, const char *comma, const char *name, double seconds, const struct plan *plan)
{
    char text[QUANTITY_TEXT_BYTES];
    fprintf(out, "%s%s %s (%.2f x)", comma, name, quantity_text(seconds, DIMENSION_SECONDS, text),
            seconds / plan->estimated_makespan_s);
}

void cli_saturn_text(FILE *out, const struct saturn_report *report, const struct plan *plan, double makespan_s)
{
    const struct spase_certificate *c = &report->certificate;
    char text[QUANTITY_TEXT_BYTES];
    fprintf(out, "schedule     of %s, %u timed; bound by %s; simulated in %.3f of its time\n",
            CLI_COUNT(report->tried, "configuration"), report->timed, spase_proof_names[c->proved_by],
            ratio(plan, makespan_s));
    if (report->slowed > 0)
        fprintf(out,
                "links        copies of spilled states are assumed to take %.2f times their time without contention\n",
                report->slowed);
    if (report->intervals > 0) {
        char restart[QUANTITY_TEXT_BYTES];
        fprintf(out, "replanned    %s of %u: %s without; %s of %s, to move states out and in again\n",
                CLI_COUNT(report->replans, "time"), report->intervals,
                quantity_text(report->scheduled_s, DIMENSION_SECONDS, text), CLI_COUNT(report->restarts, "restart"),
                quantity_text(report->restart_s, DIMENSION_SECONDS, restart));
    }
    fputs("other rules  ", out);
    for (uint32_t b = 0; b < SPASE_BASELINE_COUNT; b++)
        other_rule(out, b > 0 ? ", " : "", spase_baseline_names[b], report->baselines_s[b], plan);
    if (report->optimus_dynamic_s > 0)
        other_rule(out, ", ", saturn_rule_names[SATURN_RULE_OPTIMUS_DYNAMIC], report->optimus_dynamic_s, plan);
    fputc('\n', out);
}

void cli_saturn_json(struct json_out *json, const struct saturn_report *report, const struct plan *plan,
                     double makespan_s)
{
    const struct spase_certificate *c = &report->certificate;
    json_out_object_begin(json, "schedule", true);
    json_out_double(json, "makespan_s", report->scheduled_s);
    json_out_double(json, "bound_s", (double)c->bound * report->tick_s);
    json_out_string(json, "proved_by", spase_proof_names[c->proved_by]);
    json_out_double(json, "gap", spase_certificate_gap(c));
    json_out_double(json, "simulated_over_scheduled", ratio(plan, makespan_s));
    if (report->slowed > 0) json_out_double(json, "streamed_slowed", report->slowed);
    json_out_u64(json, "configurations", report->tried);
    json_out_u64(json, "timed", report->timed);
    json_out_u64(json, "iterations", c->iterations);
    json_out_u64(json, "nodes", c->nodes);
    if (report->intervals > 0) {
        json_out_object_begin(json, "introspection", true);
        json_out_double(json, "makespan_s", plan->estimated_makespan_s);
        json_out_u64(json, "intervals", report->intervals);
        json_out_u64(json, "replans", report->replans);
        json_out_u64(json, "restarts", report->restarts);
        json_out_double(json, "restart_s", report->restart_s);
        json_out_double(json, "threshold_s", report->threshold_s);
        json_out_object_end(json);
    }
    json_out_object_begin(json, "other_rules_s", true);
    for (uint32_t b = 0; b < SPASE_BASELINE_COUNT; b++)
        json_out_double(json, spase_baseline_names[b], report->baselines_s[b]);
    if (report->optimus_dynamic_s > 0) json_out_double(json, "optimus_dynamic", report->optimus_dynamic_s);
    json_out_object_end(json);
    json_out_object_end(json);
}
