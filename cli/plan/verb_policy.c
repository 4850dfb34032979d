/*
 * `policy new` makes a policy's first files; `policy test` checks that it keeps the rules.
 *
 * Random cases are planned, then run live with other durations; each twice, since decisions must be repeatable. Child
 * processes run the policy: a crash or a loop is a result. The first case that breaks a rule is written to a file for
 * `policy test POLICY CASE`.
 */
#include <inttypes.h>
#include <string.h>

#include "base/files/path.h"
#include "base/process/progress.h"
#include "base/size.h"
#include "base/try.h"
#include "cli/common/cli.h"
#include "cli/common/cli_machine.h"
#include "cli/common/cli_table.h"
#include "cli/plan/cli_policy_skeleton.h"
#include "planner/policy/trial/policy_cases.h"
#include "planner/policy/trial/policy_trial.h"
#include "planner/solve/instance/instance_change.h"
#include "planner/solve/instance/instance_io.h"

/* --- new ------------------------------------------------------------------------------------- */

enum status verb_policy_new(struct cli *cli, int argc, char **argv, struct error *err)
{
    const char *folder = NULL;
    const struct option_spec specs[] = {
        OPTION_STRING("output", 'o', "DIR", &folder, "folder to make (default: NAME)"),
        CLI_COMMON_OPTIONS(cli),
    };
    struct options options = {
        OPTIONS_TABLE(specs, 1, 1),
        .examples = (const char *const[]){"spillway policy new mine && make -C mine test", NULL},
        .details = "Writes NAME.c, a policy that compiles, test_NAME.c, and a Makefile that builds with the header "
                   "spillway/policy.h. That header explains how a policy is asked.",
    };
    char name[CLI_PATH_BYTES];
    CLI_PARSE(cli, &options, argc, argv, err);
    const char *policy = options.operands[0];
    if (!folder) folder = policy;
    TRY(cli_skeleton_write(policy, folder, err));
    if (cli->json) {
        struct json_out *json;
        TRY(cli_report_begin(cli, "policy-new", &json, err));
        json_out_string(json, "folder", folder);
        json_out_array_begin(json, "files", true);
        for (uint32_t i = 0; i < CLI_SKELETON_FILES; i++)
            json_out_string(json, NULL, cli_skeleton_name(policy, i, name));
        json_out_array_end(json);
        return cli_report_end(cli, json, err);
    }
    for (uint32_t i = 0; i < CLI_SKELETON_FILES; i++)
        fprintf(cli->out, "written: %s/%s\n", folder, cli_skeleton_name(policy, i, name));
    if (!cli->quiet) fprintf(cli->out, "\nnext: make -C %s test\n", folder);
    return STATUS_OK;
}

/* --- test ------------------------------------------------------------------------------------ */

struct policy_request {
    const char *policy, *case_path; /* case_path NULL: random */
    const char *keep;               /* for case files; NULL: the current folder */
    uint64_t cases, seed;
    double limit_s, memory_bytes;   /* or CLI_NOT_GIVEN */
};

struct broken { /* a broken rule */
    uint32_t cases;             /* that broke it */
    char file[CLI_PATH_BYTES];  /* of the first */
    bool live;
    char text[POLICY_TRIAL_TEXT_BYTES];
};

struct outcome {
    char name[POLICY_NAME_MAX + 1];
    uint32_t tried;
    bool stopped;               /* no end: further cases would take too long */
    uint64_t decisions;
    double seconds;
    struct broken rules[POLICY_RULE_COUNT];
};

static const struct contain_limits default_limits = {.seconds = 2, .memory_bytes = UINT64_C(1) << 30};

/* Writes KEEP/mine-case-17.json for policies/mine.so. */
static enum status keep_case(const struct policy_request *request, const struct instance *in, uint32_t number,
                             char path[CLI_PATH_BYTES], struct error *err)
{
    if (request->case_path) {
        snprintf(path, CLI_PATH_BYTES, "%s", request->case_path);
        return STATUS_OK;
    }
    const char *slash = strrchr(request->policy, '/'), *name = slash ? slash + 1 : request->policy;
    snprintf(path, CLI_PATH_BYTES, "%s%s%.*s-case-%" PRIu32 ".json", request->keep ? request->keep : "",
             request->keep ? "/" : "", (int)strcspn(name, "."), name, number + 1);
    return request->keep && path_make_folders(path, err) != STATUS_OK ? err->status : instance_write(in, path, err);
}

static enum status note(const struct policy_request *request, const struct instance *in, uint32_t number,
                        bool live, const struct policy_trial *trial, struct outcome *outcome,
                        struct error *err)
{
    struct broken *broken = &outcome->rules[trial->broken];
    if (trial->status == STATUS_BAD_INPUT || trial->status == STATUS_INFEASIBLE)
        return error_set(err, STATUS_BAD_INPUT, "%s", trial->text);
    if (trial->broken == POLICY_RULE_TERMINATES) outcome->stopped = true;
    if (broken->cases++ > 0) return STATUS_OK;
    broken->live = live;
    memcpy(broken->text, trial->text, sizeof broken->text);
    return keep_case(request, in, number, broken->file, err);
}

/* Plans, and if right runs live. */
static enum status try_case(const struct policy_request *request, const struct instance *in, uint32_t number,
                            struct outcome *outcome, struct error *err)
{
    struct instance actual = {0};
    TRY(instance_perturb(in, POLICY_CASE_NOISE, request->seed, &actual, err));
    bool right = true;
    for (int live = 0; live < 2 && right && !err->status; live++) {
        struct policy_trial_options options = {.run = {.seed = request->seed,
                                                       .live = live == 1,
                                                       .actual = &actual,
                                                       .timed = true},
                                               .twice = true,
                                               .limits = default_limits};
        struct policy_trial trial = {0};
        if (request->limit_s > 0) options.limits.seconds = request->limit_s;
        if (request->memory_bytes > 0) options.limits.memory_bytes = (uint64_t)request->memory_bytes;
        if (policy_trial(request->policy, in, &options, &trial, err) == STATUS_OK) {
            if (trial.name[0]) memcpy(outcome->name, trial.name, sizeof outcome->name);
            right = trial.status == STATUS_OK;
            outcome->decisions += trial.run.decisions;
            outcome->seconds += trial.run.seconds;
            if (!right && note(request, in, number, live == 1, &trial, outcome, err)) {}
        }
        policy_trial_release(&trial);
    }
    instance_release(&actual);
    outcome->tried++;
    return err->status;
}

static enum status try_all(const struct policy_request *request, struct outcome *outcome, struct error *err)
{
    struct progress progress;
    uint32_t count = request->case_path ? 1 : (uint32_t)request->cases;
    progress_begin(&progress, "testing", count);
    for (uint32_t c = 0; c < count && !outcome->stopped && !err->status; c++) {
        struct instance in = {0};
        enum status status = request->case_path ? instance_read(request->case_path, &in, err)
                                                : policy_case(request->seed, c, &in, err);
        if (status == STATUS_OK && try_case(request, &in, c, outcome, err)) {}
        instance_release(&in);
        progress_update(&progress, c + 1.0, NULL);
    }
    progress_end(&progress);
    return err->status;
}

static uint32_t broken_rules(const struct outcome *outcome)
{
    uint32_t count = 0;
    for (uint32_t r = 0; r < POLICY_RULE_COUNT; r++) count += outcome->rules[r].cases > 0;
    return count;
}

static enum status report_json(struct cli *cli, const struct policy_request *request,
                               const struct outcome *outcome, struct error *err)
{
    struct json_out *json;
    TRY(cli_report_begin(cli, "policy-test", &json, err));
    json_out_string(json, "policy", outcome->name);
    json_out_string(json, "policy_file", request->policy);
    json_out_u64(json, "seed", request->seed);
    json_out_u64(json, "cases", outcome->tried);
    json_out_bool(json, "passed", broken_rules(outcome) == 0);
    json_out_u64(json, "decisions", outcome->decisions);
    json_out_array_begin(json, "rules", false);
    for (uint32_t r = 0; r < POLICY_RULE_COUNT; r++) {
        const struct broken *broken = &outcome->rules[r];
        json_out_object_begin(json, NULL, broken->cases == 0);
        json_out_string(json, "rule", policy_rule_names[r]);
        json_out_u64(json, "cases_broken", broken->cases);
        if (broken->cases > 0) {
            json_out_string(json, "case_file", broken->file);
            json_out_string(json, "mode", broken->live ? "live" : "planned");
            json_out_string(json, "reason", broken->text);
        }
        json_out_object_end(json);
    }
    json_out_array_end(json);
    return cli_report_end(cli, json, err);
}

static enum status report_text(struct cli *cli, const struct policy_request *request,
                               const struct outcome *outcome, struct error *err)
{
    struct cli_table table;
    const char *first = NULL;
    fprintf(cli->out, "%s, seed %" PRIu64 ": %" PRIu32 " %s, each planned and live%s\n\n",
            request->policy, request->seed, outcome->tried, outcome->tried == 1 ? "case" : "cases",
            outcome->stopped && !request->case_path ? "; stopped where it did not terminate" : "");
    cli_table_begin(&table, (const char *const[]){"RULE", ">BROKEN IN", "FIRST CASE", NULL});
    for (uint32_t r = 0; r < POLICY_RULE_COUNT; r++) {
        const struct broken *broken = &outcome->rules[r];
        cli_table_cell(&table, "%s", policy_rule_names[r]);
        cli_table_cell(&table, "%" PRIu32, broken->cases);
        if (broken->cases > 0)
            cli_table_cell(&table, "%s, %s", broken->file, broken->live ? "live" : "planned");
        else
            cli_table_cell(&table, "-");
        if (broken->cases > 0 && !first) first = broken->file;
    }
    TRY(cli_table_end(&table, cli->out, err));
    if (!first && outcome->decisions > 0 && !cli->quiet)
        fprintf(cli->out, "\n%s, %.2g us each\n", CLI_COUNT(outcome->decisions, "decision"),
                1e6 * outcome->seconds / (double)outcome->decisions);
    for (uint32_t r = 0; r < POLICY_RULE_COUNT; r++)
        if (outcome->rules[r].cases > 0)
            fprintf(cli->out, "\n%s: %s\n", outcome->rules[r].file, outcome->rules[r].text);
    if (first && !request->case_path) {
        char seed[24];
        snprintf(seed, sizeof seed, "%" PRIu64, request->seed);
        cli_next(cli, (const char *const[]){"policy", "test", request->policy, first, "--seed", seed, NULL});
    }
    return STATUS_OK;
}

enum status verb_policy_test(struct cli *cli, int argc, char **argv, struct error *err)
{
    struct policy_request request = {
        .cases = 300, .seed = 1, .limit_s = CLI_NOT_GIVEN, .memory_bytes = CLI_NOT_GIVEN};
    const struct option_spec specs[] = {
        OPTION_U64("cases", 'n', "N", 1, 1000000, &request.cases, "number of random cases (default 300)"),
        OPTION_U64("seed", 0, "N", 0, UINT64_MAX, &request.seed,
                   "random seed of cases, policy and noise (default 1)"),
        OPTION_QUANTITY("limit", 0, "TIME", DIMENSION_SECONDS, &request.limit_s,
                        "time limit of the policy in one case (default 2s)"),
        OPTION_QUANTITY("memory", 0, "SIZE", DIMENSION_BYTES, &request.memory_bytes,
                        "memory limit of the policy in one case (default 1GiB)"),
        OPTION_STRING("keep", 0, "DIR", &request.keep,
                      "folder for cases that break a rule (default: this folder)"),
        CLI_COMMON_OPTIONS(cli),
    };
    struct options options = {
        OPTIONS_TABLE(specs, 1, 2),
        .examples = (const char *const[]){"spillway policy test ./mine.so",
                                          "spillway policy test ./mine.so mine-case-17.json", NULL},
        .details = "POLICY is a shared object; its code runs in a child process with limits. CASE is an instance, "
                   "such as one that an earlier test wrote. Exit code 1 if a rule was broken.",
    };
    CLI_PARSE(cli, &options, argc, argv, err);
    struct outcome outcome = {0};
    request.policy = options.operands[0];
    if (options.operand_count > 1) request.case_path = options.operands[1];
    TRY(try_all(&request, &outcome, err));
    enum status status = cli->json ? report_json(cli, &request, &outcome, err)
                                   : report_text(cli, &request, &outcome, err);
    uint32_t count = broken_rules(&outcome);
    if (status != STATUS_OK || count == 0) return status;
    return error_set(err, STATUS_CHECK, "the policy breaks %" PRIu32 " of %d rules", count,
                     POLICY_RULE_COUNT);
}
