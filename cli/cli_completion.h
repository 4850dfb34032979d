/*
 * Completion scripts. A place on the command line is an option's value, or a command's arguments; placeholders of the
 * option tables ("FILE", "MACHINE", "[VERB [ACTION]]") say which words and files it takes.
 */
#ifndef SPILLWAY_CLI_CLI_COMPLETION_H
#define SPILLWAY_CLI_CLI_COMPLETION_H

#include "base/process/options.h"
#include "cli/common/cli.h"

enum completion_files { COMPLETION_NO_FILES, COMPLETION_FILES, COMPLETION_FOLDERS };

enum { COMPLETION_LISTS_MAX = 3 };

struct completion_place {
    void (*lists[COMPLETION_LISTS_MAX])(FILE *out); /* each prints words, with a space before each */
    size_t list_count;
    const char *const *choices; /* of an option; may be NULL */
    enum completion_files files;
};

struct completion_place completion_of_value(const struct option_spec *spec);
struct completion_place completion_of_arguments(const struct options *options);

/* Prints a place's known words, with a space before each. */
void completion_print_words(FILE *out, const struct completion_place *place);

/* Print the verbs, or the figures of `repro`, with a space before each; no figures without their folder. */
void completion_print_verbs(FILE *out);
void completion_print_figures(FILE *out);

/* Calls `print` for each verb's first row. */
void completion_each_verb(FILE *out, void (*print)(FILE *out, const struct cli_verb *verb));
/* Prints a verb's actions, with a space before each. `verb` is its first row. */
void completion_print_actions(FILE *out, const struct cli_verb *verb);

/* Prints a shell's script. bash and zsh share one function; fish has a line for each word. */
MUST_CHECK enum status completion_print_bash(FILE *out, struct error *err);
MUST_CHECK enum status completion_print_zsh(FILE *out, struct error *err);
MUST_CHECK enum status completion_print_fish(FILE *out, struct error *err);

/* The last entry has the name NULL. */
struct completion_shell {
    const char *name;
    enum status (*print)(FILE *out, struct error *err);
};
extern const struct completion_shell completion_shells[];

#endif
