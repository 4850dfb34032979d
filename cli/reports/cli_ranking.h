/* The part of `plan`'s report that compares ways to run the jobs, and what searching for them took. */
#ifndef SPILLWAY_CLI_RANKING_H
#define SPILLWAY_CLI_RANKING_H

#include "base/json/json_out.h"
#include "cli/reports/cli_plan_report.h"

/* All outcomes, the fastest first, then why there is no plan of the others, and which is taken. */
MUST_CHECK enum status cli_ranking_text(FILE *out, const struct cli_plan_report *report, struct error *err);

/* "policies", "best_policy". */
void cli_ranking_json(struct json_out *json, const struct cli_plan_report *report);

/* A line where a limit of time cut searches short; "search". */
void cli_ranking_search_text(FILE *out, const struct cli_plan_report *report);
void cli_ranking_search_json(struct json_out *json, const struct cli_plan_report *report);

/* Makespan over bound, minus one; 0 when there is no bound, or rounding has it just above the makespan. */
double cli_gap_over(double makespan_s, double lower_bound_s);

#endif
