#include "cli/common/cli_ignored.h"

#include <string.h>

#include "cli/common/cli_table.h"
#include "models/hardware/hardware.h"

/* Returns true if an earlier job has the same keys and values. */
static bool was_told(const struct job_set *jobs, uint32_t j)
{
    const struct network *n = &jobs->jobs[j].network;
    for (uint32_t i = 0; i < j; i++) {
        const struct network *other = &jobs->jobs[i].network;
        if (other->family == n->family && memcmp(other->ignored, n->ignored, sizeof n->ignored) == 0) return true;
    }
    return false;
}

void cli_warn_ignored(struct cli *cli, const struct job_set *jobs)
{
    enum { TOLD_MAX = 8 };
    uint32_t told = 0;
    for (uint32_t j = 0; j < jobs->count && told < TOLD_MAX; j++) {
        const struct network *n = &jobs->jobs[j].network;
        char text[NETWORK_IGNORED_TEXT_BYTES];
        if (!*network_ignored_text(n, text) || was_told(jobs, j)) continue;
        cli_warn(cli, "network '%s' is trained without %s", cli_network_label(n->name), text);
        told++;
    }
}

void cli_warn_tf32(struct cli *cli, const struct hardware *hardware, const struct job_set *jobs)
{
    for (uint32_t d = 0; d < hardware->device_count; d++)
        if (hardware->types[hardware->devices[d].type].peak_tf32.value > 0) return;
    for (uint32_t j = 0; j < jobs->count; j++) {
        if (!jobs->jobs[j].tf32) continue;
        cli_warn(cli, "job '%s' has precision 'tf32', which these devices do not have: its products are fp32",
                 jobs->jobs[j].name);
        return;
    }
}
