/*
 * The program's name and version precede the verb's keys; warnings and the error follow them. cli_report_end() leaves
 * the object open, because the verb may still end with an error. A script always reads one JSON object from standard
 * output.
 */
#include "cli/common/cli_answer.h"

#include <string.h>

#include "cli/common/cli.h"

enum status cli_report_begin(struct cli *cli, const char *schema, struct json_out **out, struct error *err)
{
    struct json_out *json = json_out_create(NULL);
    if (!json) return error_memory(err, "the report", 0);
    char name[CLI_COMMAND_BYTES], command[CLI_COMMAND_BYTES];
    snprintf(name, sizeof name, "spillway-%s-1", schema);
    json_out_object_begin(json, NULL, false);
    json_out_string(json, "schema", name);
    json_out_string(json, "tool_version", SPILLWAY_VERSION);
    if (cli->verb) json_out_string(json, "verb", cli_command(cli->verb, command) + strlen("spillway "));
    *out = json;
    return STATUS_OK;
}

enum status cli_report_end(struct cli *cli, struct json_out *json, struct error *err)
{
    json_out_destroy(cli->answer);
    cli->answer = json;
    size_t length = 0;
    if (json_out_complete(json)) return STATUS_OK;
    json_out_text(json, &length);
    return error_memory(err, "the report", length);
}

/* Looks in all words: --json may follow a wrong word. */
static bool asks_for_json(const struct cli *cli)
{
    for (int i = 0; i < cli->argc && strcmp(cli->argv[i], "--") != 0; i++)
        if (strcmp(cli->argv[i], "--json") == 0) return true;
    return cli->json;
}

static void close_answer(const struct cli *cli, enum status status, const struct error *err)
{
    struct json_out *json = cli->answer;
    if (status != STATUS_OK) {
        json_out_object_begin(json, "error", false);
        json_out_string(json, "status", error_status_name(status));
        json_out_u64(json, "exit_code", (uint64_t)error_exit_code(status));
        json_out_string(json, "message", err->text);
        json_out_object_end(json);
    }
    json_out_array_begin(json, "warnings", false);
    for (size_t i = 0; i < cli->warning_count; i++) json_out_string(json, NULL, cli->warnings[i]);
    json_out_array_end(json);
    json_out_object_end(json);
}

enum status cli_answer_end(struct cli *cli, enum status status, struct error *err)
{
    struct error lost = {0};
    size_t length = 0;
    if (!cli->answer && status != STATUS_OK && asks_for_json(cli) &&
        cli_report_begin(cli, "error", &cli->answer, &lost) != STATUS_OK)
        return status; /* more useful */
    if (!cli->answer) return status;
    close_answer(cli, status, err);
    const char *text = json_out_text(cli->answer, &length);
    if (json_out_complete(cli->answer)) {
        fwrite(text, 1, length, cli->out);
        if (length == 0 || text[length - 1] != '\n') fputc('\n', cli->out);
    } else if (status == STATUS_OK) {
        status = error_memory(err, "the report", length);
    }
    json_out_destroy(cli->answer);
    cli->answer = NULL;
    return status;
}
