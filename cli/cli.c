/*
 * A verb with actions ("models list") has a row per action, each with its options. Words are compared with the rows
 * from the first on: `modles show` and `models shwo` each get a suggestion.
 *
 * Tables of options are on the verbs' stacks, because they point to variables. To read a table (for help, completion
 * and the check of the man pages), set cli->look and call the verb; cli_parse() then passes the table on and ends the
 * verb.
 */
#include "cli/common/cli.h"

#include <assert.h>
#include <string.h>

#include "base/files/outputs.h"
#include "base/size.h"
#include "base/text/suggest.h"
#include "base/try.h"
#include "cli/cli_old_spelling.h"
#include "cli/common/cli_answer.h"
#include "cli/document/cli_document.h"
#include "cli/plan/cli_policy_skeleton.h"

enum { VERBS_MAX = 64 };

const struct cli_verb cli_verbs[] = {
    {"measure", NULL, "", "measure this machine and keep its profile", verb_measure},
    {"calibrate", NULL, "MACHINE CSV...", "fit a machine's values to measured training runs", verb_calibrate},
    {"models", "list", "", "list the networks known by name", verb_models_list},
    {"models", "show", "NETWORK", "show parameters, FLOPs and bytes of a network by layer",
     verb_models_show},
    {"hardware", "list", "", "list the machines known by name", verb_hardware_list},
    {"hardware", "show", "[MACHINE]", "show the values of a machine with their sources",
     verb_hardware_show},
    {"hardware", "check", "FILE", "check that a hardware file makes physical sense",
     verb_hardware_check},
    {"hardware", "detect", "", "describe this machine from its drivers, without measuring",
     verb_hardware_detect},
    {"hardware", "import", "FILE", "import what another tool measured of a machine", verb_hardware_import},
    {"check", NULL, "FILE", "recognise a file and check it", verb_check},
    {"mem", NULL, "NETWORK", "show whether training fits and where memory goes", verb_mem},
    {"jobs", "new", "NETWORK...", "begin a jobs file with a job for each network", verb_jobs_new},
    {"tokenize", NULL, "FILE...", "turn texts into tokens that jobs train on", verb_tokenize},
    {"whatif", NULL, "JOBS.json", "estimate time, cost and bottleneck on other machines", verb_whatif},
    {"plan", NULL, "JOBS.json", "decide when and where everything runs, within memory", verb_plan},
    {"partition", NULL, "FILE", "divide layers into replicated stages of a pipeline", verb_partition},
    {"solve", NULL, "FILE", "find a schedule of a problem and prove a bound on it", verb_solve},
    {"simulate", NULL, "FILE", "predict the time of a plan or jobs without running them", verb_simulate},
    {"sweep", NULL, "[VERB] FILE", "run a verb at every point of a grid", verb_sweep},
    {"serve", NULL, "SERVING.json", "place models that answer requests and rate the placement", verb_serve},
    {"swarm", NULL, "SWARM.json", "simulate training by unreliable peers far apart", verb_swarm},
    {"run", NULL, "PLAN.json", "carry out a plan and compare it with its prediction", verb_run},
    {"history", NULL, "", "list past predictions and measurements", verb_history},
    {"compare", NULL, "PREDICTED MEASURED", "compare a predicted and a measured trace of a plan",
     verb_compare},
    {"explain", NULL, "PLAN.json [TRACE]", "show where the time goes and what would make it faster",
     verb_explain},
    {"trace", "show", "TRACE", "show the contents of a trace", verb_trace_show},
    {"trace", "export", "TRACE...", "write a timeline for ui.perfetto.dev or chrome://tracing",
     verb_trace_export},
    {"trace", "replay", "PLAN.json TRACE", "carry out a recorded trace again with something changed",
     verb_trace_replay},
    {"trace", "simulate", "PREFIX", "time execution traces of MLCommons Chakra", verb_trace_simulate},
    {"trace", "chakra", "PLAN.json", "write a plan as MLCommons Chakra execution traces", verb_trace_chakra},
    {"plot", "timeline", "TRACE...", "draw what each stream did over time", verb_plot_timeline},
    {"plot", "throughput", "ALL.json", "draw the throughput of policies as bars",
     verb_plot_throughput},
    {"plot", "memory", "TRACE...", "draw the memory in use over time", verb_plot_memory},
    {"repro", "list", "", "list the figures of papers that can be reproduced", verb_repro_list},
    {"repro", "show", "ID", "show the comparisons and assumptions of a figure", verb_repro_show},
    {"repro", "run", "ID", "reproduce a figure: simulated and published values", verb_repro_run},
    {"repro", "all", "", "reproduce every figure of every paper on one page", verb_repro_all},
    {"bench", NULL, "", "compare policies with each other and with a bound", verb_bench},
    {"policy", "new", "NAME", "create the files of a new policy", verb_policy_new},
    {"policy", "test", "POLICY [CASE.json]", "check that a policy keeps the rules", verb_policy_test},
    {"doctor", NULL, "", "check this machine and print repairs", verb_doctor},
    {"completion", NULL, "SHELL", "print a completion script for a shell", verb_completion},
    {"help", NULL, "[VERB [ACTION]]", "describe a verb and all its options", verb_help},
    {NULL, NULL, NULL, NULL, NULL},
};
static_assert(ARRAY_COUNT(cli_verbs) <= VERBS_MAX, "the list of suggestions has room for all");

const struct cli_verb_name cli_verb_names[] = {
    {"hw", "hardware"}, {"sim", "simulate"}, {"model", "models"}, {"runs", "history"}, {NULL, NULL}};

const char *const cli_dispatches[] = {"plan", "live", NULL};

/* --- finding the verb ------------------------------------------------------------------------ */

/* Lists names (name NULL) or the actions of `name`, without duplicates. */
static size_t list_words(const char *name, const char *words[VERBS_MAX])
{
    size_t count = 0;
    for (const struct cli_verb *verb = cli_verbs; verb->name; verb++) {
        if (name && strcmp(verb->name, name) != 0) continue;
        const char *word = name ? verb->action : verb->name;
        if (word && (count == 0 || strcmp(words[count - 1], word) != 0)) words[count++] = word;
    }
    return count;
}

/* Reports an unknown word; `what` is "unknown verb" or similar. */
static enum status unknown_word(const char *what, const char *word, const char *const *words,
                                size_t count, struct error *err)
{
    char ending[SUGGEST_BYTES];
    return error_set(err, STATUS_BAD_INPUT, "%s '%s'%s", what, word, suggest_ending(word, words, count, ending));
}

static const char *full_name(const char *name)
{
    for (const struct cli_verb_name *other = cli_verb_names; other->theirs; other++)
        if (strcmp(other->theirs, name) == 0) return other->ours;
    return name;
}

enum status cli_find_verb(const char *name, const char *action, const struct cli_verb **out,
                          struct error *err)
{
    const char *words[VERBS_MAX];
    const struct cli_verb *verb = cli_verbs;
    name = full_name(name);
    while (verb->name && strcmp(verb->name, name) != 0) verb++;
    if (!verb->name) return unknown_word("unknown verb", name, words, list_words(NULL, words), err);
    if (!verb->action) {
        *out = verb;
        return STATUS_OK;
    }
    size_t count = list_words(name, words);
    if (!action || action[0] == '-') {
        char list[256];
        return error_set(err, STATUS_BAD_INPUT, "'spillway %s' needs an action (%s)", name,
                         suggest_list(words, count, list, sizeof list));
    }
    for (; verb->name && strcmp(verb->name, name) == 0; verb++) {
        if (strcmp(verb->action, action) != 0) continue;
        *out = verb;
        return STATUS_OK;
    }
    char what[CLI_COMMAND_BYTES];
    snprintf(what, sizeof what, "'spillway %s' has no action", name);
    return unknown_word(what, action, words, count, err);
}

const char *cli_command(const struct cli_verb *verb, char buffer[CLI_COMMAND_BYTES])
{
    snprintf(buffer, CLI_COMMAND_BYTES, "spillway %s%s%s", verb->name, verb->action ? " " : "",
             verb->action ? verb->action : "");
    return buffer;
}

/* --- running and looking at tables ----------------------------------------------------------- */

static bool is_help(const char *word)
{
    return strcmp(word, "-h") == 0 || strcmp(word, "--help") == 0;
}

static bool is_version(const char *word)
{
    return strcmp(word, "-V") == 0 || strcmp(word, "--version") == 0;
}

static enum status run_verb(struct cli *cli, int argc, char **argv, struct error *err)
{
    int used = cli->verb->action ? 1 : 0; /* before the verb's last word */
    outputs_begin();
    enum status status = cli->verb->run(cli, argc - used, argv + used, err);
    status = cli_document_end(cli, status, err);
    outputs_end();
    return status;
}

/* Runs the new form, with a warning. */
static enum status run_old(struct cli *cli, struct cli_old_spelling *old, struct error *err)
{
    cli->argc = old->count;
    cli->argv = old->words;
    cli->advice = old->advice;
    TRY(cli_find_verb(old->words[0], old->words[1], &cli->verb, err));
    return run_verb(cli, old->count, old->words, err);
}

static enum status print_version(struct cli *cli, int argc, char **argv, struct error *err)
{
    struct json_out *json;
    if (argc > 2 || (argc == 2 && strcmp(argv[1], "--json") != 0))
        return error_set(err, STATUS_BAD_INPUT, "unexpected argument '%s' (expected --json or nothing)",
                         argv[argc > 2 ? 2 : 1]);
    if (argc == 1) {
        fprintf(cli->out, "spillway %s\n", SPILLWAY_VERSION);
        return STATUS_OK;
    }
    TRY(cli_report_begin(cli, "version", &json, err));
    return cli_report_end(cli, json, err);
}

static enum status dispatch(struct cli *cli, int argc, char **argv, struct error *err)
{
    if (argc == 0)
        return error_set(err, STATUS_BAD_INPUT,
                         "no verb was given: see 'spillway help', or begin with 'spillway measure'");
    if (argc == 2 && strcmp(argv[0], "--json") == 0 && is_version(argv[1])) { /* either order */
        static char json[] = "--json";
        return print_version(cli, 2, (char *[]){argv[1], json, NULL}, err);
    }
    if (is_version(argv[0])) return print_version(cli, argc, argv, err);
    if (strcmp(argv[0], "--includedir") == 0) {
        char folder[CLI_PATH_BYTES];
        cli_include_folder(folder);
        fprintf(cli->out, "%s\n", folder);
        return STATUS_OK;
    }
    /* "spillway --help" and "spillway models --help" mean "spillway help [models]". */
    static char help[] = "help";
    char *help_words[] = {help, argv[0], NULL};
    if (is_help(argv[0])) {
        argc = 1;
        argv = help_words;
    } else if (argc == 2 && is_help(argv[1])) {
        argv = help_words;
    }
    struct cli_old_spelling old = {0};
    if (cli_old_spelling_find(argc, argv, &old)) {
        enum status status = run_old(cli, &old, err);
        cli_old_spelling_release(&old);
        return status;
    }
    TRY(cli_find_verb(argv[0], argc > 1 ? argv[1] : NULL, &cli->verb, err));
    return run_verb(cli, argc, argv, err);
}

enum status cli_dispatch(int argc, char **argv, FILE *out, struct error *err)
{
    struct cli cli = {.out = out, .argc = argc, .argv = argv, .begin_document = cli_document_begin};
    enum status status = dispatch(&cli, argc, argv, err);
    cli.argc = argc; /* an old spelling's words are freed */
    cli.argv = argv;
    return cli_answer_end(&cli, status, err);
}

enum status cli_look(const char *name,
                     void (*look)(void *context, const struct options *options), void *context,
                     struct error *err)
{
    static char word[] = "look";
    char *words[] = {word, NULL};
    for (const struct cli_verb *verb = cli_verbs; verb->name; verb++) {
        if (name && strcmp(verb->name, name) != 0) continue;
        struct cli cli = {.verb = verb, .look = look, .look_context = context};
        if (verb->run(&cli, 1, words, err) != STATUS_OK) return err->status;
    }
    return STATUS_OK;
}
