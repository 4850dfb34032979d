#include "cli/ways/cli_refusal.h"

#include <stdio.h>
#include <unistd.h>

#include "base/json/json_in.h"
#include "base/try.h"
#include "cli/process/cli_child.h"
#include "planner/files/plan_io.h"
#include "planner/plan_runnable.h"

static void refuse(struct cli_refusal *out, const char *text)
{
    out->refused = true;
    snprintf(out->text, sizeof out->text, "%s", text);
}

/* Reads {"spillway_check": 1, "refused": "...", "elsewhere": true}. */
static enum status read_answer(const char *path, struct cli_refusal *out, struct error *err)
{
    struct json_input *in = NULL;
    struct json_object object;
    uint64_t version;
    bool elsewhere = false;
    const char *refused = NULL;
    if (json_input_read(path, &in, err) == STATUS_OK &&
        json_object_open(&object, in, json_input_root(in), "the answer of a check", err) == STATUS_OK &&
        json_take_u64(&object, "spillway_check", JSON_REQUIRED, 1, 1, &version, err) == STATUS_OK &&
        json_take_bool(&object, "elsewhere", JSON_OPTIONAL, &elsewhere, err) == STATUS_OK &&
        json_take_string(&object, "refused", JSON_OPTIONAL, &refused, err) == STATUS_OK &&
        json_object_close(&object, err) == STATUS_OK) {
        out->asked = !elsewhere;
        if (refused && !elsewhere) refuse(out, refused);
    }
    json_input_destroy(in);
    return err->status;
}

static enum status ask(const struct cli *cli, const char *program, const char *plan_path, const char *answer_path,
                       struct cli_refusal *out, struct error *err)
{
    const char *words[8];
    size_t count = 0;
    struct cli_child_end end;
    struct error why = {0};
    words[count++] = program;
    words[count++] = "check";
    words[count++] = "--result";
    words[count++] = answer_path;
    if (cli->force) words[count++] = "--force";
    words[count++] = "--";
    words[count++] = plan_path;
    words[count] = NULL;
    const enum status status =
        cli_child_run(words, &end, &why) == STATUS_OK ? cli_child_status(&end, "check", &why) : why.status;
    if (status == STATUS_OK) return read_answer(answer_path, out, err);
    if (status == STATUS_INTERRUPTED) return error_set(err, status, "%s", why.text);
    out->asked = true;
    refuse(out, why.text);
    return STATUS_OK;
}

/* Asks about a plan, written to a temporary file if it has none. */
static enum status ask_with_file(const struct cli *cli, const char *program, const struct plan *plan, const char *path,
                                 const char *answer_path, struct cli_refusal *out, struct error *err)
{
    char scratch[CLI_PATH_BYTES];
    if (path) return ask(cli, program, path, answer_path, out, err);
    TRY(cli_child_file(scratch, err));
    if (plan_write(plan, scratch, err) == STATUS_OK) (void)!ask(cli, program, scratch, answer_path, out, err);
    unlink(scratch);
    return err->status;
}

enum status cli_refusal_ask(const struct cli *cli, const struct plan *plan, const char *path, struct cli_refusal *out,
                            struct error *err)
{
    char program[CLI_PATH_BYTES], answer_path[CLI_PATH_BYTES];
    struct error why = {0};
    *out = (struct cli_refusal){.asked = false};
    if (plan_runnable(plan, &why) != STATUS_OK) {
        out->asked = true;
        refuse(out, why.text);
        return STATUS_OK;
    }
    if (!path && (cli->json || cli->quiet)) return STATUS_OK;
    if (cli_child_find(program, &why) != STATUS_OK) return STATUS_OK;
    TRY(cli_child_file(answer_path, err));
    (void)!ask_with_file(cli, program, plan, path, answer_path, out, err);
    unlink(answer_path);
    return err->status;
}
