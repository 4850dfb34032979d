/* See cli_verb_options.h. */
#include "cli/cli_verb_options.h"

#include <string.h>

struct looking {
    struct arena *arena;
    struct cli_verb_options *out;
    struct error *err;
};

/* Appends one action's, in an array that has room for both. */
static void append(void *context, const struct options *options)
{
    struct looking *looking = context;
    struct cli_verb_options *out = looking->out;
    void *memory = NULL;
    if (arena_array(looking->arena, out->count + options->spec_count, sizeof *out->items, &memory, looking->err)) return;
    struct cli_verb_option *items = memory;
    if (out->count > 0) memcpy(items, out->items, out->count * sizeof *items);
    for (size_t s = 0; s < options->spec_count; s++) {
        const struct option_spec *spec = &options->specs[s];
        struct cli_verb_option *item = &items[out->count + s];
        *item = (struct cli_verb_option){.letter = spec->letter, .flag = spec->type == OPTION_TYPE_FLAG};
        if (arena_string(looking->arena, spec->name, &item->name, looking->err)) return;
    }
    out->items = items;
    out->count += options->spec_count;
}

enum status cli_verb_options(const char *verb, struct arena *arena, struct cli_verb_options *out, struct error *err)
{
    *out = (struct cli_verb_options){0};
    struct looking looking = {arena, out, err};
    (void)!cli_look(verb, append, &looking, err);
    return err->status; /* append() may have left one there */
}

const struct cli_verb_option *cli_verb_option(const struct cli_verb_options *options, const char *name)
{
    for (size_t o = 0; o < options->count; o++)
        if (strcmp(options->items[o].name, name) == 0) return &options->items[o];
    return NULL;
}
