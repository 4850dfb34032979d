/* A verb's options as data: for verbs that make command lines of other verbs. */
#ifndef SPILLWAY_CLI_VERB_OPTIONS_H
#define SPILLWAY_CLI_VERB_OPTIONS_H

#include "base/arena.h"
#include "cli/common/cli.h"

struct cli_verb_option {
    const char *name;     /* without the dashes */
    const char *spelling; /* as typed: the same, or another program's name for it (cli/common/cli_synonyms.h) */
    char letter;          /* 0 if none */
    bool flag;
};

struct cli_verb_options {
    const struct cli_verb_option *items;
    size_t count;
};

/* Those of every action of `verb`, in the arena; none of what is no verb. Errors: STATUS_NO_MEMORY. */
MUST_CHECK enum status cli_verb_options(const char *verb, struct arena *arena, struct cli_verb_options *out,
                                        struct error *err);

/* NULL: it has none of that name. */
const struct cli_verb_option *cli_verb_option(const struct cli_verb_options *options, const char *name);

#endif
