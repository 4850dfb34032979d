#include "exec/command.h"

#include <stdio.h>

#include "base/try.h"

enum status command_parse(struct options *options, int argc, char **argv, bool *go_on, struct error *err)
{
    TRY(options_parse(options, argc, argv, err));
    *go_on = !options->help;
    if (options->help) options_print_help(options, stdout);
    return STATUS_OK;
}
