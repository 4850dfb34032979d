/* `trace chakra`: writes a plan as MLCommons Chakra, for ASTRA-sim and others. */
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/files/outputs.h"
#include "base/size.h"
#include "base/try.h"
#include "cli/common/cli.h"
#include "planner/files/plan_io.h"
#include "sim/chakra/chakra_export.h"
#include "traces/exchange/chakra.h"

static enum status report(struct cli *cli, const char *prefix, const struct sim_chakra_written *written,
                          struct error *err)
{
    if (cli->json) {
        struct json_out *json;
        TRY(cli_report_begin(cli, "trace-chakra", &json, err));
        json_out_string(json, "prefix", prefix);
        json_out_u64(json, "ranks", written->ranks);
        json_out_u64(json, "process_groups", written->groups);
        json_out_u64(json, "nodes", written->nodes);
        json_out_u64(json, "signals", written->signals);
        return cli_report_end(cli, json, err);
    }
    fprintf(cli->out, "written to %s.0.et", prefix);
    if (written->ranks > 1) fprintf(cli->out, " to %s.%" PRIu32 ".et", prefix, written->ranks - 1);
    fprintf(cli->out, ": %" PRIu64 " nodes", written->nodes);
    if (written->signals > 0)
        fprintf(cli->out, ", %" PRIu64 " of them ends of signals between ranks", 2 * written->signals);
    fputc('\n', cli->out);
    if (written->groups > 0)
        fprintf(cli->out, "written to %s.groups.json: %" PRIu32 " process groups\n", prefix, written->groups);
    cli_next(cli, (const char *const[]){"trace", "simulate", prefix, "--hw", "MACHINE", NULL});
    return STATUS_OK;
}

/* Declares the files of all ranks, of an earlier plan's further ranks, and of the process groups. */
static enum status declare_files(const char *prefix, uint32_t device_count, struct error *err)
{
    static const char what[] = "option '--output'";
    char path[CHAKRA_PATH_BYTES];
    for (uint32_t rank = 0;; rank++) {
        TRY(chakra_path(prefix, rank, path, err));
        if (rank >= device_count && access(path, F_OK) != 0) break;
        TRY(outputs_declare(path, FILE_KIND_EXECUTION_TRACE, what, err));
    }
    TRY(chakra_groups_path(prefix, path, err));
    return outputs_declare(path, FILE_KIND_PROCESS_GROUPS, what, err);
}

enum status verb_trace_chakra(struct cli *cli, int argc, char **argv, struct error *err)
{
    const char *output = NULL;
    const struct option_spec specs[] = {
        OPTION_STRING("output", 'o', "PREFIX", &output,
                      "prefix of the files to write, PREFIX.0.et and so on (required)"),
        CLI_COMMON_OPTIONS(cli),
    };
    struct options options = {
        OPTIONS_TABLE(specs, 1, 1),
        .examples = (const char *const[]){"spillway trace chakra plan.json -o traces/plan", NULL},
        .details = "Every operation of the plan becomes a node in the trace of its device, with its dependencies, "
                   "bytes, FLOPs and duration on the plan's own machine. Process groups go to PREFIX.groups.json, "
                   "which ASTRA-sim's --comm-group-configuration reads.",
    };
    CLI_PARSE(cli, &options, argc, argv, err);
    if (!output)
        return error_set(err, STATUS_BAD_INPUT, "option '--output' is missing: where to write");
    if (strcmp(output, "-") == 0)
        return error_set(err, STATUS_BAD_INPUT,
                         "option '--output' needs a prefix of files: standard output gets the report");
    struct plan plan = {0};
    struct sim_chakra_written written = {0};
    enum status status = plan_read(options.operands[0], &plan, err);
    if (status == STATUS_OK) status = declare_files(output, plan.hardware.device_count, err);
    if (status == STATUS_OK) status = sim_chakra_export(&plan, output, &written, err);
    if (status == STATUS_OK) status = report(cli, output, &written, err);
    plan_release(&plan);
    return status;
}
