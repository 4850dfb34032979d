/*
 * Two loops over one table: one over the arguments, one that prints the help. The parser and the help cannot differ,
 * because both use the same table.
 *
 * A long option that is missing its value must not swallow the next option: "--output --quiet" is
 * refused, and a value that really begins with two dashes is written "--output=--quiet".
 */
#include "base/process/options.h"

#include <assert.h>
#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "base/files/outputs.h"
#include "base/size.h"
#include "base/text/number.h"
#include "base/text/suggest.h"
#include "base/try.h"

enum { HELP_COLUMNS = 80, HELP_INDENT_MAX = 26 };
enum { LABEL_BYTES = 96, NAMES_MAX = 128, LIST_BYTES = 512 };

/* --- values --------------------------------------------------------------------------------- */

static size_t choice_count(const struct option_spec *spec)
{
    size_t count = 0;
    while (spec->choices[count]) count++;
    return count;
}

static enum status set_u64(const struct option_spec *spec, const char *text, struct error *err)
{
    uint64_t value;
    if (!number_read_u64(text, &value) || value < spec->min || value > spec->max) {
        if (spec->max == UINT64_MAX)
            return error_set(err, STATUS_BAD_INPUT,
                             "option '--%s' is '%s' (expected a whole number, at least %" PRIu64
                             ")", spec->name, text, spec->min);
        return error_set(err, STATUS_BAD_INPUT,
                         "option '--%s' is '%s' (expected a whole number from %" PRIu64
                         " to %" PRIu64 ")", spec->name, text, spec->min, spec->max);
    }
    *(uint64_t *)spec->out = value;
    return STATUS_OK;
}

static enum status set_double(const struct option_spec *spec, const char *text, struct error *err)
{
    double value;
    const char *end;
    if (!number_read(text, &end, &value) || *end || text[0] == '-')
        return error_set(err, STATUS_BAD_INPUT,
                         "option '--%s' is '%s' (expected a number, at least 0)", spec->name, text);
    *(double *)spec->out = value;
    return STATUS_OK;
}

static bool find_choice(const struct option_spec *spec, const char *text)
{
    for (size_t i = 0; spec->choices[i]; i++) {
        if (strcmp(spec->choices[i], text) != 0) continue;
        *(size_t *)spec->out = i;
        return true;
    }
    return false;
}

enum { EXAMPLE_BYTES = 64 };

/* Returns an example such as "a time such as 72h": the first quantity that the option's help names, so that the size
 * fits; else one of its dimension. */
static const char *quantity_example(const struct option_spec *spec, char buffer[EXAMPLE_BYTES])
{
    static const char separators[] = " ,;()";
    const char *usual = dimension_example(spec->dimension), *such = strstr(usual, " such as ");
    for (const char *word = spec->help; such && *word;) {
        char copy[EXAMPLE_BYTES / 2];
        struct error unread = {0};
        double value = 0;
        size_t length = strcspn(word, separators);
        snprintf(copy, sizeof copy, "%.*s", (int)(length < sizeof copy ? length : 0), word);
        if (quantity_parse(copy, spec->dimension, &value, &unread) == STATUS_OK && value > 0) {
            snprintf(buffer, EXAMPLE_BYTES, "%.*s such as %s", such - usual < 16 ? (int)(such - usual) : 16, usual,
                     copy);
            return buffer;
        }
        word += length;
        word += strspn(word, separators);
    }
    return usual;
}

static enum status set_quantity(const struct option_spec *spec, const char *text, struct error *err)
{
    char example[EXAMPLE_BYTES];
    return quantity_parse_expecting(text, spec->dimension, quantity_example(spec, example), spec->out, err);
}

static enum status set_choice(const struct options *options, const struct option_spec *spec, const char *text,
                              struct error *err)
{
    size_t count = choice_count(spec);
    if (find_choice(spec, text)) return STATUS_OK;
    const char *spelled = options->spelled ? options->spelled(text) : NULL;
    if (spelled && find_choice(spec, spelled)) return STATUS_OK;
    char list[LIST_BYTES];
    return error_set(err, STATUS_BAD_INPUT, "option '--%s' is '%s' (expected %s)", spec->name, text,
                     suggest_list(spec->choices, count, list, sizeof list));
}

static enum status set_value(const struct options *options, const struct option_spec *spec, const char *text,
                             struct error *err)
{
    switch (spec->type) {
    case OPTION_TYPE_STRING:
        *(const char **)spec->out = text;
        return STATUS_OK;
    case OPTION_TYPE_U64: return set_u64(spec, text, err);
    case OPTION_TYPE_DOUBLE: return set_double(spec, text, err);
    case OPTION_TYPE_QUANTITY:
        if (set_quantity(spec, text, err) == STATUS_OK) return STATUS_OK;
        return error_add(err, "option '--%s'", spec->name);
    case OPTION_TYPE_CHOICE: return set_choice(options, spec, text, err);
    case OPTION_TYPE_LIST: {
        struct option_list *list = spec->out;
        if (list->count == ARRAY_COUNT(list->items))
            return error_set(err, STATUS_LIMIT, "too many options '--%s' (limit is %zu)",
                             spec->name, ARRAY_COUNT(list->items));
        list->items[list->count++] = text;
        return STATUS_OK;
    }
    case OPTION_TYPE_FLAG: break;
    }
    assert(spec->type != OPTION_TYPE_FLAG);
    return STATUS_BAD_INPUT;
}

/* --- finding options ------------------------------------------------------------------------ */

static bool is_word(const char *word, const char *name, size_t length)
{
    return strlen(word) == length && strncmp(word, name, length) == 0;
}

static const struct option_spec *find_name(const struct options *options, const char *name,
                                           size_t length)
{
    for (size_t i = 0; i < options->spec_count; i++)
        if (is_word(options->specs[i].name, name, length)) return &options->specs[i];
    return NULL;
}

/* Finds an option by a synonym, which may stand for several of our names: the one in this table is used. */
static const struct option_spec *find_synonym(const struct options *options, const struct option_synonym *synonym,
                                              const char *name, size_t length, const struct option_synonym **found)
{
    const struct option_spec *spec = NULL;
    for (; !spec && synonym && synonym->theirs; synonym++) {
        if (!is_word(synonym->theirs, name, length)) continue;
        spec = find_name(options, synonym->ours, strlen(synonym->ours));
        if (spec && found) *found = synonym;
    }
    return spec;
}

static const struct option_spec *find_long(struct options *options, const char *name, size_t length)
{
    const struct option_spec *spec = find_name(options, name, length);
    if (!spec) spec = find_synonym(options, options->synonyms, name, length, NULL);
    if (!spec) spec = find_synonym(options, options->former_names, name, length, &options->former);
    return spec;
}

static const struct option_spec *find_letter(const struct options *options, char letter)
{
    for (size_t i = 0; i < options->spec_count; i++)
        if (options->specs[i].letter == letter) return &options->specs[i];
    return NULL;
}

static enum status unknown_long(const struct options *options, const char *name, size_t length,
                                struct error *err)
{
    const char *names[NAMES_MAX] = {"help"};
    size_t count = 1;
    for (size_t i = 0; i < options->spec_count && count < NAMES_MAX; i++)
        names[count++] = options->specs[i].name;
    char word[LABEL_BYTES];
    snprintf(word, sizeof word, "%.*s", (int)(length < sizeof word ? length : sizeof word - 1),
             name);
    const char *near = suggest(word, names, count);
    if (near)
        return error_set(err, STATUS_BAD_INPUT, "unknown option '--%s' (did you mean '--%s'?)",
                         word, near);
    return error_set(err, STATUS_BAD_INPUT, "unknown option '--%s' (see '%s --help')", word,
                     options->command);
}

static enum status missing_value(const struct option_spec *spec, const char *found,
                                 struct error *err)
{
    if (found)
        return error_set(err, STATUS_BAD_INPUT, "option '--%s' needs a value %s (found '%s')",
                         spec->name, spec->value, found);
    return error_set(err, STATUS_BAD_INPUT, "option '--%s' needs a value %s", spec->name,
                     spec->value);
}

/* --- parsing -------------------------------------------------------------------------------- */

struct options_cursor {
    int argc;
    char **argv;
    int at;
    const char *given[NAMES_MAX]; /* by option: its value so far */
};

static enum status read_value(const struct options *options, const struct option_spec *spec, const char *text,
                              struct options_cursor *cursor, struct error *err)
{
    const char **given = &cursor->given[spec - options->specs];
    if (*given && spec->once && strcmp(*given, text) != 0)
        return error_set(err, STATUS_BAD_INPUT, "option '--%s' is '%s' and then '%s' (expected %s)",
                         spec->name, *given, text, spec->once);
    *given = text;
    return set_value(options, spec, text, err);
}

/* Takes the argument after an option as its value. */
static enum status next_value(const struct options *options, const struct option_spec *spec,
                              struct options_cursor *cursor, struct error *err)
{
    if (cursor->at + 1 >= cursor->argc) return missing_value(spec, NULL, err);
    const char *text = cursor->argv[cursor->at + 1];
    if (!*text || strncmp(text, "--", 2) == 0) return missing_value(spec, text, err);
    cursor->at++;
    return read_value(options, spec, text, cursor, err);
}

static enum status parse_long(struct options *options, struct options_cursor *cursor,
                              struct error *err)
{
    const char *name = cursor->argv[cursor->at] + 2;
    const char *equals = strchr(name, '=');
    size_t length = equals ? (size_t)(equals - name) : strlen(name);
    const struct option_spec *spec = find_long(options, name, length);
    if (!spec) return unknown_long(options, name, length, err);
    if (spec->type == OPTION_TYPE_FLAG) {
        if (equals)
            return error_set(err, STATUS_BAD_INPUT, "option '--%s' takes no value (found '%s')",
                             spec->name, equals + 1);
        *(bool *)spec->out = true;
        return STATUS_OK;
    }
    if (!equals) return next_value(options, spec, cursor, err);
    return equals[1] ? read_value(options, spec, equals + 1, cursor, err) : missing_value(spec, NULL, err);
}

/* "-q", "-qv" (flags together), "-o FILE", "-oFILE". */
static enum status parse_letters(const struct options *options, struct options_cursor *cursor,
                                 struct error *err)
{
    for (const char *c = cursor->argv[cursor->at] + 1; *c; c++) {
        const struct option_spec *spec = find_letter(options, *c);
        if (!spec)
            return error_set(err, STATUS_BAD_INPUT, "unknown option '-%c' (see '%s --help')", *c,
                             options->command);
        if (spec->type != OPTION_TYPE_FLAG)
            return c[1] ? read_value(options, spec, c + 1, cursor, err) : next_value(options, spec, cursor, err);
        *(bool *)spec->out = true;
    }
    return STATUS_OK;
}

static bool wants_help(int argc, char **argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "-h") == 0 || strcmp(argv[i], "--help") == 0) return true;
    return false;
}

static enum status add_operand(struct options *options, const char *text, struct error *err)
{
    size_t most = options->argument_max;
    if (most > ARRAY_COUNT(options->operands)) most = ARRAY_COUNT(options->operands);
    if (options->operand_count == most) {
        if (most == 0)
            return error_set(err, STATUS_BAD_INPUT, "unexpected argument '%s' (expected none)",
                             text);
        return error_set(err, STATUS_BAD_INPUT, "unexpected argument '%s' (expected at most %zu)",
                         text, most);
    }
    options->operands[options->operand_count++] = text;
    return STATUS_OK;
}

/* --- files ------------------------------------------------------------------------------------ */

static enum status declare_output(const struct option_spec *spec, const char *path, struct error *err)
{
    char what[LABEL_BYTES];
    snprintf(what, sizeof what, "option '--%s'", spec->name);
    if (!path) return STATUS_OK;
    TRY(outputs_declare(path, spec->output, what, err));
    return outputs_probe(path, spec->output, what, err);
}

static enum status declare_files(const struct options *options, struct error *err)
{
    for (size_t i = 0; i < options->operand_count; i++)
        TRY(outputs_read(options->operands[i], err));
    for (size_t i = 0; i < options->spec_count; i++)
        if (strcmp(options->specs[i].name, "force") == 0) outputs_allow(*(bool *)options->specs[i].out);
    for (size_t i = 0; i < options->spec_count; i++) {
        const struct option_spec *spec = &options->specs[i];
        if (spec->output == FILE_KIND_NONE || spec->output == FILE_KIND_FOLDER) continue;
        const struct option_list one = {.items = {*(const char **)spec->out}, .count = 1};
        const struct option_list *paths = spec->type == OPTION_TYPE_LIST ? spec->out : &one;
        for (size_t p = 0; p < paths->count; p++)
            TRY(declare_output(spec, paths->items[p], err));
    }
    return STATUS_OK;
}

enum status options_parse(struct options *options, int argc, char **argv, struct error *err)
{
    struct error mistake = {0};
    enum status status = options_check(options, &mistake);
    assert(status == STATUS_OK);

    options->operand_count = 0;
    options->help = wants_help(argc, argv);
    if (options->help) return STATUS_OK;
    bool ended = false; /* "--" was seen */
    struct options_cursor cursor = {.argc = argc, .argv = argv, .at = 1};
    for (; cursor.at < argc && status == STATUS_OK; cursor.at++) {
        const char *text = argv[cursor.at];
        if (!ended && strcmp(text, "--") == 0)
            ended = true;
        else if (!ended && strncmp(text, "--", 2) == 0)
            status = parse_long(options, &cursor, err);
        else if (!ended && text[0] == '-' && text[1])
            status = parse_letters(options, &cursor, err);
        else
            status = add_operand(options, text, err);
    }
    if (status == STATUS_OK && options->operand_count < options->argument_min)
        status = error_set(err, STATUS_BAD_INPUT, "missing argument (expected %s %s)",
                           options->command, options->arguments);
    return status == STATUS_OK ? declare_files(options, err) : status;
}

/* --- the table itself ----------------------------------------------------------------------- */

static enum status check_spec(const struct option_spec *spec, struct error *err)
{
    const char *name = spec->name;
    if (!name || !*name || name[0] == '-')
        return error_set(err, STATUS_CHECK, "an option has no name or one that begins with '-'");
    if (!spec->out)
        return error_set(err, STATUS_CHECK, "option '%s' has no place for its value", name);
    if (!spec->help || !*spec->help)
        return error_set(err, STATUS_CHECK, "option '%s' has no help", name);
    size_t length = strlen(spec->help);
    if (length > OPTION_HELP_MAX)
        return error_set(err, STATUS_CHECK, "the help of option '%s' has more than %d bytes", name,
                         (int)OPTION_HELP_MAX);
    if (spec->help[length - 1] == '.')
        return error_set(err, STATUS_CHECK, "the help of option '%s' ends in a full stop", name);
    if (isupper((unsigned char)spec->help[0]) && islower((unsigned char)spec->help[1]))
        return error_set(err, STATUS_CHECK, "the help of option '%s' begins in upper case", name);
    if ((spec->type == OPTION_TYPE_FLAG) != (spec->value == NULL))
        return error_set(err, STATUS_CHECK, "option '%s' must name a value unless it is a flag",
                         name);
    if (spec->type == OPTION_TYPE_CHOICE && (!spec->choices || !spec->choices[0]))
        return error_set(err, STATUS_CHECK, "option '%s' has no choices", name);
    if (spec->type == OPTION_TYPE_U64 && spec->min > spec->max)
        return error_set(err, STATUS_CHECK, "option '%s' has an empty range", name);
    if (spec->output && spec->type != OPTION_TYPE_STRING && spec->type != OPTION_TYPE_LIST)
        return error_set(err, STATUS_CHECK, "option '%s' is an output and has no path", name);
    if (strcmp(name, "help") == 0 || spec->letter == 'h')
        return error_set(err, STATUS_CHECK, "option '%s' takes the place of --help", name);
    return STATUS_OK;
}

/* --force is in the tables that have outputs, and only there. */
static enum status check_force(const struct options *options, struct error *err)
{
    bool outputs = false, force = false;
    for (size_t i = 0; i < options->spec_count; i++) {
        outputs |= options->specs[i].output != FILE_KIND_NONE;
        force |= strcmp(options->specs[i].name, "force") == 0;
    }
    if (outputs == force) return STATUS_OK;
    return error_set(err, STATUS_CHECK, "'%s' has %s", options->command,
                     outputs ? "outputs and no option 'force'" : "an option 'force' and no outputs");
}

enum status options_check(const struct options *options, struct error *err)
{
    if (!options->command || !options->summary || !options->arguments)
        return error_set(err, STATUS_CHECK, "a command, its arguments or its summary is missing");
    if (options->spec_count > NAMES_MAX)
        return error_set(err, STATUS_CHECK, "'%s' has more than %d options", options->command, (int)NAMES_MAX);
    if (options->argument_min > options->argument_max ||
        options->argument_min > ARRAY_COUNT(options->operands))
        return error_set(err, STATUS_CHECK, "'%s' has an empty range of arguments",
                         options->command);
    for (size_t i = 0; i < options->spec_count; i++) {
        const struct option_spec *spec = &options->specs[i];
        enum status status = check_spec(spec, err);
        if (status != STATUS_OK) return error_add(err, "'%s'", options->command);
        for (size_t j = 0; j < i; j++) {
            const struct option_spec *other = &options->specs[j];
            if (strcmp(spec->name, other->name) == 0 ||
                (spec->letter && spec->letter == other->letter))
                return error_set(err, STATUS_CHECK, "'%s': options '%s' and '%s' are spelt alike",
                                 options->command, other->name, spec->name);
        }
    }
    return check_force(options, err);
}

/* --- help ----------------------------------------------------------------------------------- */

/* Print `text` word by word between two columns; the cursor is at `column`. */
static void print_wrapped(FILE *stream, const char *text, size_t column, size_t indent)
{
    bool line_start = true;
    while (*text) {
        size_t length = strcspn(text, " \n");
        if (!line_start && column + 1 + length > HELP_COLUMNS) {
            fprintf(stream, "\n%*s", (int)indent, "");
            column = indent;
            line_start = true;
        }
        if (!line_start) {
            fputc(' ', stream);
            column++;
        }
        fprintf(stream, "%.*s", (int)length, text);
        column += length;
        line_start = false;
        text += length;
        if (*text == '\n') {
            fprintf(stream, "\n%*s", (int)indent, "");
            column = indent;
            line_start = true;
        }
        if (*text) text++;
    }
    fputc('\n', stream);
}

/* Writes "-p, --policy NAME". */
static size_t print_label(const struct option_spec *spec, char *buffer, size_t size)
{
    char letter[8] = "    ";
    if (spec->letter) snprintf(letter, sizeof letter, "-%c, ", spec->letter);
    int length = snprintf(buffer, size, "  %s--%s%s%s", letter, spec->name, spec->value ? " " : "",
                          spec->value ? spec->value : "");
    return (size_t)length < size ? (size_t)length : size - 1;
}

/* Returns true when the help itself names every choice. */
static bool names_all_choices(const struct option_spec *spec)
{
    for (const char *const *choice = spec->choices; *choice; choice++)
        if (!strstr(spec->help, *choice)) return false;
    return true;
}

/* Writes the help, with its choices before "(default ...)". */
static void print_meaning(const struct option_spec *spec, char *buffer, size_t size)
{
    char list[LIST_BYTES];
    const char *rest = strstr(spec->help, " (default");
    if (!rest) rest = spec->help + strlen(spec->help);
    if (spec->type == OPTION_TYPE_CHOICE && !names_all_choices(spec))
        snprintf(buffer, size, "%.*s: %s%s", (int)(rest - spec->help), spec->help,
                 suggest_list(spec->choices, choice_count(spec), list, sizeof list), rest);
    else
        snprintf(buffer, size, "%s%s", spec->help, spec->type == OPTION_TYPE_LIST ? " (may be repeated)" : "");
}

static void print_option(FILE *stream, const struct option_spec *spec, size_t indent)
{
    char label[LABEL_BYTES], text[OPTION_HELP_MAX + LIST_BYTES + 32];
    size_t column = print_label(spec, label, sizeof label);
    fputs(label, stream);
    if (column + 2 > indent) {
        fputc('\n', stream);
        column = 0;
    }
    fprintf(stream, "%*s", (int)(indent - column), "");
    print_meaning(spec, text, sizeof text);
    print_wrapped(stream, text, indent, indent);
}

/* Prints an example. A line that is too long is broken at a blank outside quotes, in the shell's syntax. */
static void print_example(FILE *stream, const char *text)
{
    size_t indent = 2;
    while (indent + strlen(text) > HELP_COLUMNS) {
        const char *cut = NULL;
        bool quoted = false;
        for (const char *c = text; *c && indent + (size_t)(c - text) + 2 <= HELP_COLUMNS; c++) {
            if (*c == '\'') quoted = !quoted;
            if (*c == ' ' && !quoted && c[1] == '-') cut = c;
        }
        if (!cut) break;
        fprintf(stream, "%*s%.*s \\\n", (int)indent, "", (int)(cut - text), text);
        text = cut + 1;
        indent = 6;
    }
    fprintf(stream, "%*s%s\n", (int)indent, "", text);
}

static bool is_in_group(const struct option_group *group, const char *name)
{
    for (const char *const *row = group->names; *row; row++)
        if (strcmp(*row, name) == 0) return true;
    return false;
}

const struct option_group *options_group(const struct options *options, const char *name)
{
    char own[LABEL_BYTES];
    const char *command = strchr(options->command, ' '); /* past the program's name */
    snprintf(own, sizeof own, "%s %s", command ? command + 1 : options->command, name);
    const char *const wanted[] = {own, name};
    for (size_t w = 0; w < ARRAY_COUNT(wanted); w++)
        for (const struct option_group *group = options->groups; group && group->heading; group++)
            if (is_in_group(group, wanted[w])) return group;
    return NULL;
}

static const struct option_spec *help_option(void)
{
    static bool ignored;
    static const struct option_spec help = {.name = "help", .letter = 'h', .out = &ignored,
                                            .type = OPTION_TYPE_FLAG, .help = "print this help"};
    return &help;
}

/* Prints the options of one group, or with NULL the options without a group, with a heading if there are groups.
 * --help is the last row. */
static void print_group(FILE *stream, const struct options *options, const struct option_group *group, size_t indent)
{
    bool any = false;
    for (size_t i = 0; i <= options->spec_count; i++) {
        const struct option_spec *spec = i < options->spec_count ? &options->specs[i] : help_option();
        if (options_group(options, spec->name) != group) continue;
        if (!any) fprintf(stream, "\n%s:\n", group ? group->heading : "options");
        any = true;
        print_option(stream, spec, indent);
    }
}

void options_print_help(const struct options *options, FILE *stream)
{
    fprintf(stream, "usage: %s [options]%s%s\n\n", options->command,
            *options->arguments ? " " : "", options->arguments);
    print_wrapped(stream, options->summary, 0, 0);
    if (options->examples) {
        fputs("\nexamples:\n", stream);
        for (size_t i = 0; options->examples[i]; i++) print_example(stream, options->examples[i]);
    }
    size_t indent = 0;
    for (size_t i = 0; i <= options->spec_count; i++) {
        char label[LABEL_BYTES];
        const struct option_spec *spec = i < options->spec_count ? &options->specs[i] : help_option();
        size_t wanted = print_label(spec, label, sizeof label) + 2;
        if (wanted <= HELP_INDENT_MAX && wanted > indent) indent = wanted;
    }
    for (const struct option_group *group = options->groups; group && group->heading; group++)
        print_group(stream, options, group, indent);
    print_group(stream, options, NULL, indent);
    if (options->details) {
        fputc('\n', stream);
        print_wrapped(stream, options->details, 0, 0);
    }
}
