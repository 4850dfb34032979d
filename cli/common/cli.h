/*
 * The command line of `spillway`.
 *
 * A verb parses its options, does its work and then writes its answer into cli->out, a stream in memory that main()
 * copies to standard output. It may answer and return an error: "it does not fit" and "too far off" come with figures.
 */
#ifndef SPILLWAY_CLI_COMMON_CLI_H
#define SPILLWAY_CLI_COMMON_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "base/json/json_out.h"
#include "base/process/options.h"
#include "base/try.h"

enum { CLI_WARNINGS_MAX = 16, CLI_COMMAND_BYTES = 64, CLI_PATH_BYTES = 4096 };

struct cli;
struct cli_document;

/* argv[0] is the verb's last word. */
typedef enum status (*cli_run)(struct cli *cli, int argc, char **argv, struct error *err);

struct cli_verb {
    const char *name;   /* "plan" */
    const char *action; /* of "models show"; may be NULL */
    const char *arguments;
    const char *summary; /* one line, lower case, no full stop */
    cli_run run;
};

/* In the order of the help; ends with a NULL name. */
extern const struct cli_verb cli_verbs[];

/* Other names of verbs; ends with NULL. */
struct cli_verb_name {
    const char *theirs, *ours;
};
extern const struct cli_verb_name cli_verb_names[];

/* The plan's order, or live. */
extern const char *const cli_dispatches[];

struct cli {
    const struct cli_verb *verb; /* running */
    int argc;                    /* after `spillway`; borrowed */
    char **argv;
    FILE *out;                   /* in memory */
    struct json_out *answer;     /* with all keys of the verb; NULL: not begun */
    bool json, quiet, force;     /* --json, --quiet, --force */
    const char *advice; /* for an old spelling; may be NULL */
    const char *report_path;     /* may be NULL */
    const char *history_path;    /* may be NULL */
    enum status (*begin_document)(struct cli *cli, struct error *err); /* called by cli_parse() */
    struct cli_document *document; /* page of --report (cli_document.h); may be NULL */
    char warnings[CLI_WARNINGS_MAX][512];
    size_t warning_count;
    /* If set, cli_parse() passes the option table to look() and the verb ends: for help, completion and tests. */
    void (*look)(void *context, const struct options *options);
    void *look_context;
};

/* Finds the verb and calls it. The answer goes to `out`, perhaps also on failure. */
MUST_CHECK enum status cli_dispatch(int argc, char **argv, FILE *out, struct error *err);

/* Finds a verb's row. `action`, the word after the verb, may be NULL and is read only if the verb has actions.
 * Errors: STATUS_BAD_INPUT with a suggestion. */
MUST_CHECK enum status cli_find_verb(const char *name, const char *action,
                                     const struct cli_verb **out, struct error *err);

/* Returns "spillway models show". */
const char *cli_command(const struct cli_verb *verb, char buffer[CLI_COMMAND_BYTES]);

/* The last rows of every verb's table. */
#define CLI_COMMON_OPTIONS(cli)                                                                   \
    OPTION_FLAG("json", 0, &(cli)->json, "print one JSON object instead of text"),                \
        OPTION_FLAG("quiet", 'q', &(cli)->quiet, "print no progress, no warnings and no next command")

/* For verbs that write files, before CLI_COMMON_OPTIONS(). */
#define CLI_FORCE_OPTION(cli) OPTION_FORCE(&(cli)->force)

/* For answers that can be a page (cli/document/cli_document.h), before CLI_FORCE_OPTION(). */
#define CLI_REPORT_OPTION(cli)                                                                    \
    OPTION_OUTPUT("report", 0, "FILE", FILE_KIND_PAGE, &(cli)->report_path,                       \
                  "also write the answer with pictures to NAME.html or NAME.md")

/* For answers that can be a page, of verbs that take no other common options than these. */
#define CLI_ANSWER_OPTIONS(cli) CLI_REPORT_OPTION(cli), CLI_FORCE_OPTION(cli), CLI_COMMON_OPTIONS(cli)

/* Sizes of samples that only some networks have. */
#define CLI_OTHER_SIZES(decoder_sequence, image)                                                                       \
    OPTION_U64("decoder-sequence", 0, "N", 1, NETWORK_POSITIONS_MAX, decoder_sequence,                                 \
               "tokens per sample of the decoder, for T5 (default: --sequence)"),                                      \
        OPTION_U64("image-size", 0, "PIXELS", 1, NETWORK_IMAGE_MAX, image,                                             \
                   "side of an image, for convolutional networks (default: the network's)")

/* For verbs that add a row to the history. */
#define CLI_HISTORY_OPTION(cli)                                                                   \
    OPTION_OUTPUT("history", 0, "FILE", FILE_KIND_DATABASE, &(cli)->history_path,                 \
                  "history file to add a row to (default: yours)")

/*
 * Parses a verb's options; command, arguments and summary come from cli_verbs. *go_on is false when the verb shall
 * end.
 */
MUST_CHECK enum status cli_parse(struct cli *cli, struct options *options, int argc, char **argv,
                                 bool *go_on, struct error *err);

/* Parses them, and returns from the verb if they are wrong or the verb shall end. */
#define CLI_PARSE(cli, options, argc, argv, err)                        \
    do {                                                                \
        bool cli_go_on;                                                 \
        TRY(cli_parse(cli, options, argc, argv, &cli_go_on, err));      \
        if (!cli_go_on) return STATUS_OK;                               \
    } while (0)

/* Refuses "-" (standard output, which gets the report) as the path of an option; `path` may be NULL. */
MUST_CHECK enum status cli_refuse_dash(const char *option, const char *path, struct error *err);

/* Calls `look` for each action of a verb (NULL: of all verbs). */
MUST_CHECK enum status cli_look(const char *name,
                                void (*look)(void *context, const struct options *options),
                                void *context, struct error *err);

/* Keeps a warning for JSON and prints it on standard error unless --quiet. */
void cli_warn(struct cli *cli, const char *format, ...) PRINTF_LIKE(2, 3);

/*
 * Prints a report's last line, the next command, ready to be copied. `words` ends with NULL and starts after
 * "spillway"; "&&" begins another command. Prints nothing with --quiet.
 */
void cli_next(struct cli *cli, const char *const *words);

/*
 * Prints the next command of verbs after which jobs are planned. With a network, 'jobs new' first makes a file of a new
 * name for it. Otherwise the command uses jobs.json if it exists, else a file that 'jobs new' makes. A machine without
 * a profile is measured first.
 */
struct cli_next_jobs {
    const char *file;               /* a jobs file; NULL: the verb made none */
    const char *network;            /* the network of a new file; NULL: any */
    const char *const *job_words;   /* options of 'jobs new', ending in NULL; NULL: none */
    const char *const *plan_words;  /* options of 'plan', likewise */
    const char *machine;            /* value of --hw; NULL: this machine */
};
void cli_next_plan(struct cli *cli, const struct cli_next_jobs *jobs);

/* Quotes a word for a shell if necessary. */
void cli_print_word(FILE *out, const char *word);

/*
 * cli_report_begin() writes {"schema": "spillway-SCHEMA-1", "tool_version": ..., "verb": .... cli_report_end() hands
 * the report over, also on failure; cli/common/cli_answer.c then adds "warnings" and "error" and moves it to cli->out.
 */
MUST_CHECK enum status cli_report_begin(struct cli *cli, const char *schema, struct json_out **out,
                                        struct error *err);
MUST_CHECK enum status cli_report_end(struct cli *cli, struct json_out *json, struct error *err);

/* Writes a string of 16 hexadecimal digits. */
void cli_fingerprint(struct json_out *json, uint64_t fingerprint);

/* Returns "1 job" or "2 jobs". The text of CLI_COUNT() lives until its block ends. */
enum { CLI_COUNT_BYTES = 48 };
const char *cli_count(uint64_t count, const char *one, char buffer[CLI_COUNT_BYTES]);
#define CLI_COUNT(count, one) cli_count(count, one, (char[CLI_COUNT_BYTES]){0})

/* Returns "12.3 %". */
enum { CLI_PERCENT_BYTES = 32 };
const char *cli_percent(double ratio, char buffer[CLI_PERCENT_BYTES]);

/* Returns "+4.2 %", for errors and differences. */
const char *cli_signed_percent(double ratio, char buffer[CLI_PERCENT_BYTES]);

/* Reads "10%" or "0.1". Errors: STATUS_BAD_INPUT, naming the option. */
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
enum status verb_tokenize(struct cli *cli, int argc, char **argv, struct error *err);
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
