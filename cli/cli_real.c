/* See cli_real.h. */
#include "cli/cli_real.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/path.h"

/* As the kernel estimates it, without swapping; false where it says nothing. */
static bool memory_left(double *bytes)
{
    char line[256];
    uint64_t kilobytes = 0;
    FILE *file = fopen("/proc/meminfo", "r");
    bool found = false;
    if (!file) return false;
    while (!found && fgets(line, sizeof line, file)) found = sscanf(line, "MemAvailable: %" SCNu64, &kilobytes) == 1;
    fclose(file);
    *bytes = 1024.0 * (double)kilobytes;
    return found;
}

static enum status check_memory(const struct figure *figure, struct error *err)
{
    char needed[QUANTITY_TEXT_BYTES], there[QUANTITY_TEXT_BYTES];
    double bytes;
    if (!memory_left(&bytes) || bytes >= figure->real.host_bytes) return STATUS_OK;
    return error_set(err, STATUS_DEVICE, "the real set-up of '%s' needs %s of memory, and %s are free", figure->id,
                     quantity_text(figure->real.host_bytes, DIMENSION_BYTES, needed),
                     quantity_text(bytes, DIMENSION_BYTES, there));
}

enum status cli_real_begin(const struct figure *figure, const char *output, char kept[CLI_PATH_BYTES],
                           struct run_set_options *options, struct error *err)
{
    options->workers = 1;
    if (check_memory(figure, err) != STATUS_OK || !output) return err->status;
    int length = snprintf(kept, CLI_PATH_BYTES, "%s/runs", output);
    if (length < 0 || length + RUN_FOLDER_BYTES >= CLI_PATH_BYTES)
        return error_set(err, STATUS_LIMIT, "a path is too long (limit is %d)", CLI_PATH_BYTES - RUN_FOLDER_BYTES - 8);
    options->keep = kept;
    return STATUS_OK;
}

/* Of the first run of the row that has left both. */
static bool find_traces(const struct figure_result *result, const struct run_set *set, const uint32_t *indexes,
                        const char *output, char predicted[CLI_PATH_BYTES], char measured[CLI_PATH_BYTES])
{
    uint32_t runs = result->figure->run_count;
    for (uint32_t k = 0; k < runs; k++) {
        char name[RUN_FOLDER_BYTES];
        uint32_t index = indexes[(size_t)result->worst_row * runs + k];
        run_set_folder(set, index, name);
        snprintf(predicted, CLI_PATH_BYTES, "%s/runs/%s/" CLI_REAL_PREDICTED, output, name);
        snprintf(measured, CLI_PATH_BYTES, "%s/runs/%s/" CLI_REAL_MEASURED, output, name);
        if (access(predicted, R_OK) == 0 && access(measured, R_OK) == 0) return true;
    }
    return false;
}

void cli_real_next(struct cli *cli, const struct figure_result *result, const struct run_set *set,
                   const uint32_t *indexes, const char *output)
{
    char predicted[CLI_PATH_BYTES], measured[CLI_PATH_BYTES];
    if (find_traces(result, set, indexes, output, predicted, measured))
        cli_next(cli, (const char *const[]){"compare", predicted, measured, NULL});
}
