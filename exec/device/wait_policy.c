/*
 * Why sleeping: a run has more threads than cores, and a team that spins at the end of each loop
 * takes the core from the thread that it waits for. Measured, GPT-2 124M at B 4, T 64, two threads
 * on two cores (medians of 5 to 9 steps):
 *
 *                                  spinning     sleeping
 *     nothing else runs             1099 ms      1038 ms
 *     two other busy threads     4000-9000 ms    1960 ms
 *
 * Waking a sleeping team costs some 10 us, a few hundred times in such a step.
 */
#include "exec/device/wait_policy.h"

#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/files/path.h"

void wait_policy_passive(char **arguments)
{
    if (getenv("OMP_WAIT_POLICY") || getenv("GOMP_SPINCOUNT")) return;
    char path[PATH_MAX];
    struct error unknown = {0};
    if (path_from_program("", path, sizeof path, &unknown) != STATUS_OK) return;
    if (setenv("OMP_WAIT_POLICY", "passive", 0) == 0) execv(path, arguments);
}
