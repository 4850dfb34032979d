/* The line `next:` of verbs after which jobs are planned. See cli.h. */
#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/common/cli.h"
#include "cli/common/cli_machine.h"

enum { WORDS_MAX = 64, FILE_BYTES = 96, NAMED_MAX = 64 };

static const char usual_file[] = "jobs.json", usual_network[] = "gpt2";

struct words {
    const char *list[WORDS_MAX];
    size_t count;
};

static void add(struct words *words, const char *word)
{
    assert(words->count + 1 < WORDS_MAX);
    words->list[words->count++] = word;
}

static void add_all(struct words *words, const char *const *list)
{
    for (; list && *list; list++) add(words, *list);
}

/* Ends a command: another one follows. */
static void add_then(struct words *words)
{
    add(words, "&&");
    add(words, "spillway");
}

static bool is_measured(void)
{
    char path[CLI_PATH_BYTES];
    struct error ignored = {0};
    return cli_profile_path(path, &ignored) == STATUS_OK && access(path, F_OK) == 0;
}

/* Writes a name for a jobs file that does not exist: jobs.json, or jobs-NETWORK.json, jobs-NETWORK-2.json and so on.
 * Returns false if all are taken. */
static bool name_file(const char *network, char file[FILE_BYTES])
{
    char name[NAMED_MAX] = "";
    const char *last = strrchr(network, '/');
    const bool named = last && last[1] && strcmp(last + 1, "config.json") != 0;
    snprintf(name, sizeof name, "%s", named ? last + 1 : last ? "new" : network);
    for (char *at = name; *at; at++)
        if (!isalnum((unsigned char)*at) && !strchr("-_.", *at)) *at = '-';
    snprintf(file, FILE_BYTES, "%s", usual_file);
    for (int n = 1; access(file, F_OK) == 0; n++) {
        if (n == 100) return false;
        if (n == 1) snprintf(file, FILE_BYTES, "jobs-%s.json", name);
        else snprintf(file, FILE_BYTES, "jobs-%s-%d.json", name, n);
    }
    return true;
}

void cli_next_plan(struct cli *cli, const struct cli_next_jobs *jobs)
{
    struct words words = {.count = 0};
    const char *file = jobs->file ? jobs->file : usual_file;
    char new_file[FILE_BYTES];
    bool is_new = !jobs->file && (jobs->network || access(file, F_OK) != 0);
    if (is_new) {
        const char *network = jobs->network ? jobs->network : usual_network;
        if (!name_file(network, new_file)) return;
        file = new_file;
        add_all(&words, (const char *const[]){"jobs", "new", network, NULL});
        add_all(&words, jobs->job_words);
        add_all(&words, (const char *const[]){"-o", file, NULL});
        add_then(&words);
    }
    if (!jobs->machine && !is_measured()) {
        add(&words, "measure");
        add_then(&words);
    }
    add_all(&words, (const char *const[]){"plan", file, NULL});
    if (jobs->machine) add_all(&words, (const char *const[]){"--hw", jobs->machine, NULL});
    add_all(&words, jobs->plan_words);
    words.list[words.count] = NULL;
    cli_next(cli, words.list);
}
