/* What GLPK did and proved (`plan --policy milp`). */
#ifndef SPILLWAY_CLI_REPORTS_CLI_MILP_REPORT_H
#define SPILLWAY_CLI_REPORTS_CLI_MILP_REPORT_H

#include <stdio.h>

#include "base/json/json_out.h"
#include "planner/planner_options.h"

/* Prints lines; nothing if the policy was not asked. */
void cli_milp_text(FILE *out, const struct planner_milp *milp);

/* Writes the object "milp"; nothing if the policy was not asked. */
void cli_milp_json(struct json_out *json, const struct planner_milp *milp);

#endif
