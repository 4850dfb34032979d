/* `plan --policy saturn` (planner/saturn/saturn.h), with run times from the simulator. */
#ifndef SPILLWAY_CLI_WAYS_CLI_SATURN_H
#define SPILLWAY_CLI_WAYS_CLI_SATURN_H

#include "cli/ways/cli_candidate.h"
#include "planner/saturn/saturn.h"

/*
 * Plans by Saturn. If the simulated schedule ends later than Saturn's and has spilled jobs, new schedules are made in
 * which these take longer by that ratio; the earliest simulated end is kept. `out` and `report` are zeroed before; the
 * caller releases `out`, also after an error. Errors: as saturn_plan() and cli_predict().
 */
MUST_CHECK enum status cli_saturn(const struct cli_source *source, const struct saturn_options *options,
                                  struct cli_candidate *out, struct saturn_report *report, struct error *err);

/* Prints the certificate, the simulation's distance from it, other rules. */
void cli_saturn_text(FILE *out, const struct saturn_report *report, const struct plan *plan, double makespan_s);
void cli_saturn_json(struct json_out *json, const struct saturn_report *report, const struct plan *plan,
                     double makespan_s);

#endif
