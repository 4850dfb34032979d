/* The line `next:` of verbs after which jobs are planned. See cli.h. */
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/common/cli.h"
#include "cli/common/cli_machine.h"

static const char usual_file[] = "jobs.json", usual_network[] = "gpt2";

static bool is_measured(void)
{
    char path[CLI_PATH_BYTES];
    struct error ignored = {0};
    return cli_profile_path(path, &ignored) == STATUS_OK && access(path, F_OK) == 0;
}

void cli_next_plan(struct cli *cli, const struct cli_next_jobs *jobs)
{
    const char *words[24], *file = jobs->file ? jobs->file : usual_file;
    char sequence[24];
    size_t count = 0;
    if (!jobs->file && access(file, F_OK) != 0) {
        words[count++] = "jobs";
        words[count++] = "new";
        words[count++] = jobs->network ? jobs->network : usual_network;
        if (jobs->precision) words[count++] = "--precision";
        if (jobs->precision) words[count++] = jobs->precision;
        snprintf(sequence, sizeof sequence, "%" PRIu64, jobs->sequence);
        if (jobs->sequence > 0) words[count++] = "--sequence";
        if (jobs->sequence > 0) words[count++] = sequence;
        words[count++] = "-o";
        words[count++] = file;
        words[count++] = "&&";
        words[count++] = "spillway";
    }
    if (!jobs->machine && !is_measured()) {
        words[count++] = "measure";
        words[count++] = "&&";
        words[count++] = "spillway";
    }
    words[count++] = "plan";
    words[count++] = file;
    if (jobs->machine) words[count++] = "--hw";
    if (jobs->machine) words[count++] = jobs->machine;
    words[count] = NULL;
    cli_next(cli, words);
}
