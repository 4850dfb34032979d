/* Kept outputs of frozen first layers: what a plan keeps, and, where it was asked, what that saves or why nothing is
 * kept; other plans have no such lines. */
#ifndef SPILLWAY_CLI_REPORTS_CLI_KEPT_OUTPUTS_H
#define SPILLWAY_CLI_REPORTS_CLI_KEPT_OUTPUTS_H

#include <stdio.h>

#include "base/json/json_out.h"
#include "cli/ways/cli_keep.h"

/* Print lines; write "kept_outputs": [{"layers", "samples", "bytes", ...}, ...] and "keeping": {...}. `width`: columns
 * of the words before. `keep`: NULL: it was not asked. */
void cli_kept_outputs_print(FILE *out, const struct plan *plan, const struct cli_keep *keep, int width);
void cli_kept_outputs_json(struct json_out *json, const struct plan *plan, const struct cli_keep *keep);

#endif
