/* Another machine, from options, on which a plan is timed. */
#ifndef SPILLWAY_CLI_COMMON_CLI_OTHER_MACHINE_H
#define SPILLWAY_CLI_COMMON_CLI_OTHER_MACHINE_H

#include "cli/common/cli_machine.h"
#include "planner/plan.h"

struct cli_other_machine {
    const struct hardware *hardware; /* NULL: the plan's own */
    struct hardware named;           /* if the options name one */
    struct plan own;                 /* the plan's copy, if options only change speeds */
};

/*
 * Finds the machine. A named one has the plan's number of devices; otherwise the plan's machine gets the options'
 * speeds. `path` is the plan's file. `out` is zeroed before; the caller releases it, also after an error. Errors:
 * STATUS_INFEASIBLE if a device has less memory than the plan uses of it; the errors of reading a machine.
 */
MUST_CHECK enum status cli_other_machine_find(const struct cli_machine *machine, const char *path,
                                              const struct plan *plan, struct cli_other_machine *out,
                                              struct error *err);
void cli_other_machine_release(struct cli_other_machine *other);

#endif
