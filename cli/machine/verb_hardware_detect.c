/*
 * `hardware detect`: makes a hardware file of this machine without measuring, from its driver, its kernel and
 * datasheets.
 *
 * The executor detects, because only it can talk to the driver. This verb checks the file and shows every value with
 * its source.
 */
#include <string.h>
#include <unistd.h>

#include "base/size.h"
#include "base/try.h"
#include "cli/common/cli.h"
#include "cli/machine/cli_hardware_report.h"
#include "cli/process/cli_child.h"
#include "models/hardware/hardware.h"

static enum status detect(struct cli *cli, const char *path, bool kept, struct error *err)
{
    char program[CLI_PATH_BYTES];
    struct cli_child_end end;
    struct hardware hardware = {0};
    TRY(cli_child_find(program, err));
    const char *words[7] = {program, "detect", "-o", path};
    size_t count = 4;
    if (cli->quiet) words[count++] = "--quiet";
    if (cli->force) words[count++] = "--force";
    TRY(cli_child_run(words, &end, err));
    TRY(cli_child_status(&end, "detection", err));
    enum status status = hardware_read(path, &hardware, err);
    if (status == STATUS_OK) status = hardware_check(&hardware, err);
    if (status == STATUS_OK)
        status = cli->json ? cli_hardware_json(cli, "hardware-detect", &hardware, NULL, err)
                           : cli_hardware_text(cli, &hardware, NULL, err);
    hardware_release(&hardware);
    if (status == STATUS_OK && !cli->json && kept) cli_next_plan(cli, &(struct cli_next_jobs){.machine = path});
    else if (status == STATUS_OK && !cli->json)
        cli_next(cli, (const char *const[]){"hardware", "detect", "-o", "mine.json", NULL});
    return status;
}

enum status verb_hardware_detect(struct cli *cli, int argc, char **argv, struct error *err)
{
    const char *output = NULL;
    const struct option_spec specs[] = {
        OPTION_OUTPUT("output", 'o', "FILE", FILE_KIND_HARDWARE, &output, "hardware file to write, for --hw"),
        CLI_FORCE_OPTION(cli),
        CLI_COMMON_OPTIONS(cli),
    };
    struct options options = {
        OPTIONS_TABLE(specs, 0, 0),
        .examples = (const char *const[]){"spillway hardware detect", "spillway hardware detect -o mine.json", NULL},
        .details = "Peaks and bandwidths come from datasheets for GPUs in 'spillway hardware list', else from clocks "
                   "and widths that the driver reports; widths of PCIe links come from the kernel. Direct copies "
                   "between GPUs are tried, pair by pair. 'spillway measure' replaces the assumptions.",
    };
    CLI_PARSE(cli, &options, argc, argv, err);
    TRY(cli_refuse_dash("output", output, err));
    if (output) return detect(cli, output, true, err);
    char path[CLI_PATH_BYTES];
    TRY(cli_child_file(path, err));
    enum status status = detect(cli, path, false, err);
    unlink(path);
    return status;
}
