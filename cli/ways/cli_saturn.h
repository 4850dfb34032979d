/*
 * `plan --policy saturn`: parallelism, devices and start of each job chosen together (planner/saturn/saturn.h), run times
 * from the simulator.
 */
#ifndef SPILLWAY_CLI_SATURN_H
#define SPILLWAY_CLI_SATURN_H

#include "cli/ways/cli_candidate.h"
#include "planner/saturn/saturn.h"

/*
 * The clock of the options is the simulator. Where saturn's schedule is simulated to end later than it
 * promises and has jobs that are streamed, schedules are made for which those take that much longer; the
 * earliest by simulation is kept. Zeroed structs in; release the candidate also after an error. Errors:
 * those of saturn_plan(), cli_predict().
 */
MUST_CHECK enum status cli_saturn(const struct cli_source *source, const struct saturn_options *options,
                                  struct cli_candidate *out, struct saturn_report *report, struct error *err);

/* Lines behind the plan's times: the certificate, how far the simulation is from it, other rules. */
void cli_saturn_text(FILE *out, const struct saturn_report *report, const struct plan *plan, double makespan_s);
void cli_saturn_json(struct json_out *json, const struct saturn_report *report, const struct plan *plan,
                     double makespan_s);

#endif
