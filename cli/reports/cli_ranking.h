/* The comparison of ways in the report of `plan`, and the work of searches. */
#ifndef SPILLWAY_CLI_REPORTS_CLI_RANKING_H
#define SPILLWAY_CLI_REPORTS_CLI_RANKING_H

#include "base/json/json_out.h"
#include "cli/reports/cli_plan_report.h"

/* Prints outcomes, fastest first, then reasons of failures, and the choice. */
MUST_CHECK enum status cli_ranking_text(FILE *out, const struct cli_plan_report *report, struct error *err);

/* Writes "policies" and "best_policy". */
void cli_ranking_json(struct json_out *json, const struct cli_plan_report *report);

/* Print a line if a time limit ended a search; write "search". */
void cli_ranking_search_text(FILE *out, const struct cli_plan_report *report);
void cli_ranking_search_json(struct json_out *json, const struct cli_plan_report *report);

/* Returns makespan_s / lower_bound_s - 1; 0 without bound, or when rounding makes it negative. */
double cli_gap_over(double makespan_s, double lower_bound_s);

#endif
