/*
 * Completion scripts: the words and files that may follow on a command line, and the script of each shell.
 *
 * A place on the command line is the value of an option, or the arguments of a command. The placeholders of the option
 * tables ("FILE", "MACHINE", "[VERB [ACTION]]") say which words and files may stand there.
 */
#ifndef SPILLWAY_CLI_CLI_COMPLETION_H
#define SPILLWAY_CLI_CLI_COMPLETION_H

#include "base/process/options.h"
#include "cli/common/cli.h"

enum completion_files { COMPLETION_NO_FILES, COMPLETION_FILES, COMPLETION_FOLDERS };

enum { COMPLETION_LISTS_MAX = 3 };

struct completion_place {
    void (*lists[COMPLETION_LISTS_MAX])(FILE *out); /* each prints its words, with a space before each word */
    size_t list_count;
    const char *const *choices; /* choices of an option; NULL: the option has none */
    enum completion_files files;
};

struct completion_place completion_of_value(const struct option_spec *spec);
struct completion_place completion_of_arguments(const struct options *options);

/* Prints the known words of a place, with a space before each word. */
void completion_print_words(FILE *out, const struct completion_place *place);

/* Prints the names of the figures of `repro`, with a space before each; prints nothing if the folder of figures is
 * missing. */
void completion_print_figures(FILE *out);

/* Calls `print` for each verb name with the row of the verb's first action. */
void completion_each_verb(FILE *out, void (*print)(FILE *out, const struct cli_verb *verb));
/* Prints the actions of a verb, with a space before each. `verb` is the row of its first action. */
void completion_print_actions(FILE *out, const struct cli_verb *verb);

/* Prints the script of a shell. bash and zsh share one function; fish has a line for each word. */
MUST_CHECK enum status completion_print_bash(FILE *out, struct error *err);
MUST_CHECK enum status completion_print_zsh(FILE *out, struct error *err);
MUST_CHECK enum status completion_print_fish(FILE *out, struct error *err);

/* All shells; the last entry has the name NULL. */
struct completion_shell {
    const char *name;
    enum status (*print)(FILE *out, struct error *err);
};
extern const struct completion_shell completion_shells[];

#endif
