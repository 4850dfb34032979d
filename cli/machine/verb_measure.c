/*
 * `measure`: makes the profile of this machine where `plan` finds it.
 *
 * The executor measures with its own kernels and writes the file. This verb checks it, and prints the values that
 * decide the speed of plans.
 */
#include <string.h>

#include "base/files/path.h"
#include "base/try.h"
#include "cli/common/cli.h"
#include "cli/common/cli_machine.h"
#include "cli/common/cli_table.h"
#include "cli/process/cli_child.h"
#include "cli/process/cli_load.h"
#include "cli/ways/cli_predict.h"
#include "models/cost/cost.h"
#include "models/hardware/hardware.h"

static const double budget_min_s = 1, budget_max_s = 3600;

static const struct copy_point *last_p2p(const struct device_type *type)
{
    return &type->p2p[type->p2p_count - 1];
}

static enum status report_text(struct cli *cli, const struct hardware *hardware, const char *path,
                               bool is_default, double wall_s, struct error *err)
{
    char text[QUANTITY_TEXT_BYTES], other[QUANTITY_TEXT_BYTES];
    const struct device_type *type = &hardware->types[hardware->devices[0].type];
    fprintf(cli->out, "measured %s in %s\n",
            hardware->measured_on ? hardware->measured_on : hardware->name,
            quantity_text(wall_s, DIMENSION_SECONDS, text));
    fprintf(cli->out, "plans may use %s of host memory and %u cores\n\n",
            quantity_text(hardware->host_bytes.value, DIMENSION_BYTES, text),
            hardware->host_cores);
    struct cli_table table;
    cli_table_begin(&table, (const char *const[]){">THREADS OF A DEVICE", ">MATRIX PRODUCTS",
                                                  ">WITH A 2ND DEVICE", ">DURING A COPY", NULL});
    for (uint32_t p = 0; p < type->profile_count; p++) {
        const struct compute_profile *profile = &type->profiles[p];
        const struct hardware_interference *slow = &profile->interference;
        if (profile->threads > 0) cli_table_cell(&table, "%u", profile->threads);
        else cli_table_cell(&table, "-"); /* a GPU */
        cli_table_cell(&table, "%s", quantity_text(cli_best_matmul_flops_per_s(profile),
                                                   DIMENSION_FLOP_PER_S, text));
        cli_table_cell(&table, "%.0f %%", 100 / (1 + slow->compute_by_compute.value));
        cli_table_cell(&table, "%.0f %%", 100 / (1 + slow->compute_by_copy.value));
    }
    TRY(cli_table_end(&table, cli->out, err));
    fprintf(cli->out, "\ncopies reach %s to a device and %s back\n",
            quantity_text(cost_copy_bandwidth(hardware, 0, COPY_H2D), DIMENSION_BYTES_PER_S, text),
            quantity_text(cost_copy_bandwidth(hardware, 0, COPY_D2H), DIMENSION_BYTES_PER_S,
                          other));
    if (type->p2p_count > 0)
        fprintf(cli->out, "copies from one device to another reach %s\n",
                quantity_text((double)last_p2p(type)->bytes / last_p2p(type)->seconds,
                              DIMENSION_BYTES_PER_S, text));
    if (hardware_has_storage(hardware))
        fprintf(cli->out, "storage is read at %s and written at %s\n",
                quantity_text(hardware->storage.read_rate.value, DIMENSION_BYTES_PER_S, text),
                quantity_text(hardware->storage.write_rate.value, DIMENSION_BYTES_PER_S, other));
    if (hardware->load.others.source)
        fprintf(cli->out,
                "meanwhile other programs took %.0f %% of the processors; %.0f %% of the samples were disturbed\n",
                100 * hardware_load_taken(hardware), 100 * hardware->load.disturbed.value);
    fprintf(cli->out, "written to %s%s\n", path,
            is_default ? ", where 'spillway plan' finds it" : "");
    cli_next_plan(cli, &(struct cli_next_jobs){.machine = is_default ? NULL : path});
    return STATUS_OK;
}

static enum status report_json(struct cli *cli, const struct hardware *hardware, const char *path,
                               double wall_s, struct error *err)
{
    struct json_out *json;
    TRY(cli_report_begin(cli, "measure", &json, err));
    const struct device_type *type = &hardware->types[hardware->devices[0].type];
    json_out_string(json, "file", path);
    json_out_string(json, "name", hardware->name);
    if (hardware->measured_on) json_out_string(json, "measured_on", hardware->measured_on);
    json_out_double(json, "wall_s", wall_s);
    if (hardware->load.others.source) {
        json_out_object_begin(json, "load", true);
        json_out_double(json, "others", hardware->load.others.value);
        json_out_double(json, "stolen", hardware->load.stolen.value);
        json_out_double(json, "disturbed", hardware->load.disturbed.value);
        json_out_object_end(json);
    }
    json_out_double(json, "host_bytes", hardware->host_bytes.value);
    json_out_u64(json, "host_core_count", hardware->host_cores);
    json_out_array_begin(json, "profiles", false);
    for (uint32_t p = 0; p < type->profile_count; p++) {
        const struct compute_profile *profile = &type->profiles[p];
        json_out_object_begin(json, NULL, true);
        json_out_u64(json, "threads", profile->threads);
        json_out_double(json, "matmul_flops_per_s", cli_best_matmul_flops_per_s(profile));
        json_out_double(json, "compute_by_compute",
                        profile->interference.compute_by_compute.value);
        json_out_double(json, "compute_by_copy", profile->interference.compute_by_copy.value);
        json_out_object_end(json);
    }
    json_out_array_end(json);
    json_out_double(json, "h2d_bytes_per_s", cost_copy_bandwidth(hardware, 0, COPY_H2D));
    json_out_double(json, "d2h_bytes_per_s", cost_copy_bandwidth(hardware, 0, COPY_D2H));
    if (type->p2p_count > 0)
        json_out_double(json, "p2p_bytes_per_s",
                        (double)last_p2p(type)->bytes / last_p2p(type)->seconds);
    if (hardware_has_storage(hardware)) {
        json_out_double(json, "storage_read_bytes_per_s", hardware->storage.read_rate.value);
        json_out_double(json, "storage_write_bytes_per_s", hardware->storage.write_rate.value);
        json_out_double(json, "storage_both_bytes_per_s", hardware_storage_rate(hardware));
    }
    return cli_report_end(cli, json, err);
}

static enum status measure(struct cli *cli, const char *path, bool is_default, double budget_s,
                           const char *backend, const char *storage, struct error *err)
{
    char program[CLI_PATH_BYTES], budget[64];
    TRY(cli_child_find(program, err));
    if (is_default) TRY(path_make_folders(path, err));
    snprintf(budget, sizeof budget, "%.9gs", budget_s);
    const char *words[13] = {program, "measure", "-o", path, "--budget", budget};
    size_t count = 6;
    if (backend) {
        words[count++] = "--backend";
        words[count++] = backend;
    }
    if (storage) {
        words[count++] = "--storage";
        words[count++] = storage;
    }
    if (cli->quiet) words[count++] = "--quiet";
    if (cli->force) words[count++] = "--force";
    struct cli_child_end end;
    TRY(cli_child_run(words, &end, err));
    TRY(cli_child_status(&end, "measurement", err));

    struct hardware hardware = {0};
    enum status status = hardware_read(path, &hardware, err);
    if (status == STATUS_OK) status = hardware_check(&hardware, err);
    if (status == STATUS_OK)
        cli_load_warn_profile(cli, &hardware);
    if (status == STATUS_OK)
        status = cli->json ? report_json(cli, &hardware, path, end.wall_s, err)
                           : report_text(cli, &hardware, path, is_default, end.wall_s, err);
    hardware_release(&hardware);
    return status;
}

enum status verb_measure(struct cli *cli, int argc, char **argv, struct error *err)
{
    const char *output = NULL, *backend = NULL, *storage = NULL;
    double budget_s = 45;
    const struct option_spec specs[] = {
        OPTION_OUTPUT("output", 'o', "FILE", FILE_KIND_HARDWARE, &output,
                      "profile to write (default: your settings folder)"),
        OPTION_QUANTITY("budget", 0, "TIME", DIMENSION_SECONDS, &budget_s,
                        "time to spend on measuring (default 45s)"),
        OPTION_STRING("backend", 0, "NAME", &backend,
                      "host or cuda (default: cuda if there is a GPU)"),
        OPTION_STRING("storage", 0, "DIR", &storage,
                      "also measure the disk that holds DIR, for states kept on storage"),
        CLI_FORCE_OPTION(cli),
        CLI_COMMON_OPTIONS(cli),
    };
    struct options options = {
        OPTIONS_TABLE(specs, 0, 0),
        .examples = (const char *const[]){"spillway measure",
                                          "spillway measure -o my-machine.json --budget 2min",
                                          NULL},
        .details = "Measures matrix products, the other kernels, copies and collectives with the executor's own code, "
                   "and how much they slow each other down. The machine should be idle. The default profile is "
                   "$XDG_CONFIG_HOME/spillway/hardware.json (or ~/.config/spillway/hardware.json), which 'spillway "
                   "plan' reads first.",
    };
    CLI_PARSE(cli, &options, argc, argv, err);
    if (budget_s < budget_min_s || budget_s > budget_max_s)
        return error_set(err, STATUS_BAD_INPUT,
                         "option '--budget' is %g s (expected a time from 1s to 1h)", budget_s);
    TRY(cli_refuse_dash("output", output, err));
    char path[CLI_PATH_BYTES];
    if (output) return measure(cli, output, false, budget_s, backend, storage, err);
    TRY(cli_profile_path(path, err));
    return measure(cli, path, true, budget_s, backend, storage, err);
}
