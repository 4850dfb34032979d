/*
 * Completion scripts: what may follow on a command line, and the script of each shell.
 *
 * A place on the command line is the value of an option, or the arguments of a command. Known words and files may stand
 * there; the placeholders of the option tables ("FILE", "MACHINE", "[VERB [ACTION]]") tell which.
 */
#ifndef SPILLWAY_CLI_CLI_COMPLETION_H
#define SPILLWAY_CLI_CLI_COMPLETION_H

#include "base/process/options.h"
#include "cli/common/cli.h"

enum completion_files { COMPLETION_NO_FILES, COMPLETION_FILES, COMPLETION_FOLDERS };

enum { COMPLETION_LISTS_MAX = 3 };

struct completion_place {
    void (*lists[COMPLETION_LISTS_MAX])(FILE *out); /* each prints its words, a blank before each */
    size_t list_count;
    const char *const *choices; /* of an option; NULL: none */
    enum completion_files files;
};

struct completion_place completion_of_value(const struct option_spec *spec);
struct completion_place completion_of_arguments(const struct options *options);

/* The known words of a place, a blank before each. */
void completion_print_words(FILE *out, const struct completion_place *place);

/* The figures of `repro`, a blank before each; none where the folder of figures is not found. */
void completion_print_figures(FILE *out);

/* Call `print` for each verb name; the row is the first one of its actions. */
void completion_each_verb(FILE *out, void (*print)(FILE *out, const struct cli_verb *verb));
/* The actions of the verb whose first row this is, a blank before each. */
void completion_print_actions(FILE *out, const struct cli_verb *verb);

/* Prints the script of a shell. bash and zsh share the cases of one function; fish has a line for each word. */
MUST_CHECK enum status completion_print_bash(FILE *out, struct error *err);
MUST_CHECK enum status completion_print_zsh(FILE *out, struct error *err);
MUST_CHECK enum status completion_print_fish(FILE *out, struct error *err);

/* The shells, the name of the last NULL. */
struct completion_shell {
    const char *name;
    enum status (*print)(FILE *out, struct error *err);
};
extern const struct completion_shell completion_shells[];

#endif
