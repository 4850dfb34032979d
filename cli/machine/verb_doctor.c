/* `doctor`: see cli_doctor.h. */
#include <sys/resource.h>

#include "base/size.h"
#include "base/try.h"
#include "cli/common/cli.h"
#include "cli/common/cli_table.h"
#include "cli/machine/cli_doctor.h"

static uint64_t memlock_bytes(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return UINT64_MAX;
    return limit.rlim_cur;
}

static enum status print_text(struct cli *cli, const struct cli_doctor *doctor, struct error *err)
{
    struct cli_table table;
    cli_table_begin(&table, (const char *const[]){"", "CHECK", "WHAT WAS FOUND", NULL});
    for (uint32_t i = 0; i < doctor->count; i++) {
        const struct cli_finding *finding = &doctor->findings[i];
        cli_table_cell(&table, "%s", cli_health_names[finding->health]);
        cli_table_cell(&table, "%s", finding->name);
        cli_table_cell(&table, "%s", finding->text);
        if (!finding->repair[0]) continue;
        cli_table_cell(&table, "%s", "");
        cli_table_cell(&table, "%s", "");
        cli_table_cell(&table, "-> %s", finding->repair);
    }
    return cli_table_end(&table, cli->out, err);
}

static enum status print_json(struct cli *cli, const struct cli_doctor *doctor, struct error *err)
{
    struct json_out *json;
    TRY(cli_report_begin(cli, "doctor", &json, err));
    json_out_string(json, "health", cli_health_names[cli_doctor_health(doctor)]);
    json_out_array_begin(json, "findings", false);
    for (uint32_t i = 0; i < doctor->count; i++) {
        const struct cli_finding *finding = &doctor->findings[i];
        json_out_object_begin(json, NULL, true);
        json_out_string(json, "check", finding->name);
        json_out_string(json, "health", cli_health_names[finding->health]);
        json_out_string(json, "text", finding->text);
        if (finding->repair[0]) json_out_string(json, "repair", finding->repair);
        json_out_object_end(json);
    }
    json_out_array_end(json);
    return cli_report_end(cli, json, err);
}

static enum status judge(const struct cli_doctor *doctor, struct error *err)
{
    uint32_t failed = 0;
    for (uint32_t i = 0; i < doctor->count; i++) failed += doctor->findings[i].health == CLI_HEALTH_FAIL;
    if (doctor->no_device) return error_set(err, STATUS_DEVICE, "no device here can carry out a plan");
    if (failed == 0) return STATUS_OK;
    return error_set(err, STATUS_CHECK, "%u of %u checks failed", failed, doctor->count);
}

enum status verb_doctor(struct cli *cli, int argc, char **argv, struct error *err)
{
    struct cli_doctor doctor = {.root = "", .memlock_bytes = memlock_bytes()};
    const struct option_spec specs[] = {
        OPTION_STRING("storage", 0, "DIR", &doctor.storage,
                      "also time the writing of 64 MiB there (default: only check the space)"),
        CLI_COMMON_OPTIONS(cli),
    };
    struct options options = {
        OPTIONS_TABLE(specs, 0, 0),
        .examples = (const char *const[]){"spillway doctor", "spillway doctor --storage /mnt/nvme --json", NULL},
        .details =
            "Each line says ok, warn or fail, and how to repair what is wrong. Exit code 1 if a check failed, 3 if "
            "nothing here can carry out a plan.",
    };
    CLI_PARSE(cli, &options, argc, argv, err);
    cli_doctor_look(&doctor);
    if ((cli->json ? print_json : print_text)(cli, &doctor, err) != STATUS_OK) return err->status;
    return judge(&doctor, err);
}
