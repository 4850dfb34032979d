/* `hardware list`, `show` and `check`. */
#include "base/try.h"
#include "cli/common/cli.h"
#include "cli/common/cli_machine.h"
#include "cli/common/cli_table.h"
#include "cli/machine/cli_hardware_report.h"
#include "models/hardware/hardware.h"

/* --- list ------------------------------------------------------------------------------------ */

enum status verb_hardware_list(struct cli *cli, int argc, char **argv, struct error *err)
{
    const struct option_spec specs[] = {CLI_COMMON_OPTIONS(cli)};
    struct options options = {
        OPTIONS_TABLE(specs, 0, 0),
        .details = "Besides these names, --hw takes 'Nx NAME' for N devices or N nodes of one kind, 'Nx NAME 2:1' "
                   "for nodes on oversubscribed leaf switches, several of these joined by '+', and the path of a "
                   "hardware file.",
    };
    CLI_PARSE(cli, &options, argc, argv, err);
    if (cli->json) {
        struct json_out *json;
        TRY(cli_report_begin(cli, "hardware-list", &json, err));
        json_out_array_begin(json, "machines", false);
        for (uint32_t i = 0; hardware_preset_name(i); i++) {
            json_out_object_begin(json, NULL, true);
            json_out_string(json, "name", hardware_preset_name(i));
            json_out_string(json, "summary", hardware_preset_summary(i));
            json_out_object_end(json);
        }
        json_out_array_end(json);
        return cli_report_end(cli, json, err);
    }
    struct cli_table table;
    cli_table_begin(&table, (const char *const[]){"NAME", "WHAT", NULL});
    for (uint32_t i = 0; hardware_preset_name(i); i++) {
        cli_table_cell(&table, "%s", hardware_preset_name(i));
        cli_table_cell(&table, "%s", hardware_preset_summary(i));
    }
    TRY(cli_table_end(&table, cli->out, err));
    cli_next(cli, (const char *const[]){"hardware", "show", hardware_preset_name(0), NULL});
    return STATUS_OK;
}

/* --- show ------------------------------------------------------------------------------------ */

enum status verb_hardware_show(struct cli *cli, int argc, char **argv, struct error *err)
{
    const char *pair = NULL;
    const struct option_spec specs[] = {
        OPTION_STRING("route", 0, "A,B", &pair, "show the links that a copy from device A to device B crosses"),
        CLI_COMMON_OPTIONS(cli)};
    struct options options = {
        OPTIONS_TABLE(specs, 0, 1),
        .examples = (const char *const[]){"spillway hardware show",
                                          "spillway hardware show '4x rtx-3090-24gb'",
                                          "spillway hardware show '2x dgx-a100-80gb' --route 0,9",
                                          NULL},
        .details = "MACHINE is a name from 'spillway hardware list' or a hardware file (default: the measured "
                   "profile of this machine).",
    };
    CLI_PARSE(cli, &options, argc, argv, err);
    struct cli_machine machine = CLI_MACHINE_NONE;
    machine.is_argument = true;
    if (options.operand_count > 0) machine.name = options.operands[0];
    struct hardware hardware = {0};
    enum status status = cli_machine_read(&machine, &hardware, err);
    struct cli_route route;
    const struct cli_route *const wanted = pair ? &route : NULL;
    if (status == STATUS_OK && wanted) status = cli_route_parse(pair, &hardware, &route, err);
    if (status == STATUS_OK)
        status = cli->json ? cli_hardware_json(cli, "hardware-show", &hardware, wanted, err)
                           : cli_hardware_text(cli, &hardware, wanted, err);
    if (status == STATUS_OK && !cli->json)
        cli_next_plan(cli, &(struct cli_next_jobs){.machine = machine.name});
    hardware_release(&hardware);
    return status;
}

/* --- check ----------------------------------------------------------------------------------- */

enum status verb_hardware_check(struct cli *cli, int argc, char **argv, struct error *err)
{
    const struct option_spec specs[] = {CLI_COMMON_OPTIONS(cli)};
    struct options options = {
        OPTIONS_TABLE(specs, 1, 1),
        .details = "Checks that bandwidths are positive, that usable memory is within the nominal memory, and that "
                   "nothing measured is above a peak. Exit code 1 if a value makes no sense, 2 if the file cannot "
                   "be read.",
    };
    CLI_PARSE(cli, &options, argc, argv, err);
    const char *path = options.operands[0];
    struct hardware hardware = {0};
    enum status status = hardware_read(path, &hardware, err);
    if (status == STATUS_OK) {
        status = hardware_check(&hardware, err);
        if (status != STATUS_OK) error_add(err, "%s", path);
    }
    if (status == STATUS_OK && cli->json) {
        struct json_out *json;
        status = cli_report_begin(cli, "hardware-check", &json, err);
        if (status == STATUS_OK) {
            json_out_string(json, "file", path);
            json_out_string(json, "name", hardware.name);
            json_out_bool(json, "ok", true);
            status = cli_report_end(cli, json, err);
        }
    } else if (status == STATUS_OK) {
        fprintf(cli->out, "%s: '%s' with %u %s makes physical sense\n", path, hardware.name,
                hardware.device_count, hardware.device_count == 1 ? "device" : "devices");
        cli_next(cli, (const char *const[]){"hardware", "show", path, NULL});
    }
    hardware_release(&hardware);
    return status;
}
