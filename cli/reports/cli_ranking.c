#include "cli/reports/cli_ranking.h"

#include <string.h>

#include "base/text/quantity.h"
#include "base/try.h"
#include "cli/common/cli_table.h"
#include "cli/ways/cli_predict.h"
#include "cli/ways/cli_runnable.h"

static const char *const kind_names[] = {
    [CLI_OUTCOME_PLAN] = "plan",
    [CLI_OUTCOME_NO_ROOM] = "does not fit",
    [CLI_OUTCOME_REFUSED] = "does not apply",
    [CLI_OUTCOME_NOT_TRIED] = "not tried",
};

double cli_gap_over(double makespan_s, double lower_bound_s)
{
    return lower_bound_s > 0 && makespan_s > lower_bound_s ? makespan_s / lower_bound_s - 1 : 0;
}

/* Returns true on machines that can run plans. */
static bool must_run(const struct cli_plan_report *report)
{
    return cli_runs_here(&report->plan->hardware);
}

/* --- text ------------------------------------------------------------------------------------ */

/* Adds "best", "16 % slower" or "cannot be run". */
static void note_cell(struct cli_table *table, const struct cli_plan_report *report, size_t i)
{
    const struct cli_policy_outcome *outcome = &report->outcomes[i], *best = &report->outcomes[report->best];
    double over = best->makespan_s > 0 ? outcome->makespan_s / best->makespan_s - 1 : 0;
    if (i == report->best) cli_table_cell(table, "best");
    else if (!outcome->runnable && best->runnable && must_run(report)) cli_table_cell(table, "cannot be run");
    else if (over < 5e-4) cli_table_cell(table, "as fast");
    else if (over < 1) cli_table_cell(table, "%.1f %% slower", 100 * over);
    else cli_table_cell(table, "%.2f times slower", 1 + over);
}

static void outcome_cells(struct cli_table *table, const struct cli_plan_report *report, size_t i, enum job_unit unit)
{
    const struct cli_policy_outcome *outcome = &report->outcomes[i];
    char text[QUANTITY_TEXT_BYTES];
    cli_table_cell(table, "%s", outcome->policy);
    cli_table_cell(table, "%s", quantity_text(outcome->makespan_s, DIMENSION_SECONDS, text));
    cli_table_cell(table, "%.4g", unit == JOB_TOKENS ? outcome->tokens_per_s : outcome->samples_per_s);
    cli_table_cell(table, "%.1f %%", 100 * cli_gap_over(outcome->makespan_s, outcome->lower_bound_s));
    cli_table_cell(table, "%.1f %%", 100 * outcome->compute_share);
    note_cell(table, report, i);
}

static void print_reasons(FILE *out, const struct cli_plan_report *report)
{
    bool begun = false;
    for (size_t i = 0; i < report->outcome_count; i++) {
        const struct cli_policy_outcome *outcome = &report->outcomes[i];
        bool told = outcome->kind == CLI_OUTCOME_PLAN;
        for (size_t k = 0; k < i && !told; k++)
            told = report->outcomes[k].kind == outcome->kind &&
                   strcmp(report->outcomes[k].reason, outcome->reason) == 0;
        if (told) continue;
        fprintf(out, "%s%s", begun ? "" : "\n", outcome->policy);
        begun = true;
        for (size_t k = i + 1; k < report->outcome_count; k++)
            if (report->outcomes[k].kind == outcome->kind && strcmp(report->outcomes[k].reason, outcome->reason) == 0)
                fprintf(out, "; %s", report->outcomes[k].policy);
        fprintf(out, " (%s): %s\n", kind_names[outcome->kind], outcome->reason);
    }
}

/* Returns the fastest that `run` can carry out; outcome_count: none. */
static size_t fastest_to_run(const struct cli_plan_report *report)
{
    size_t i = 0;
    while (i < report->outcome_count &&
           !(report->outcomes[i].kind == CLI_OUTCOME_PLAN && report->outcomes[i].runnable)) i++;
    return i;
}

/* Prints faster ways that cannot be run, or the fastest runnable way if the best is not. */
static void print_choice(FILE *out, const struct cli_plan_report *report)
{
    const struct cli_policy_outcome *best = &report->outcomes[report->best];
    char text[QUANTITY_TEXT_BYTES];
    fprintf(out, "\nThe best%s is %s:",
            best->runnable && report->best > 0 && must_run(report) ? " that 'run' can carry out" : "", best->policy);
    if (!best->runnable) {
        size_t other = fastest_to_run(report);
        fprintf(out, " %s", best->reason);
        if (other < report->outcome_count)
            fprintf(out, ";\nof the plans that can be run %s is the fastest, %s (--runnable)",
                    report->outcomes[other].policy,
                    quantity_text(report->outcomes[other].makespan_s, DIMENSION_SECONDS, text));
    }
    fputs("\n\n", out);
}

enum status cli_ranking_text(FILE *out, const struct cli_plan_report *report, struct error *err)
{
    struct cli_table table;
    const enum job_unit unit = cli_unit_of(&report->plan->jobs);
    char rate[24];
    snprintf(rate, sizeof rate, ">%s", cli_unit_headings[unit]);
    cli_table_begin(&table, (const char *const[]){"WAY", ">MAKESPAN", rate, ">GAP", ">COMPUTE BUSY", "", NULL});
    for (size_t i = 0; i < report->outcome_count; i++)
        if (report->outcomes[i].kind == CLI_OUTCOME_PLAN) outcome_cells(&table, report, i, unit);
    TRY(cli_table_end(&table, out, err));
    if (!report->plans_only) print_reasons(out, report);
    print_choice(out, report);
    return STATUS_OK;
}

void cli_ranking_search_text(FILE *out, const struct cli_plan_report *report)
{
    char limit[QUANTITY_TEXT_BYTES], count[QUANTITY_TEXT_BYTES];
    if (!report->search || !report->search->cut_short) return;
    fprintf(out, "search       cut short by the time limit of %s after %s iterations (--iterations does not go by the "
                 "clock)\n",
            quantity_text(report->time_limit_s, DIMENSION_SECONDS, limit),
            quantity_text((double)report->search->iterations, DIMENSION_COUNT_OF, count));
}

/* --- JSON ------------------------------------------------------------------------------------ */

static void outcome_json(struct json_out *json, const struct cli_plan_report *report,
                         const struct cli_policy_outcome *outcome)
{
    const struct cli_policy_outcome *best = &report->outcomes[report->best];
    bool feasible = outcome->kind == CLI_OUTCOME_PLAN;
    json_out_object_begin(json, NULL, true);
    json_out_string(json, "policy", outcome->policy);
    json_out_bool(json, "feasible", feasible);
    if (feasible) {
        json_out_double(json, "makespan_s", outcome->makespan_s);
        json_out_double(json, "estimated_makespan_s", outcome->estimated_makespan_s);
        json_out_double(json, "lower_bound_s", outcome->lower_bound_s);
        json_out_double(json, "gap", cli_gap_over(outcome->makespan_s, outcome->lower_bound_s));
        json_out_double(json, "over_best", best->makespan_s > 0 ? outcome->makespan_s / best->makespan_s - 1 : 0);
        json_out_bool(json, "runnable", outcome->runnable);
        json_out_double(json, "tokens_per_s", outcome->tokens_per_s);
        json_out_double(json, "samples_per_s", outcome->samples_per_s);
        json_out_double(json, "compute_utilisation", outcome->compute_share);
    } else {
        json_out_string(json, "verdict", kind_names[outcome->kind]);
    }
    if (!feasible || !outcome->runnable) json_out_string(json, "reason", outcome->reason);
    json_out_object_end(json);
}

void cli_ranking_json(struct json_out *json, const struct cli_plan_report *report)
{
    json_out_array_begin(json, "policies", false);
    for (size_t i = 0; i < report->outcome_count; i++) outcome_json(json, report, &report->outcomes[i]);
    json_out_array_end(json);
    json_out_string(json, "best_policy", report->outcomes[report->best].policy);
}

void cli_ranking_search_json(struct json_out *json, const struct cli_plan_report *report)
{
    if (!report->search || report->search->iterations == 0) return;
    json_out_object_begin(json, "search", true);
    json_out_u64(json, "iterations", report->search->iterations);
    json_out_bool(json, "cut_short", report->search->cut_short);
    json_out_object_end(json);
}
