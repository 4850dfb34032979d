/* spillway-exec check: what a run of a plan would refuse before its first step. */

#include "base/json/json_out.h"
#include "base/process/options.h"
#include "base/size.h"
#include "base/try.h"
#include "exec/command.h"
#include "exec/run/run.h"
#include "planner/files/plan_io.h"

enum { ANSWER_VERSION = 1 };

static enum status write_answer(const char *path, bool elsewhere, const struct error *refused, struct error *err)
{
    struct json_file file;
    TRY(json_file_begin(&file, path, "the answer", err));
    json_out_object_begin(file.out, NULL, true);
    json_out_u64(file.out, "spillway_check", ANSWER_VERSION);
    if (refused->status != STATUS_OK) json_out_string(file.out, "refused", refused->text);
    if (elsewhere) json_out_bool(file.out, "elsewhere", true);
    json_out_object_end(file.out);
    return json_file_end(&file, err);
}

enum status command_check(int argc, char **argv, const volatile bool *stop, struct error *err)
{
    (void)stop;
    const char *result = NULL;
    bool force = false;
    const struct option_spec specs[] = {
        OPTION_FORCE(&force),
        OPTION_OUTPUT("result", 0, "FILE", FILE_KIND_RESULT, &result, "result to write as JSON"),
    };
    struct options options = {
        .command = "spillway-exec check",
        .arguments = "PLAN.json",
        .summary = "would a run of this plan be refused?",
        .examples = (const char *const[]){"spillway-exec check plan.json", NULL},
        .details = "Does what 'run' does before it takes memory: checks jobs, data, names and shapes of weights, "
                   "outputs and memory. Exits with the code of 'run', 0 if nothing is refused; with --result "
                   "always with 0.",
        OPTIONS_TABLE(specs, 1, 1),
    };
    bool go_on;
    if (command_parse(&options, argc, argv, &go_on, err) != STATUS_OK || !go_on) return err->status;
    struct plan plan = {0};
    struct error refused = {0};
    bool elsewhere = false;
    const struct run_options run = {.save_weights = true, .on_nan = RUN_NAN_STOP};
    if (plan_read(options.operands[0], &plan, &refused) == STATUS_OK)
        (void)!run_check(&plan, &run, &elsewhere, &refused);
    plan_release(&plan);
    if (result) return write_answer(result, elsewhere, &refused, err);
    *err = refused;
    return err->status;
}
