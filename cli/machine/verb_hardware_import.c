/* `hardware import`: adds another tool's measurements to a machine. */
#include <string.h>

#include "base/size.h"
#include "base/text.h"
#include "base/try.h"
#include "cli/common/cli.h"
#include "cli/common/cli_machine.h"
#include "cli/machine/cli_import_hwloc.h"
#include "models/hardware/prices.h"

static enum status print(struct cli *cli, const char *file, const char *path, const struct hardware *hardware,
                         const struct import_report *report, struct error *err)
{
    if (cli->json) {
        struct json_out *json;
        TRY(cli_report_begin(cli, "hardware-import", &json, err));
        json_out_string(json, "file", file);
        json_out_string(json, "machine", hardware->name);
        json_out_string(json, "written", path);
        json_out_array_begin(json, "taken", false);
        for (uint32_t i = 0; i < report->count; i++) json_out_string(json, NULL, report->lines[i]);
        json_out_array_end(json);
        return cli_report_end(cli, json, err);
    }
    fprintf(cli->out, "%s, over '%s':\n", file, hardware->name);
    for (uint32_t i = 0; i < report->count; i++) fprintf(cli->out, "    %s\n", report->lines[i]);
    fprintf(cli->out, "written to %s\n", path);
    cli_next(cli, (const char *const[]){"hardware", "show", path, NULL});
    return STATUS_OK;
}

enum status verb_hardware_import(struct cli *cli, int argc, char **argv, struct error *err)
{
    struct cli_machine machine = CLI_MACHINE_NONE;
    const char *output = NULL, *as_of = NULL;
    int64_t days;
    const struct option_spec specs[] = {
        CLI_MACHINE_OPTION(&machine.name, "machine that was measured: a name or a hardware file"),
        OPTION_OUTPUT("output", 'o', "FILE", FILE_KIND_HARDWARE, &output, "hardware file to write"),
        OPTION_STRING("as-of", 0, "DATE", &as_of, "date of the measurement, such as 2026-11-22"),
        CLI_FORCE_OPTION(cli),
        CLI_COMMON_OPTIONS(cli),
    };
    struct options options = {
        OPTIONS_TABLE(specs, 1, 1),
        .examples = (const char *const[]){
            "spillway hardware import bandwidth.json --hw p4d.24xlarge -o measured.json",
            "spillway hardware import all_reduce.txt --hw measured.json -o measured.json",
            "spillway hardware import topology.xml --hw '8x a100-sxm4-40gb' -o measured.json", NULL},
        .details = "FILE is JSON or the tables of nvbandwidth, JSON or the table of nccl-tests (all_reduce_perf, "
                   "all_gather_perf, reduce_scatter_perf), or the XML of 'lstopo --of xml'. Measured values replace "
                   "those of the datasheet.",
    };
    CLI_PARSE(cli, &options, argc, argv, err);
    const char *file = options.operands[0];
    if (!machine.name || !output)
        return error_set(err, STATUS_BAD_INPUT, "option '--%s' is missing", machine.name ? "output" : "hw");
    if (as_of && !price_days_between(as_of, as_of, &days))
        return error_set(err, STATUS_BAD_INPUT, "option '--as-of' is '%.40s' (expected a date such as 2026-11-22)",
                         as_of);
    if (!as_of) as_of = "not stated";
    struct hardware hardware = {0};
    struct import_report report = {.count = 0};
    enum status status = cli_machine_read(&machine, &hardware, err);
    if (!status)
        status = (text_ends_in(file, ".xml") ? cli_import_hwloc : hardware_import)(file, as_of, &hardware, &report,
                                                                                   err);
    if (!status) status = hardware_write_file(&hardware, output, err);
    if (!status) status = print(cli, file, output, &hardware, &report, err);
    hardware_release(&hardware);
    return status;
}
