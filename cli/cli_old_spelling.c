/*
 * Since 0.2, `simulate PLAN --replay TRACE` is `trace replay PLAN TRACE`, and `simulate --chakra PREFIX` is `trace
 * simulate PREFIX`. The old form's words are put in the new order; the advice is ready to be copied.
 */
#include "cli/cli_old_spelling.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "cli/common/cli.h"

/* Returns the place of `--name` or `--name=value`; 0: none. "--" ends options. */
static int find_option(int argc, char **argv, const char *name)
{
    size_t length = strlen(name);
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strncmp(argv[i], name, length) == 0 && (argv[i][length] == '\0' || argv[i][length] == '=')) return i;
    return 0;
}

static void write_advice(struct cli_old_spelling *old, const char *option)
{
    FILE *out = fmemopen(old->advice, sizeof old->advice - 1, "w");
    if (!out) return;
    fprintf(out, "'simulate %s' will be gone in the next release; type: spillway", option);
    for (int i = 0; i < old->count; i++) {
        fputc(' ', out);
        cli_print_word(out, old->words[i]);
    }
    fclose(out);
}

bool cli_old_spelling_find(int argc, char **argv, struct cli_old_spelling *out)
{
    static char trace[] = "trace", replay[] = "replay", simulate[] = "simulate";
    if (argc < 2 || (strcmp(argv[0], "simulate") != 0 && strcmp(argv[0], "sim") != 0)) return false;
    int replayed = find_option(argc, argv, "--replay"), chakra = find_option(argc, argv, "--chakra");
    int found = replayed ? replayed : chakra;
    if (!found || (replayed && chakra)) return false;
    char *value = strchr(argv[found], '=');
    bool takes_next = replayed && !value;
    if (chakra ? value != NULL : takes_next && found + 1 >= argc) return false;
    out->words = alloc_zeroed((size_t)argc + 3, sizeof *out->words);
    if (!out->words) return false;
    out->words[out->count++] = trace;
    out->words[out->count++] = replayed ? replay : simulate;
    for (int i = 1; i < argc; i++) {
        if (i == found) i += takes_next ? 1 : 0;
        else out->words[out->count++] = argv[i];
    }
    if (replayed) out->words[out->count++] = takes_next ? argv[found + 1] : value + 1;
    write_advice(out, replayed ? "--replay" : "--chakra");
    return true;
}

void cli_old_spelling_release(struct cli_old_spelling *old)
{
    free(old->words);
    *old = (struct cli_old_spelling){0};
}
