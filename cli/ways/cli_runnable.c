#include "cli/ways/cli_runnable.h"

#include <string.h>

bool cli_runs_here(const struct hardware *hardware)
{
    return hardware->measured_on || strcmp(hardware->backend, "host") == 0;
}
