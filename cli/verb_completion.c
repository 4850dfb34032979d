/* `completion` for bash, zsh or fish, from the tables that parse the command line. */
#include <string.h>

#include "base/size.h"
#include "base/try.h"
#include "cli/cli_completion.h"

const struct completion_shell completion_shells[] = {
    {"bash", completion_print_bash}, {"zsh", completion_print_zsh}, {"fish", completion_print_fish}, {NULL, NULL}};

static enum status print_script(FILE *out, const char *name, struct error *err)
{
    for (const struct completion_shell *shell = completion_shells; shell->name; shell++)
        if (strcmp(name, shell->name) == 0) return shell->print(out, err);
    return error_set(err, STATUS_BAD_INPUT, "unknown shell '%s' (expected bash, zsh or fish)", name);
}

enum status verb_completion(struct cli *cli, int argc, char **argv, struct error *err)
{
    const struct option_spec specs[] = {CLI_COMMON_OPTIONS(cli)};
    struct options options = {
        OPTIONS_TABLE(specs, 1, 1),
        .examples = (const char *const[]){"source <(spillway completion bash)", "source <(spillway completion zsh)",
                                          "spillway completion fish | source", NULL},
    };
    CLI_PARSE(cli, &options, argc, argv, err);
    if (!cli->json) return print_script(cli->out, options.operands[0], err);
    return error_set(err, STATUS_BAD_INPUT, "a completion script has no JSON form (use 'spillway "
                     "help --json' for the tables)");
}
