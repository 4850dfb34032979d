/* The machine that a plan is timed on instead of its own, from a verb's options. */
#ifndef SPILLWAY_CLI_OTHER_MACHINE_H
#define SPILLWAY_CLI_OTHER_MACHINE_H

#include "cli/common/cli_machine.h"
#include "planner/plan.h"

struct cli_other_machine {
    const struct hardware *hardware; /* NULL: the plan's own, as it is */
    struct hardware named;           /* where it has a name ... */
    struct plan own;                 /* ... and where the plan's own goes at other speeds: the plan once more */
};

/*
 * With a name that machine, as many devices of it as the plan has; else with speeds the plan's own at these. The plan
 * was read from `path`. Zeroed struct in; release it also after an error.
 * Errors: STATUS_INFEASIBLE where a device has less memory than the plan uses of it; those of reading a machine.
 */
MUST_CHECK enum status cli_other_machine_find(const struct cli_machine *machine, const char *path,
                                              const struct plan *plan, struct cli_other_machine *out,
                                              struct error *err);
void cli_other_machine_release(struct cli_other_machine *other);

#endif
