/* The options of a verb as data, for verbs that build command lines of other verbs. */
#ifndef SPILLWAY_CLI_COMMON_CLI_VERB_OPTIONS_H
#define SPILLWAY_CLI_COMMON_CLI_VERB_OPTIONS_H

#include "base/arena.h"
#include "cli/common/cli.h"

struct cli_verb_option {
    const char *name;     /* without the dashes */
    const char *spelling; /* as typed: `name`, or another tool's name for it (cli/common/cli_synonyms.h) */
    char letter;          /* 0 if none */
    bool flag;
};

struct cli_verb_options {
    const struct cli_verb_option *items;
    size_t count;
};

/* Lists the options of all actions of `verb`, in the arena; an unknown verb has none. */
MUST_CHECK enum status cli_verb_options(const char *verb, struct arena *arena, struct cli_verb_options *out,
                                        struct error *err);

/* Returns the option with the spelling `name`; NULL: there is none. */
const struct cli_verb_option *cli_verb_option(const struct cli_verb_options *options, const char *name);

#endif
