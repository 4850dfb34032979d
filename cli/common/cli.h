/*
 * The command line of `spillway`: one table of verbs, and what every verb shares.
 *
 * A verb is a function that parses its options, does its work and then writes its answer into
 * cli->out, a stream in memory. Nothing is written there before the work is done, so whatever a
 * verb leaves in it is complete; main() puts it on standard output. A verb may both leave an
 * answer and return an error: "it does not fit" and "too far off" come with the figures.
 */
#ifndef SPILLWAY_CLI_CLI_H
#define SPILLWAY_CLI_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "base/json/json_out.h"
#include "base/process/options.h"

enum { CLI_WARNINGS_MAX = 16, CLI_COMMAND_BYTES = 64, CLI_PATH_BYTES = 4096 };

struct cli;
struct cli_document;

/* argv[0] is the verb's last word. */
typedef enum status (*cli_run)(struct cli *cli, int argc, char **argv, struct error *err);

struct cli_verb {
    const char *name;   /* "plan" */
    const char *action; /* "show" of "models show"; NULL when the verb has only one */
    const char *arguments;
    const char *summary; /* one line, lower case, no full stop */
    cli_run run;
};

/* In the order of the help; ends with a NULL name. */
extern const struct cli_verb cli_verbs[];

/* Short names that verbs are accepted by, too; ends with NULL. */
struct cli_verb_name {
    const char *theirs, *ours;
};
extern const struct cli_verb_name cli_verb_names[];

/* Choices of --dispatch: the plan's order, or live. */
extern const char *const cli_dispatches[];

struct cli {
    const struct cli_verb *verb; /* the one that runs */
    int argc;                    /* the words behind `spillway`; borrowed */
    char **argv;
    FILE *out;                   /* the answer; see above */
    struct json_out *answer;     /* a JSON report that has all keys of the verb; NULL: none yet */
    bool json, quiet, force;     /* --json, --quiet, --force */
    const char *advice; /* a warning that an old spelling deserves; NULL: none */
    const char *report_path;     /* --report; NULL: not given */
    const char *history_path;    /* --history; NULL: not given */
    enum status (*begin_document)(struct cli *cli, struct error *err); /* called by cli_parse() for --report */
    struct cli_document *document; /* of --report (cli_document.h); NULL: none */
    char warnings[CLI_WARNINGS_MAX][512];
    size_t warning_count;
    /* Not NULL: cli_parse() hands the table over and the verb ends. Help, the completion and the
     * tests look at all tables this way. */
    void (*look)(void *context, const struct options *options);
    void *look_context;
};

/*
 * Run one command line: find the verb, call it. The answer goes to `out`; on failure `err` says
 * why, and an answer may be there as well.
 */
MUST_CHECK enum status cli_dispatch(int argc, char **argv, FILE *out, struct error *err);

/* The row for a verb and the word behind it, which is its action if it has any (`action` may be
 * NULL, and is not looked at otherwise). Errors: STATUS_BAD_INPUT with a suggestion. */
MUST_CHECK enum status cli_find_verb(const char *name, const char *action,
                                     const struct cli_verb **out, struct error *err);

/* "spillway models show" */
const char *cli_command(const struct cli_verb *verb, char buffer[CLI_COMMAND_BYTES]);

/* Every verb's table ends with these two rows. */
#define CLI_COMMON_OPTIONS(cli)                                                                   \
    OPTION_FLAG("json", 0, &(cli)->json, "print one JSON object instead of text"),                \
        OPTION_FLAG("quiet", 'q', &(cli)->quiet, "print no progress, no warnings and no next command")

/* Before them, in tables that have outputs. */
#define CLI_FORCE_OPTION(cli) OPTION_FORCE(&(cli)->force)

/* In front of them, where the answer can be a page as well: cli/document/cli_document.h. */
#define CLI_REPORT_OPTION(cli)                                                                    \
    OPTION_OUTPUT("report", 0, "FILE", FILE_KIND_PAGE, &(cli)->report_path,                       \
                  "also write the answer with pictures to NAME.html or NAME.md")

/* Of verbs that add a row to the history. */
#define CLI_HISTORY_OPTION(cli)                                                                   \
    OPTION_OUTPUT("history", 0, "FILE", FILE_KIND_DATABASE, &(cli)->history_path,                 \
                  "add the row to this history file instead of yours")

/*
 * Parse a verb's options; command, arguments and summary come from its row of cli_verbs. *go_on is
 * false when nothing is left to do: help was asked for, or somebody only looks at the table.
 */
MUST_CHECK enum status cli_parse(struct cli *cli, struct options *options, int argc, char **argv,
                                 bool *go_on, struct error *err);

/* Call `look` with the options of each action of a verb (all verbs when `name` is NULL). */
MUST_CHECK enum status cli_look(const char *name,
                                void (*look)(void *context, const struct options *options),
                                void *context, struct error *err);

/* Remembered for the JSON report and printed on standard error unless --quiet. */
void cli_warn(struct cli *cli, const char *format, ...) PRINTF_LIKE(2, 3);

/*
 * The last line of a report: what to type next, ready to be copied into a shell. `words` ends with
 * NULL; "spillway" stands in front of it, "&&" begins another command. Nothing with --quiet.
 */
void cli_next(struct cli *cli, const char *const *words);

/*
 * The same, for verbs after which jobs are planned, with files that the user has: the jobs.json that is here, or one that
 * 'jobs new' makes; a machine without a profile is measured first.
 */
struct cli_next_jobs {
    const char *file;      /* a jobs file; NULL: jobs.json */
    const char *network;   /* of the new file; NULL: a small one */
    const char *precision; /* of the new file; NULL: not given */
    uint64_t sequence;     /* the same; 0: not given */
    const char *machine;   /* of --hw; NULL: this one */
};
void cli_next_plan(struct cli *cli, const struct cli_next_jobs *jobs);

/* As a shell reads it back: in single quotes where it needs them. */
void cli_print_word(FILE *out, const char *word);

/*
 * A JSON report: begin writes {"schema": "spillway-SCHEMA-1", "tool_version": ..., "verb": ...; end hands it over, also on
 * failure. It is closed and moved to cli->out when the verb has ended, with "warnings" and the "error" that the verb
 * ended with (cli/common/cli_answer.c).
 */
MUST_CHECK enum status cli_report_begin(struct cli *cli, const char *schema, struct json_out **out,
                                        struct error *err);
MUST_CHECK enum status cli_report_end(struct cli *cli, struct json_out *json, struct error *err);

/* A plan's or a trace's fingerprint as a JSON string: 16 hexadecimal digits. */
void cli_fingerprint(struct json_out *json, uint64_t fingerprint);

/* "1 job", "2 jobs"; `one` takes an s behind it. CLI_COUNT() is for a call of printf: its text is the block's. */
enum { CLI_COUNT_BYTES = 48 };
const char *cli_count(uint64_t count, const char *one, char buffer[CLI_COUNT_BYTES]);
#define CLI_COUNT(count, one) cli_count(count, one, (char[CLI_COUNT_BYTES]){0})

/* A figure's percentage with one decimal: "12.3 %". */
enum { CLI_PERCENT_BYTES = 32 };
const char *cli_percent(double ratio, char buffer[CLI_PERCENT_BYTES]);

/* The same with its sign, for errors and differences: "+4.2 %". */
const char *cli_signed_percent(double ratio, char buffer[CLI_PERCENT_BYTES]);

/* A share on the command line: "10%" and "0.1" are the same. STATUS_BAD_INPUT names the option. */
MUST_CHECK enum status cli_ratio(const char *text, const char *option, double *out, struct error *err);

/* The verbs, one file each. */
enum status verb_models_list(struct cli *cli, int argc, char **argv, struct error *err);
enum status verb_models_show(struct cli *cli, int argc, char **argv, struct error *err);
enum status verb_jobs_new(struct cli *cli, int argc, char **argv, struct error *err);
enum status verb_hardware_list(struct cli *cli, int argc, char **argv, struct error *err);
enum status verb_hardware_show(struct cli *cli, int argc, char **argv, struct error *err);
enum status verb_hardware_check(struct cli *cli, int argc, char **argv, struct error *err);
enum status verb_hardware_detect(struct cli *cli, int argc, char **argv, struct error *err);
enum status verb_check(struct cli *cli, int argc, char **argv, struct error *err);
enum status verb_hardware_import(struct cli *cli, int argc, char **argv, struct error *err);
enum status verb_measure(struct cli *cli, int argc, char **argv, struct error *err);
enum status verb_calibrate(struct cli *cli, int argc, char **argv, struct error *err);
enum status verb_mem(struct cli *cli, int argc, char **argv, struct error *err);
enum status verb_whatif(struct cli *cli, int argc, char **argv, struct error *err);
enum status verb_plan(struct cli *cli, int argc, char **argv, struct error *err);
enum status verb_partition(struct cli *cli, int argc, char **argv, struct error *err);
enum status verb_solve(struct cli *cli, int argc, char **argv, struct error *err);
enum status verb_simulate(struct cli *cli, int argc, char **argv, struct error *err);
enum status verb_sweep(struct cli *cli, int argc, char **argv, struct error *err);
enum status verb_serve(struct cli *cli, int argc, char **argv, struct error *err);
enum status verb_swarm(struct cli *cli, int argc, char **argv, struct error *err);
enum status verb_run(struct cli *cli, int argc, char **argv, struct error *err);
enum status verb_history(struct cli *cli, int argc, char **argv, struct error *err);
enum status verb_compare(struct cli *cli, int argc, char **argv, struct error *err);
enum status verb_explain(struct cli *cli, int argc, char **argv, struct error *err);
enum status verb_trace_show(struct cli *cli, int argc, char **argv, struct error *err);
enum status verb_trace_export(struct cli *cli, int argc, char **argv, struct error *err);
enum status verb_trace_replay(struct cli *cli, int argc, char **argv, struct error *err);
enum status verb_trace_simulate(struct cli *cli, int argc, char **argv, struct error *err);
enum status verb_trace_chakra(struct cli *cli, int argc, char **argv, struct error *err);
enum status verb_plot_timeline(struct cli *cli, int argc, char **argv, struct error *err);
enum status verb_plot_throughput(struct cli *cli, int argc, char **argv, struct error *err);
enum status verb_plot_memory(struct cli *cli, int argc, char **argv, struct error *err);
enum status verb_repro_list(struct cli *cli, int argc, char **argv, struct error *err);
enum status verb_repro_show(struct cli *cli, int argc, char **argv, struct error *err);
enum status verb_repro_run(struct cli *cli, int argc, char **argv, struct error *err);
enum status verb_repro_all(struct cli *cli, int argc, char **argv, struct error *err);
enum status verb_policy_new(struct cli *cli, int argc, char **argv, struct error *err);
enum status verb_policy_test(struct cli *cli, int argc, char **argv, struct error *err);
enum status verb_bench(struct cli *cli, int argc, char **argv, struct error *err);
enum status verb_doctor(struct cli *cli, int argc, char **argv, struct error *err);
enum status verb_completion(struct cli *cli, int argc, char **argv, struct error *err);
enum status verb_help(struct cli *cli, int argc, char **argv, struct error *err);

#endif
