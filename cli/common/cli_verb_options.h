/* A verb's options, for verbs that build other verbs' command lines. */
#ifndef SPILLWAY_CLI_COMMON_CLI_VERB_OPTIONS_H
#define SPILLWAY_CLI_COMMON_CLI_VERB_OPTIONS_H

#include "base/arena.h"
#include "cli/common/cli.h"

struct cli_verb_option {
    const char *name;     /* without the dashes */
    const char *spelling; /* `name`, or another tool's (cli/common/cli_synonyms.h) */
    char letter;          /* 0 if none */
    bool flag;
};

struct cli_verb_options {
    const struct cli_verb_option *items;
    size_t count;
};

/* Lists the options of all actions, in the arena; an unknown verb has none. */
MUST_CHECK enum status cli_verb_options(const char *verb, struct arena *arena, struct cli_verb_options *out,
                                        struct error *err);

/* Returns NULL if there is no such option. */
const struct cli_verb_option *cli_verb_option(const struct cli_verb_options *options, const char *name);

#endif
