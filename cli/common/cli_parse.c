#include "cli/common/cli.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/process/progress.h"
#include "base/text.h"
#include "base/text/number.h"
#include "base/try.h"
#include "cli/common/cli_option_groups.h"
#include "cli/common/cli_synonyms.h"
#include "models/hardware/hardware.h"
#include "models/kernel/precision.h"

/* Reports the machine used for another name. */
static void say_machine(struct cli *cli, const char *name)
{
    char said[HARDWARE_SAID_BYTES];
    if (name && hardware_name_completed(name, said)) cli_warn(cli, "%s", said);
}

static void say_machines(struct cli *cli, const struct options *options)
{
    static const char value[] = "MACHINE";
    for (size_t i = 0; i < options->spec_count; i++) {
        const struct option_spec *spec = &options->specs[i];
        if (!spec->value || strcmp(spec->value, value) != 0) continue;
        if (spec->type == OPTION_TYPE_STRING) say_machine(cli, *(const char *const *)spec->out);
        const struct option_list *list = spec->type == OPTION_TYPE_LIST ? spec->out : NULL;
        for (size_t k = 0; list && k < list->count; k++) say_machine(cli, list->items[k]);
    }
    const char *arguments = options->arguments + (options->arguments[0] == '[');
    if (strncmp(arguments, value, strlen(value)) == 0 && options->operand_count > 0)
        say_machine(cli, options->operands[0]);
}

enum status cli_parse(struct cli *cli, struct options *options, int argc, char **argv,
                      bool *go_on, struct error *err)
{
    char command[CLI_COMMAND_BYTES];
    options->command = cli_command(cli->verb, command);
    options->arguments = cli->verb->arguments;
    options->summary = cli->verb->summary;
    options->synonyms = cli_synonyms;
    options->former_names = cli_former_names;
    options->groups = cli_option_groups;
    options->spelled = precision_spelled;
    *go_on = false;
    if (cli->look) {
        cli->look(cli->look_context, options);
        return STATUS_OK;
    }
    TRY(options_parse(options, argc, argv, err));
    if (options->help) {
        options_print_help(options, cli->out);
        return STATUS_OK;
    }
    if (cli->quiet) progress_disable();
    say_machines(cli, options);
    if (options->former)
        cli_warn(cli, "option '--%s' will be gone in the next release; type: --%s", options->former->theirs,
                 options->former->ours);
    if (cli->advice) cli_warn(cli, "%s", cli->advice);
    if (cli->history_path) setenv("SPILLWAY_HISTORY", cli->history_path, 1);
    if (cli->report_path && cli->begin_document(cli, err) != STATUS_OK) return err->status;
    *go_on = true;
    return STATUS_OK;
}

/* --- parts of every report ------------------------------------------------------------------- */

void cli_warn(struct cli *cli, const char *format, ...)
{
    char *text = cli->warnings[cli->warning_count % CLI_WARNINGS_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof cli->warnings[0], format, arguments);
    va_end(arguments);
    text_clean(text, strlen(text), ""); /* one line without control characters */
    if (!cli->quiet) fprintf(stderr, "warning: %s\n", text);
    if (cli->warning_count < CLI_WARNINGS_MAX) cli->warning_count++;
}

void cli_print_word(FILE *out, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_./=:,+-%@";
    size_t length = strspn(word, plain);
    if (length > 0 && word[length] == '\0') {
        fputs(word, out);
        return;
    }
    fputc('\'', out);
    for (; *word; word++) {
        if (*word == '\'') fputs("'\\''", out); /* ends the quotes, prints one, and begins again */
        else fputc(*word, out);
    }
    fputc('\'', out);
}

void cli_next(struct cli *cli, const char *const *words)
{
    if (cli->quiet) return;
    fputs("\nnext: spillway", cli->out);
    for (; *words; words++) {
        fputc(' ', cli->out);
        if (strcmp(*words, "&&") == 0) fputs(*words, cli->out);
        else cli_print_word(cli->out, *words);
    }
    fputc('\n', cli->out);
}

void cli_fingerprint(struct json_out *json, uint64_t fingerprint)
{
    char text[32];
    snprintf(text, sizeof text, "%016" PRIx64, fingerprint);
    json_out_string(json, "plan_fingerprint", text);
}

enum status cli_ratio(const char *text, const char *option, double *out, struct error *err)
{
    const char *end;
    double value;
    if (number_read(text, &end, &value) && text[0] != '-') {
        bool percent = strcmp(end, "%") == 0 || strcmp(end, " %") == 0;
        if (percent || *end == '\0') {
            *out = percent ? value / 100 : value;
            return STATUS_OK;
        }
    }
    return error_set(err, STATUS_BAD_INPUT,
                     "option '--%s' is '%s' (expected a percentage such as 10%%)", option, text);
}

const char *cli_count(uint64_t count, const char *one, char buffer[CLI_COUNT_BYTES])
{
    snprintf(buffer, CLI_COUNT_BYTES, "%" PRIu64 " %s%s", count, one, count == 1 ? "" : "s");
    return buffer;
}

const char *cli_percent(double ratio, char buffer[CLI_PERCENT_BYTES])
{
    snprintf(buffer, CLI_PERCENT_BYTES, "%.1f %%", 100 * ratio);
    return buffer;
}

const char *cli_signed_percent(double ratio, char buffer[CLI_PERCENT_BYTES])
{
    snprintf(buffer, CLI_PERCENT_BYTES, "%+.1f %%", 100 * ratio);
    return buffer;
}

enum status cli_refuse_dash(const char *option, const char *path, struct error *err)
{
    if (!path || strcmp(path, "-") != 0) return STATUS_OK;
    return error_set(err, STATUS_BAD_INPUT, "option '--%s' needs a file: standard output gets the report", option);
}
