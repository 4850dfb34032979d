/* A separate file, because cli/repro and cli_completion.c both have a `struct figure`. */
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
