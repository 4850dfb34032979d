#include "cli/process/cli_load.h"

#include "models/hardware/hardware.h"

static const double NOTED = 0.05, TAKEN_MAX = 0.99, SHORTEST_S = 2, LATE_MAX = 0.01;

void cli_load_warn_profile(struct cli *cli, const struct hardware *hardware)
{
    char text[HARDWARE_LOAD_TEXT_BYTES];
    if (!hardware_load_text(hardware, text)) return;
    cli_warn(cli, "the profile of '%s' is not clean: %s, and %.0f %% of the samples were disturbed "
             "(measure again when it is idle: spillway measure)", hardware->name, text,
             100 * hardware->load.disturbed.value);
}

bool cli_load_slows(double taken, double measured_s, double predicted_s, double *slowed_s)
{
    if (taken < NOTED || measured_s < SHORTEST_S) return false;
    *slowed_s = predicted_s / (1 - (taken < TAKEN_MAX ? taken : TAKEN_MAX));
    return true;
}

bool cli_load_limited(double late)
{
    return late > LATE_MAX;
}

void cli_load_warn_late(struct cli *cli, double late)
{
    if (!cli_load_limited(late)) return;
    cli_warn(cli, "the measured run is not valid: the work of its dilated devices was late by %.2g %%, "
                  "because the cores were "
             "the limit (use a larger --dilate, or fewer devices)", 100 * late);
}
