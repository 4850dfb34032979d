#include "cli/history/cli_history.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/files/path.h"
#include "cli/common/cli_table.h"

enum status cli_history_path(char path[CLI_PATH_BYTES], bool *some, struct error *err)
{
    const char *file = getenv("SPILLWAY_HISTORY"), *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    int length = 0;
    if (file)
        length = snprintf(path, CLI_PATH_BYTES, "%s", file);
    else if (state && state[0] == '/')
        length = snprintf(path, CLI_PATH_BYTES, "%s/spillway/history.db", state);
    else if (home && home[0])
        length = snprintf(path, CLI_PATH_BYTES, "%s/.local/state/spillway/history.db", home);
    if (length < 0 || length >= CLI_PATH_BYTES)
        return error_set(err, STATUS_LIMIT, "the path of the history is too long (limit is %d bytes)", CLI_PATH_BYTES);
    *some = length > 0;
    return STATUS_OK;
}

/* Prints each network once: "gpt2-xl, llama-7b x 3". */
static void print_networks(FILE *out, const struct job_set *jobs)
{
    for (uint32_t j = 0; j < jobs->count; j++) {
        const char *name = cli_network_label(jobs->jobs[j].network.name);
        uint32_t count = 0;
        bool before = false;
        for (uint32_t k = 0; k < jobs->count; k++) {
            if (strcmp(cli_network_label(jobs->jobs[k].network.name), name) != 0) continue;
            before |= k < j;
            count++;
        }
        if (before) continue;
        fprintf(out, "%s%s", j > 0 ? ", " : "", name);
        if (count > 1) fprintf(out, " x %" PRIu32, count);
    }
}

/* Printed to memory, freed by the caller; NULL when memory ends. */
struct history_text {
    char *bytes;
    size_t length;
};

static char *text_end(FILE *out, struct history_text *text)
{
    if (fclose(out) == 0) return text->bytes;
    free(text->bytes);
    return NULL;
}

static char *networks_text(const struct job_set *jobs)
{
    struct history_text text = {0};
    FILE *out = open_memstream(&text.bytes, &text.length);
    if (!out) return NULL;
    print_networks(out, jobs);
    return text_end(out, &text);
}

static char *command_text(const struct cli *cli)
{
    struct history_text text = {0};
    FILE *out = open_memstream(&text.bytes, &text.length);
    if (!out) return NULL;
    for (int w = 0; w < cli->argc; w++) {
        if (w > 0) fputc(' ', out);
        cli_print_word(out, cli->argv[w]);
    }
    return text_end(out, &text);
}

static enum status add(const char *path, const struct history_record *record, struct error *err)
{
    struct history *history = NULL;
    enum status status = path_make_folders(path, err);
    if (status == STATUS_OK) status = history_open(path, true, &history, err);
    if (status == STATUS_OK) status = history_add(history, record, err);
    history_close(history);
    return status;
}

void cli_history_keep(struct cli *cli, const struct cli_outcome *outcome)
{
    char path[CLI_PATH_BYTES], made_at[HISTORY_TIME_BYTES], fingerprint[HISTORY_FINGERPRINT_BYTES];
    const struct plan *plan = outcome->plan;
    struct error err = {0};
    bool some = false;
    if (cli_history_path(path, &some, &err) == STATUS_OK && !some) return;
    if (plan) snprintf(fingerprint, sizeof fingerprint, "%016" PRIx64,
                       outcome->plan_fingerprint ? outcome->plan_fingerprint : plan_fingerprint(plan));
    char *command = command_text(cli), *networks = plan ? networks_text(&plan->jobs) : NULL;
    const struct history_record record = {
        .made_at = history_time((int64_t)time(NULL), made_at),
        .verb = cli->verb->name,
        .version = SPILLWAY_VERSION,
        .command = command,
        .file = outcome->file,
        .fingerprint = plan ? fingerprint : NULL,
        .policy = outcome->policy,
        .networks = networks,
        .hardware = outcome->hardware ? outcome->hardware->name : NULL,
        .measured_on = outcome->hardware ? outcome->hardware->measured_on : NULL,
        .jobs = plan ? plan->jobs.count : outcome->job_count,
        .devices = outcome->hardware ? outcome->hardware->device_count : 0,
        .predicted_s = outcome->predicted_s,
        .lower_bound_s = plan ? plan->lower_bound_s : 0,
        .predicted_tokens_per_s = outcome->predicted_tokens_per_s,
        .measured_s = outcome->measured_s,
        .measured_tokens_per_s = outcome->measured_tokens_per_s,
        .complete = outcome->complete,
    };
    if (!err.text[0] && add(path, &record, &err) != STATUS_OK)
        cli_warn(cli, "not added to the history: %s", err.text);
    free(command);
    free(networks);
}
