/* The IDs of figures, in a file of their own: cli/repro and the machines of cli_completion.c each have a `struct figure`. */
#include "cli/cli_completion.h"
#include "cli/repro/cli_papers.h"

static void print_id(void *context, const char *id)
{
    fprintf(context, " %s", id);
}

void completion_print_figures(FILE *out)
{
    struct error err = {0};
    (void)!cli_papers_ids(NULL, print_id, out, &err);
}
