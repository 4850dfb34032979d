/* A machine, from a verb's options, on which a plan is timed instead of its own. */
#ifndef SPILLWAY_CLI_COMMON_CLI_OTHER_MACHINE_H
#define SPILLWAY_CLI_COMMON_CLI_OTHER_MACHINE_H

#include "cli/common/cli_machine.h"
#include "planner/plan.h"

struct cli_other_machine {
    const struct hardware *hardware; /* NULL: the plan's own machine, unchanged */
    struct hardware named;           /* set when the options name a machine */
    struct plan own;                 /* a second copy of the plan, set when the options change only speeds */
};

/*
 * Finds the other machine. If the options name one, it has the plan's number of devices; if they only change speeds, it
 * is the plan's own machine at these speeds. `path`: the file that the plan was read from. `out` is zeroed before; the
 * caller releases it, also after an error. Errors: STATUS_INFEASIBLE if a device has less memory than the plan uses of
 * it; the errors of reading a machine.
 */
MUST_CHECK enum status cli_other_machine_find(const struct cli_machine *machine, const char *path,
                                              const struct plan *plan, struct cli_other_machine *out,
                                              struct error *err);
void cli_other_machine_release(struct cli_other_machine *other);

#endif
