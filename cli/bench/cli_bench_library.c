#include "cli/bench/cli_bench_library.h"

#include <inttypes.h>

#include "base/process/progress.h"
#include "base/try.h"
#include "cli/common/cli_table.h"
#include "planner/solve/certify/instance_library.h"

static double worse_by(const struct instance_library_row *row)
{
    return row->best > 0 ? (double)(row->found.value - row->best) / (double)row->best : 0;
}

static const char *word(const struct instance_library_row *row)
{
    if (row->found.value < row->best) return "better";
    if (instance_library_worse(row)) return "worse";
    return row->found.bound > row->best_bound ? "bound better" : "";
}

static enum status report_text(struct cli *cli, const struct instance_library *library, struct error *err)
{
    struct cli_table table;
    cli_table_begin(&table, (const char *[]){"INSTANCE", ">DEVICES", ">JOBS", ">TASKS", ">BEST KNOWN", ">NOW",
                                             ">DIFFERENCE", ">BOUND", ">GAP", "", NULL});
    for (uint32_t i = 0; i < library->count; i++) {
        const struct instance_library_row *row = &library->rows[i];
        char difference[CLI_PERCENT_BYTES], gap[CLI_PERCENT_BYTES];
        int64_t bound = row->found.bound > row->best_bound ? row->found.bound : row->best_bound;
        cli_table_cell(&table, "%s", row->name);
        cli_table_cell(&table, "%u", row->device_count);
        cli_table_cell(&table, "%u", row->job_count);
        cli_table_cell(&table, "%u", row->task_count);
        cli_table_cell(&table, "%" PRId64, row->best);
        cli_table_cell(&table, "%" PRId64, row->found.value);
        cli_table_cell(&table, "%s", cli_signed_percent(worse_by(row), difference));
        cli_table_cell(&table, "%" PRId64, bound);
        cli_table_cell(&table, "%s", cli_percent(bound > 0 ? (double)row->found.value / (double)bound - 1 : 0, gap));
        cli_table_cell(&table, "%s", word(row));
    }
    return cli_table_end(&table, cli->out, err);
}

static enum status report_json(struct cli *cli, const char *folder, const struct instance_library *library,
                               struct error *err)
{
    struct json_out *json;
    TRY(cli_report_begin(cli, "bench", &json, err));
    json_out_string(json, "library", folder);
    json_out_array_begin(json, "instances", false);
    for (uint32_t i = 0; i < library->count; i++) {
        const struct instance_library_row *row = &library->rows[i];
        const struct certificate *found = &row->found;
        json_out_object_begin(json, NULL, true);
        json_out_string(json, "name", row->name);
        json_out_u64(json, "device_count", row->device_count);
        json_out_u64(json, "job_count", row->job_count);
        json_out_u64(json, "task_count", row->task_count);
        json_out_u64(json, "best_value", (uint64_t)row->best);
        json_out_u64(json, "best_bound", (uint64_t)row->best_bound);
        json_out_u64(json, "value", (uint64_t)found->value);
        json_out_u64(json, "bound", (uint64_t)found->bound);
        json_out_bool(json, "worse", instance_library_worse(row));
        json_out_double(json, "seconds", found->bound_s + found->search_s + found->exact_s);
        json_out_object_end(json);
    }
    json_out_array_end(json);
    return cli_report_end(cli, json, err);
}

/* Solves every row; *worse: values worse than before. */
static enum status solve_all(const char *folder, struct instance_library *library, double limit_s,
                             uint64_t seed, uint32_t *worse, struct error *err)
{
    struct certify_options limits = {.seed = seed,
                                     .iterations = UINT32_MAX,
                                     .early = true,
                                     .search_limit_s = limit_s * 0.75,
                                     .exact_limit_s = limit_s * 0.25};
    struct progress progress;
    progress_begin(&progress, "instances", library->count);
    for (uint32_t i = 0; i < library->count && !err->status; i++) {
        progress_update(&progress, i, library->rows[i].name);
        if (instance_library_solve(folder, library, i, &limits, err)) break;
        *worse += instance_library_worse(&library->rows[i]);
    }
    progress_end(&progress);
    return err->status;
}

enum status bench_library(struct cli *cli, const char *folder, double limit_s, uint64_t seed,
                          struct error *err)
{
    struct instance_library library = {0};
    uint32_t worse = 0;
    if (!instance_library_open(folder, &library, err) &&
        !solve_all(folder, &library, limit_s, seed, &worse, err) &&
        !(cli->json ? report_json(cli, folder, &library, err) : report_text(cli, &library, err)) && worse > 0)
        error_set(err, STATUS_CHECK, "%u of %u values are worse than the best known (in %g s each)", worse,
                  library.count, limit_s);
    instance_library_release(&library);
    return err->status;
}
