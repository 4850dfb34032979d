/*
 * `help`: the list of verbs, or all options of one.
 *
 * `help --json` prints all tables of options, for editors and for the check of the man pages: an
 * option without documentation fails the tests.
 */
#include <string.h>

#include "base/size.h"
#include "base/try.h"
#include "cli/common/cli.h"
#include "cli/common/cli_table.h"

static const char first_steps[] =
    "first steps:\n"
    "  spillway measure                          measure this machine, once\n"
    "  spillway plan jobs.json -o plan.json      decide what runs where and when\n"
    "  spillway run plan.json                    carry it out\n";

/* --- text ------------------------------------------------------------------------------------ */

static enum status print_verbs(struct cli *cli, struct error *err)
{
    fprintf(cli->out,
            "spillway %s: plans, simulates and carries out the training of many large\n"
            "networks on devices that are too small for them. It never uses the network.\n\n"
            "usage: spillway VERB [ACTION] [OPTIONS] [ARGUMENTS]\n\n%s\n",
            SPILLWAY_VERSION, first_steps);
    struct cli_table table;
    cli_table_begin(&table, (const char *const[]){"VERB", "WHAT IT DOES", NULL});
    for (const struct cli_verb *verb = cli_verbs; verb->name; verb++) {
        cli_table_cell(&table, "%s%s%s", verb->name, verb->action ? " " : "",
                       verb->action ? verb->action : "");
        cli_table_cell(&table, "%s", verb->summary);
    }
    TRY(cli_table_end(&table, cli->out, err));
    fputs("\nEvery verb takes --help, --json and --quiet. Results go to standard output,\n"
          "everything else to standard error. Exit codes: 0 done; 1 done and the answer is\n"
          "no; 2 the command line or an input is wrong; 3 the machine failed; 4 a deadline\n"
          "or cost is missed; 130 interrupted.\n"
          "Manual: man spillway, and a page for each verb: man spillway-plan\n",
          cli->out);
    return STATUS_OK;
}

struct printing {
    FILE *out;
    const char *only; /* NULL: all actions of the verb */
    bool any;
};

static void print_options(void *context, const struct options *options)
{
    struct printing *printing = context;
    if (printing->only && strcmp(printing->only, options->command) != 0) return;
    if (printing->any) fputs("\n\n", printing->out);
    options_print_help(options, printing->out);
    printing->any = true;
}

/* --- JSON ------------------------------------------------------------------------------------ */

struct help_listing {
    struct json_out *json;
    const char *only;
};

static void list_options(void *context, const struct options *options)
{
    struct help_listing *listing = context;
    struct json_out *json = listing->json;
    if (listing->only && strcmp(listing->only, options->command) != 0) return;
    json_out_object_begin(json, NULL, false);
    json_out_string(json, "command", options->command);
    json_out_string(json, "arguments", options->arguments);
    json_out_string(json, "summary", options->summary);
    json_out_array_begin(json, "options", false);
    for (size_t i = 0; i < options->spec_count; i++) {
        const struct option_spec *spec = &options->specs[i];
        char letter[2] = {spec->letter, '\0'};
        json_out_object_begin(json, NULL, true);
        json_out_string(json, "name", spec->name);
        if (spec->letter) json_out_string(json, "letter", letter);
        if (spec->value) json_out_string(json, "value", spec->value);
        if (spec->choices) {
            json_out_array_begin(json, "choices", true);
            for (const char *const *choice = spec->choices; *choice; choice++)
                json_out_string(json, NULL, *choice);
            json_out_array_end(json);
        }
        json_out_string(json, "help", spec->help);
        json_out_object_end(json);
    }
    json_out_array_end(json);
    json_out_object_end(json);
}

static enum status print_json(struct cli *cli, const char *name, const char *only,
                              struct error *err)
{
    struct help_listing listing = {.only = only};
    TRY(cli_report_begin(cli, "help", &listing.json, err));
    json_out_array_begin(listing.json, "commands", false);
    if (cli_look(name, list_options, &listing, err) != STATUS_OK) {
        json_out_destroy(listing.json);
        return err->status;
    }
    json_out_array_end(listing.json);
    return cli_report_end(cli, listing.json, err);
}

/* --- the verb -------------------------------------------------------------------------------- */

enum status verb_help(struct cli *cli, int argc, char **argv, struct error *err)
{
    const struct option_spec specs[] = {CLI_COMMON_OPTIONS(cli)};
    struct options options = {
        OPTIONS_TABLE(specs, 0, 2),
    };
    CLI_PARSE(cli, &options, argc, argv, err);
    if (options.operand_count == 0)
        return cli->json ? print_json(cli, NULL, NULL, err) : print_verbs(cli, err);

    /* A verb stands for all its actions. */
    const char *name = options.operands[0];
    const char *action = options.operand_count > 1 ? options.operands[1] : NULL;
    const struct cli_verb *verb = cli_verbs;
    while (verb->name && strcmp(verb->name, name) != 0) verb++;
    if (!verb->name || action) TRY(cli_find_verb(name, action, &verb, err));
    if (action && !verb->action)
        return error_set(err, STATUS_BAD_INPUT,
                         "unexpected argument '%s': 'spillway %s' has no actions", action, name);
    char command[CLI_COMMAND_BYTES];
    const char *only = action ? cli_command(verb, command) : NULL;
    if (cli->json) return print_json(cli, name, only, err);
    struct printing printing = {.out = cli->out, .only = only};
    return cli_look(name, print_options, &printing, err);
}
