#include "cli/common/cli_verb_options.h"

#include <string.h>

#include "cli/common/cli_synonyms.h"

struct looking {
    struct arena *arena;
    struct cli_verb_options *out;
    struct error *err;
};

static enum status append(struct looking *looking, const struct option_spec *spec, const char *spelling)
{
    struct cli_verb_options *out = looking->out;
    struct cli_verb_option *items, item = {.letter = spec->letter, .flag = spec->type == OPTION_TYPE_FLAG};
    if (arena_string(looking->arena, spec->name, &item.name, looking->err) ||
        arena_string(looking->arena, spelling, &item.spelling, looking->err))
        return looking->err->status;
    items = (struct cli_verb_option *)(uintptr_t)out->items; /* the arena's, changed only here */
    items[out->count++] = item;
    return STATUS_OK;
}

/* Appends an action's options; the array has room. */
static void append_all(void *context, const struct options *options)
{
    struct looking *looking = context;
    struct cli_verb_options *out = looking->out;
    size_t synonyms = 0;
    while (cli_synonyms[synonyms].theirs) synonyms++;
    struct cli_verb_option *items = NULL;
    if (ARENA_NEW(looking->arena, out->count + options->spec_count + synonyms, items, looking->err))
        return;
    if (out->count > 0) memcpy(items, out->items, out->count * sizeof *out->items);
    out->items = items;
    for (size_t s = 0; s < options->spec_count; s++)
        if (append(looking, &options->specs[s], options->specs[s].name)) return;
    for (size_t s = 0; s < options->spec_count; s++)
        for (size_t w = 0; w < synonyms; w++)
            if (strcmp(cli_synonyms[w].ours, options->specs[s].name) == 0 &&
                append(looking, &options->specs[s], cli_synonyms[w].theirs))
                return;
}

enum status cli_verb_options(const char *verb, struct arena *arena, struct cli_verb_options *out, struct error *err)
{
    *out = (struct cli_verb_options){0};
    struct looking looking = {arena, out, err};
    (void)!cli_look(verb, append_all, &looking, err);
    return err->status; /* from append_all() */
}

const struct cli_verb_option *cli_verb_option(const struct cli_verb_options *options, const char *name)
{
    for (size_t o = 0; o < options->count; o++)
        if (strcmp(options->items[o].spelling, name) == 0) return &options->items[o];
    return NULL;
}
