#include "cli/repro/cli_real.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/try.h"
#include "cli/process/cli_load.h"

/* Reads memory available without swapping; false if unknown. */
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
    options->go_on = true; /* other rows may work here */
    TRY(check_memory(figure, err));
    if (!output) return STATUS_OK;
    int length = snprintf(kept, CLI_PATH_BYTES, "%s/runs", output);
    if (length < 0 || length + RUN_FOLDER_BYTES >= CLI_PATH_BYTES)
        return error_set(err, STATUS_LIMIT, "a path is too long (limit is %d)", CLI_PATH_BYTES - RUN_FOLDER_BYTES - 8);
    options->keep = kept;
    return STATUS_OK;
}

/* Returns true if a run's devices were dilated: then its own lateness counts, and not what others took. */
static bool is_dilated(const struct run_answer *answer, bool *valid)
{
    const json_t *dilation = json_object_get(answer->json, "dilation");
    *valid = !dilation || json_is_true(json_object_get(dilation, "valid"));
    return dilation;
}

/* Reads other programs' processor share, and the run's seconds; false if absent. */
static bool load_of(const struct run_answer *answer, double *taken, double *makespan_s)
{
    const json_t *load = json_object_get(answer->json, "load"), *seconds = json_object_get(answer->json, "makespan_s");
    if (!load || !json_is_number(seconds)) return false;
    *taken = json_number_value(json_object_get(load, "others")) + json_number_value(json_object_get(load, "stolen"));
    *makespan_s = json_number_value(seconds);
    return true;
}

void cli_real_warn_load(struct cli *cli, const struct run_set *set)
{
    double taken, seconds, slowed_s, taken_s = 0, all_s = 0;
    uint32_t limited = 0;
    for (uint32_t i = 0; i < run_set_count(set); i++) {
        bool valid;
        if (is_dilated(run_set_answer(set, i), &valid)) {
            limited += !valid;
            continue;
        }
        if (!load_of(run_set_answer(set, i), &taken, &seconds)) continue;
        taken_s += taken * seconds;
        all_s += seconds;
    }
    if (limited > 0)
        cli_warn(cli, "%" PRIu32 " %s of dilated devices %s not valid: the cores were the limit", limited,
                 limited == 1 ? "run" : "runs", limited == 1 ? "is" : "are");
    if (all_s > 0 && cli_load_slows(taken_s / all_s, all_s, 1, &slowed_s))
        cli_warn(cli, "the machine was busy: other programs took %.0f %% of the processors during the runs, "
                      "so these may have taken "
                 "up to %.2g times as long as on an idle machine", 100 * taken_s / all_s, slowed_s);
}

/* Finds the row's first run that kept both traces. */
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
