/*
 * `bench --counterfactual RUN:DECISION`: repeats a policy's run on an instance, with one decision made by each other
 * policy, which sees the same view without state from earlier decisions.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/json/json_out.h"
#include "base/try.h"
#include "cli/bench/cli_bench.h"
#include "cli/common/cli_table.h"
#include "planner/policy/trial/policy_trial.h"

static const uint64_t memory_limit = UINT64_C(2) << 30;

struct counterfactual {
    struct cli *cli;
    const struct bench *bench;
    struct bench_round round;
    uint64_t run, decision;
    uint32_t policy;
    bool live;
    double bound, value;         /* of the decided run */
    struct policy_decided decided;
    uint64_t decisions;
};

/* --- the option ------------------------------------------------------------------------------------ */

static enum status read_numbers(const char *text, struct counterfactual *c, struct error *err)
{
    char *end;
    uint64_t numbers[2] = {0, 0};
    for (int i = 0; i < 2; i++, text = end + 1) {
        bool digit = *text >= '0' && *text <= '9';
        numbers[i] = digit ? strtoull(text, &end, 10) : 0;
        if (numbers[i] == 0 || *end != (i == 0 ? ':' : '\0'))
            return error_set(err, STATUS_BAD_INPUT,
                             "option '--counterfactual' has no run and decision (expected RUN:DECISION, from 1, "
                             "such as 17:4)");
    }
    c->run = numbers[0];
    c->decision = numbers[1];
    return STATUS_OK;
}

static enum status find_run(struct counterfactual *c, struct error *err)
{
    const struct bench *bench = c->bench;
    uint64_t runs = (uint64_t)bench->workload_count * bench->seeds * bench->policy_count;
    if (c->run > runs)
        return error_set(err, STATUS_BAD_INPUT,
                         "option '--counterfactual': there is no run %" PRIu64 " (there are %" PRIu64 ")", c->run,
                         runs);
    c->policy = (uint32_t)((c->run - 1) % bench->policy_count);
    c->round = bench_round_of(bench, (size_t)((c->run - 1) / bench->policy_count));
    if (bench->workloads[c->round.workload].kind == BENCH_JOBS)
        return error_set(err, STATUS_BAD_INPUT,
                         "option '--counterfactual' is for instances, but run %" PRIu64 " is of jobs", c->run);
    if (bench_is_search(bench->policies[c->policy]))
        return error_set(err, STATUS_BAD_INPUT,
                         "option '--counterfactual': run %" PRIu64 " is of '%s', which makes no decisions", c->run,
                         bench->policies[c->policy]);
    return STATUS_OK;
}

/* --- trials ------------------------------------------------------------------------------------------- */

/* Runs a trial in which `other` decides; NULL: the policy itself. */
static enum status try_it(const struct counterfactual *c, const char *other, struct policy_trial *out,
                          struct error *err)
{
    const struct policy_trial_options options = {
        .run = {.seed = c->round.seed, .live = c->live, .actual = c->live ? &c->round.actual : NULL,
                .decision = c->decision},
        .other = other,
        .limits = {.seconds = c->bench->options.limit_s, .memory_bytes = memory_limit}};
    TRY(policy_trial(c->bench->policies[c->policy], &c->round.in, &options, out, err));
    return out->status == STATUS_BAD_INPUT ? error_set(err, STATUS_BAD_INPUT, "%s", out->text) : STATUS_OK;
}

static enum status try_itself(struct counterfactual *c, struct error *err)
{
    struct policy_trial trial = {0};
    enum status status = try_it(c, NULL, &trial, err);
    if (!status && trial.status) status = error_set(err, trial.status, "%s", trial.text);
    c->value = (double)trial.run.value / c->round.ticks;
    c->decided = trial.run.decided;
    c->decisions = trial.run.decisions;
    policy_trial_release(&trial);
    if (!status && !c->decided.made)
        status = error_set(err, STATUS_BAD_INPUT,
                           "option '--counterfactual': run %" PRIu64 " has no decision %" PRIu64
                           " (it has %" PRIu64 ")", c->run, c->decision, c->decisions);
    return status;
}

static bool same_choice(const struct policy_decided *a, const struct policy_decided *b)
{
    if (a->waits || b->waits) return a->waits == b->waits;
    return a->choice.job == b->choice.job && a->choice.device == b->choice.device;
}

/* --- the answer --------------------------------------------------------------------------------------- */

struct bench_counterfactual_answer {
    uint32_t failed;       /* policies that broke a rule */
    struct cli_table table;
    struct json_out *json; /* NULL: a table */
};

static void add_json(const struct counterfactual *c, const char *policy, const struct policy_trial *trial,
                     struct json_out *json)
{
    const struct policy_decided *decided = &trial->run.decided;
    json_out_object_begin(json, NULL, true);
    json_out_string(json, "policy", policy);
    if (trial->status) {
        json_out_string(json, "reason", trial->text);
    } else {
        if (decided->waits) json_out_bool(json, "waits", true);
        else {
            json_out_string(json, "job", c->round.in.jobs[decided->choice.job].name);
            json_out_u64(json, "device", decided->choice.device);
        }
        json_out_double(json, "value", (double)trial->run.value / c->round.ticks);
    }
    json_out_object_end(json);
}

static void add_row(const struct counterfactual *c, const char *policy, const struct policy_trial *trial,
                    struct cli_table *table)
{
    char percent[CLI_PERCENT_BYTES];
    const struct policy_decided *decided = &trial->run.decided;
    double value = (double)trial->run.value / c->round.ticks;
    cli_table_cell(table, "%s", policy);
    if (trial->status) {
        cli_table_cell(table, "%s", trial->text);
        for (int i = 0; i < 4; i++) cli_table_cell(table, "-");
        return;
    }
    if (decided->waits) {
        cli_table_cell(table, "waits");
        cli_table_cell(table, "-");
    } else {
        cli_table_cell(table, "%s", c->round.in.jobs[decided->choice.job].name);
        cli_table_cell(table, "%" PRIu32, decided->choice.device);
    }
    cli_table_cell(table, "%.10g", value);
    cli_table_cell(table, "%s",
                   same_choice(decided, &c->decided) ? "the same" : cli_signed_percent(value / c->value - 1, percent));
    cli_table_cell(table, "%.4f", value / c->bound);
}

static enum status try_all(const struct counterfactual *c, struct bench_counterfactual_answer *answer,
                           struct error *err)
{
    for (uint32_t p = 0; p < c->bench->policy_count; p++) {
        const char *policy = c->bench->policies[p];
        struct policy_trial trial = {0};
        if (bench_is_search(policy)) continue;
        enum status status = try_it(c, p == c->policy ? NULL : policy, &trial, err);
        answer->failed += !status && trial.status && trial.status != STATUS_INFEASIBLE;
        if (!status && answer->json) add_json(c, policy, &trial, answer->json);
        else if (!status) add_row(c, policy, &trial, &answer->table);
        policy_trial_release(&trial);
        TRY(status);
    }
    return STATUS_OK;
}

/* Returns the status after the answer. */
static enum status verdict(const struct bench_counterfactual_answer *answer, struct error *err)
{
    if (answer->failed == 0) return STATUS_OK;
    return error_set(err, STATUS_CHECK, "%" PRIu32 " of the asked policies failed", answer->failed);
}

static void print_head(FILE *out, const struct counterfactual *c)
{
    fprintf(out, "run %" PRIu64 ": %s, seed %" PRIu64 ", by %s%s: %.10g, the bound is %.10g\n", c->run,
            c->bench->workloads[c->round.workload].name, c->round.seed, c->bench->policies[c->policy],
            c->live ? " live" : "", c->value, c->bound);
    fprintf(out, "decision %" PRIu64 " of %" PRIu64 ", at %.10g\n\n", c->decision, c->decisions,
            (double)c->decided.at / c->round.ticks);
}

static enum status answer_text(const struct counterfactual *c, struct error *err)
{
    struct bench_counterfactual_answer answer = {0};
    cli_table_begin(&answer.table,
                    (const char *const[]){"WHO DECIDES", "JOB", ">DEVICE", ">VALUE", ">CHANGE", ">OVER BOUND", NULL});
    enum status status = try_all(c, &answer, err);
    if (status) answer.table.failed = *err;
    else print_head(c->cli->out, c);
    TRY(cli_table_end(&answer.table, c->cli->out, err));
    return verdict(&answer, err);
}

static enum status answer_json(const struct counterfactual *c, struct error *err)
{
    struct bench_counterfactual_answer answer = {0};
    TRY(cli_report_begin(c->cli, "bench", &answer.json, err));
    struct json_out *json = answer.json;
    json_out_u64(json, "run", c->run);
    json_out_u64(json, "decision", c->decision);
    json_out_u64(json, "decisions", c->decisions);
    json_out_double(json, "at", (double)c->decided.at / c->round.ticks);
    json_out_string(json, "workload", c->bench->workloads[c->round.workload].name);
    json_out_u64(json, "seed", c->round.seed);
    json_out_string(json, "policy", c->bench->policies[c->policy]);
    json_out_bool(json, "live", c->live);
    json_out_double(json, "value", c->value);
    json_out_double(json, "bound", c->bound);
    json_out_array_begin(json, "choices", false);
    enum status status = try_all(c, &answer, err);
    json_out_array_end(json);
    if (status) {
        json_out_destroy(json);
        return status;
    }
    TRY(cli_report_end(c->cli, json, err));
    return verdict(&answer, err);
}

enum status bench_counterfactual(struct cli *cli, const struct bench *bench, const char *text, struct error *err)
{
    struct counterfactual c = {.cli = cli, .bench = bench, .live = bench->options.noise > 0};
    TRY(read_numbers(text, &c, err));
    TRY(find_run(&c, err));
    enum status status = bench_round_make(&c.round, err);
    c.bound = c.live ? c.round.actual_bound : c.round.bound;
    if (!status) status = try_itself(&c, err);
    if (!status) status = (cli->json ? answer_json : answer_text)(&c, err);
    bench_round_release(&c.round);
    return status;
}
