/* fish: a line for each word, with its help and the command before it. */
#include <string.h>

#include "cli/cli_completion.h"

/* Quotes for fish. */
static void print_quoted(FILE *out, const char *text)
{
    fputc('\'', out);
    for (; *text; text++) {
        if (*text == '\'' || *text == '\\') fputc('\\', out);
        fputc(*text, out);
    }
    fputc('\'', out);
}

/* Prints complete -c spillway -n '__spillway_at plan'. */
static void print_condition(FILE *out, const char *command, const char *more)
{
    fprintf(out, "complete -c spillway -n '__spillway_at %s%s'", strchr(command, ' ') + 1, more);
}

/* Prints how a place takes words and files; -x excludes files. */
static void print_place(FILE *out, const struct completion_place *place, bool value)
{
    if (value) fputs(place->files == COMPLETION_FILES ? " -r -F" : " -x", out);
    else fputs(place->files == COMPLETION_FILES ? " -F" : " -f", out);
    if (place->files == COMPLETION_FOLDERS) fputs(" -a '(__fish_complete_directories)'", out);
    if (!place->choices && place->list_count == 0) return;
    fputs(" -a '", out);
    completion_print_words(out, place);
    fputc('\'', out);
}

static void print_option(FILE *out, const char *command, const struct option_spec *spec)
{
    print_condition(out, command, "");
    fprintf(out, " -l %s", spec->name);
    if (spec->letter) fprintf(out, " -s %c", spec->letter);
    if (spec->type != OPTION_TYPE_FLAG) {
        const struct completion_place place = completion_of_value(spec);
        print_place(out, &place, true);
    }
    fputs(" -d ", out);
    print_quoted(out, spec->help);
    fputc('\n', out);
}

static void print_command(void *context, const struct options *options)
{
    FILE *out = context;
    const struct completion_place place = completion_of_arguments(options);
    if (strcmp(options->command, "spillway help") == 0) {
        print_condition(out, options->command, "; and __spillway_words 1");
        print_place(out, &place, false);
        fputc('\n', out);
    } else if (place.files || place.list_count > 0) {
        print_condition(out, options->command, "");
        print_place(out, &place, false);
        fputc('\n', out);
    }
    for (size_t i = 0; i < options->spec_count; i++) print_option(out, options->command, &options->specs[i]);
    print_condition(out, options->command, "");
    fputs(" -l help -s h -d 'print this help'\n", out);
}

/* Prints the verb and its actions, also after `help`. */
static void print_verb(FILE *out, const struct cli_verb *verb)
{
    fprintf(out, "complete -c spillway -n '__spillway_words 0' -a %s -d ", verb->name);
    if (!verb->action) print_quoted(out, verb->summary);
    else {
        fputs("'one of", out);
        completion_print_actions(out, verb);
        fputc('\'', out);
    }
    fputc('\n', out);
    for (const struct cli_verb *row = verb; row->name && row->action && strcmp(row->name, verb->name) == 0; row++) {
        fprintf(out, "complete -c spillway -n '__spillway_at %s; and __spillway_words 1' -a %s -d ", row->name,
                row->action);
        print_quoted(out, row->summary);
        fprintf(out, "\ncomplete -c spillway -n '__spillway_at help %s; and __spillway_words 2' -a %s -d ", row->name,
                row->action);
        print_quoted(out, row->summary);
        fputc('\n', out);
    }
}

enum status completion_print_fish(FILE *out, struct error *err)
{
    fputs("# Completion of spillway for fish; made by 'spillway completion fish'.\n"
          "# The words after `spillway`, the cursor's own not among them.\n"
          "function __spillway_typed\n"
          "    set -l typed (commandline -opc)\n"
          "    set -e typed[1]\n"
          "    switch \"$typed[1]\"\n", out);
    for (const struct cli_verb_name *other = cli_verb_names; other->theirs; other++)
        fprintf(out, "        case %s\n            set typed[1] %s\n", other->theirs, other->ours);
    fputs("    end\n"
          "    string join \\n -- $typed\n"
          "end\n"
          "# Is the number of words $argv[1]?\n"
          "function __spillway_words\n"
          "    test (count (__spillway_typed)) -eq $argv[1]\n"
          "end\n"
          "# Do the words begin with these?\n"
          "function __spillway_at\n"
          "    set -l typed (__spillway_typed)\n"
          "    set -l most (count $argv)\n"
          "    test (count $typed) -ge $most; and test \"$typed[1..$most]\" = \"$argv\"\n"
          "end\n"
          "complete -c spillway -f\n"
          "complete -c spillway -n '__spillway_words 0' -l help -s h -d 'print the list of verbs'\n"
          "complete -c spillway -n '__spillway_words 0' -l version -s V -d 'print the version'\n", out);
    completion_each_verb(out, print_verb);
    return cli_look(NULL, print_command, out, err);
}
