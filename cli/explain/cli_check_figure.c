#include "cli/explain/cli_check_figure.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/try.h"
#include "cli/common/cli.h"
#include "cli/repro/figure.h"

enum status cli_check_figure(const char *path, char *text, size_t bytes, struct error *err)
{
    struct figure *figure = NULL;
    TRY(figure_read(path, &figure, err));
    snprintf(text, bytes, "%s of %s, %s, %" PRIu32 " series", figure->figure, figure->paper.id,
             CLI_COUNT(figure->row_count, "row"), figure->series_count);
    figure_destroy(figure);
    return STATUS_OK;
}
