/* label: medium
 * "No plan can beat" (planner/spill/cut/bound.h): of random jobs on random machines every plan that there is takes at
 * least the bound that the default plan is printed with, when it is simulated. Plans are the plans of all policies,
 * with each place of the optimizer; of saturn and the rules that it is compared with; and parallel jobs in the ways
 * that planner/capacity/what_if_ways.h has. The chain's bound is of plans that compute each job on one device at a
 * time, and is held against these only. Jobs that are evaluated on held-out data are among them, jobs with frozen
 * layers or adapters, with experts, dropout and tensor pieces, and plans that swap activations or choose what is kept.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/random.h"
#include "base/size.h"
#include "planner/capacity/what_if.h"
#include "planner/capacity/what_if_ways.h"
#include "planner/policy/policies.h"
#include "planner/saturn/saturn.h"
#include "planner/spill/cut/bound.h"
#include "planner/strategy/planner.h"
#include "planner/swap/swap.h"
#include "sim/sim.h"
#include "tests/support/support_models.h"
#include "tests/support/support_seed.h"

static const double rounding = 1 - 1e-9;

struct counts {
    uint32_t plans, parallel, refused, chains;
    double tightest; /* bound of every plan over makespan, at most */
};

/* --- random jobs and machines ------------------------------------------------------------------ */

static const char *const machines[] = {
    "2x rtx-3090-24gb", "4x a100-sxm4-40gb", "t4-16gb", "2x a100-sxm4-40gb + 2x v100-sxm2-32gb",
    "g5.12xlarge",      "p3.8xlarge",        "2x l4-24gb", "4x rtx-2080-ti-11gb",
};

/* Words that are a multiple of 8, and such that are not. */
static const char *const networks[] = {
    "{\"model_type\": \"gpt2\", \"n_layer\": 5, \"n_embd\": 256, \"n_head\": 4, \"vocab_size\": 5003, "
    "\"n_positions\": 128}",
    "{\"model_type\": \"gpt2\", \"n_layer\": 2, \"n_embd\": 1024, \"n_head\": 8, \"vocab_size\": 1000, "
    "\"n_positions\": 128}",
    "{\"model_type\": \"bert\", \"num_hidden_layers\": 4, \"hidden_size\": 512, \"num_attention_heads\": 8, "
    "\"intermediate_size\": 2048, \"vocab_size\": 3001, \"max_position_embeddings\": 128}",
    "{\"model_type\": \"llama\", \"num_hidden_layers\": 4, \"hidden_size\": 256, \"num_attention_heads\": 8, "
    "\"num_key_value_heads\": 4, \"intermediate_size\": 512, \"vocab_size\": 32001, \"max_position_embeddings\": 128, "
    "\"rms_norm_eps\": 1e-5}",
};

/* Networks for frozen layers and adapters: their layers (the embedding included) and the adapters' targets. */
static const struct {
    const char *text, *targets;
    uint32_t blocks;
} trained[] = {
    {"{\"model_type\": \"gpt2\", \"n_layer\": 6, \"n_embd\": 256, \"n_head\": 4, \"vocab_size\": 5003, "
     "\"n_positions\": 128, \"resid_pdrop\": 0.1, \"embd_pdrop\": 0.2, \"attn_pdrop\": 0.1}", "[\"c_attn\", \"c_fc\"]",
     6},
    {"{\"model_type\": \"llama\", \"num_hidden_layers\": 5, \"hidden_size\": 256, \"num_attention_heads\": 8, "
     "\"num_key_value_heads\": 4, \"intermediate_size\": 512, \"vocab_size\": 32001, \"max_position_embeddings\": 128, "
     "\"rms_norm_eps\": 1e-5, \"attention_dropout\": 0.1}", "[\"q_proj\", \"down_proj\"]", 5},
    {"{\"model_type\": \"mixtral\", \"num_hidden_layers\": 3, \"hidden_size\": 256, \"num_attention_heads\": 8, "
     "\"num_key_value_heads\": 4, \"intermediate_size\": 512, \"vocab_size\": 3001, \"max_position_embeddings\": 128, "
     "\"rms_norm_eps\": 1e-5, \"num_local_experts\": 4, \"num_experts_per_tok\": 2}", "[\"q_proj\", \"v_proj\"]", 3},
    {"{\"model_type\": \"bert\", \"num_hidden_layers\": 4, \"hidden_size\": 512, \"num_attention_heads\": 8, "
     "\"intermediate_size\": 2048, \"vocab_size\": 3001, \"max_position_embeddings\": 128}", NULL, 4},
};

static const char *const optimizers[] = {"\"adamw\"", "\"sgd\"", "{\"kind\": \"sgd\", \"momentum\": 0.9}"};

struct sample {
    struct hardware hardware;
    struct job_set jobs;
    char text[4096];
};

enum { EVALUATES = 1, TRAINS_PART = 2 };

/* Writes the held-out minibatches of a job, or nothing. */
static void draw_evaluation(uint64_t own, bool evaluates, char *text, size_t size)
{
    text[0] = '\0';
    if (evaluates)
        snprintf(text, size, ", \"evaluate\": {\"data\": \"held-out.bin\", \"every\": %u, \"minibatches\": %u}",
                 1 + (unsigned)random_below(own, 6, 3), 1 + (unsigned)random_below(own, 7, 6));
}

/* Writes what a job trains: all, the layers from some layer on, or adapters, beside frozen layers or not. */
static void draw_trained(uint64_t own, uint32_t network, char *text, size_t size)
{
    const uint64_t way = random_below(own, 20, 4), last = random_below(own, 21, trained[network].blocks + 1);
    text[0] = '\0';
    if (way == 1) snprintf(text, size, ", \"freeze\": {\"layers\": [[0, %u]]}", (unsigned)last);
    if (way >= 2 && trained[network].targets)
        snprintf(text, size, ", \"adapter\": {\"kind\": \"lora\", \"rank\": %u, \"targets\": %s}",
                 1u << random_below(own, 22, 6), trained[network].targets);
}

static void draw(uint64_t key, uint32_t job_count, uint32_t extras, struct sample *out)
{
    struct error err = {0};
    *out = (struct sample){0};
    const char *machine = machines[random_below(key, 0, ARRAY_COUNT(machines))];
    uint64_t bytes = (UINT64_C(1) << 26) << random_below(key, 1, 6);
    bool frameworks = random_below(key, 2, 2);
    size_t used = (size_t)snprintf(out->text, sizeof out->text, "{\"spillway_jobs\": 1, \"jobs\": [");
    for (uint32_t j = 0; j < job_count; j++) {
        uint64_t own = random_u64(key, 10 + j);
        const uint32_t part = (uint32_t)random_below(own, 8, ARRAY_COUNT(trained));
        char evaluation[128], trains[128] = "";
        draw_evaluation(own, extras & EVALUATES, evaluation, sizeof evaluation);
        if (extras & TRAINS_PART) draw_trained(own, part, trains, sizeof trains);
        used += (size_t)snprintf(
            out->text + used, sizeof out->text - used,
            "%s{\"name\": \"%c\", \"network\": %s, \"sequence\": 128, \"microbatch\": %u, \"microbatches\": %u, "
            "\"minibatches\": %u, \"precision\": \"%s\", \"optimizer\": %s%s%s}", j > 0 ? ", " : "", (int)('a' + j),
            extras & TRAINS_PART ? trained[part].text : networks[random_below(own, 0, ARRAY_COUNT(networks))],
            1 + (unsigned)random_below(own, 1, 3), 1u << random_below(own, 2, 4), 1 + (unsigned)random_below(own, 3, 5),
            precision_names[random_below(own, 4, PRECISION_COUNT)],
            optimizers[random_below(own, 5, ARRAY_COUNT(optimizers))], evaluation, trains);
    }
    snprintf(out->text + used, sizeof out->text - used, "]}");
    support_machine(machine, &out->hardware);
    if (support_jobs(out->text, ".", &out->jobs, &err) != STATUS_OK) fail_msg("%s: %s", out->text, err.text);
    for (uint32_t d = 0; d < out->hardware.device_count; d++) out->hardware.devices[d].memory_bytes = bytes;
    out->hardware.stack = frameworks ? STACK_FRAMEWORKS : STACK_SPILLWAY;
    used = strlen(out->text);
    snprintf(out->text + used, sizeof out->text - used, " on %s with %llu bytes each, stack %s", machine,
             (unsigned long long)bytes, hardware_stack_names[out->hardware.stack]);
}

static void release(struct sample *sample)
{
    job_set_release(&sample->jobs);
    hardware_release(&sample->hardware);
}

/* --- plans ------------------------------------------------------------------------------------- */

static void check(const struct sample *sample, const struct bound *bound, const char *name, const struct plan *plan,
                  struct counts *counts)
{
    double seconds;
    struct error err = {0};
    bool parallel = plan->gang_count > 0;
    if (sim_seconds(NULL, plan, &seconds, &err) != STATUS_OK) fail_msg("%s, %s: %s", sample->text, name, err.text);
    if (seconds < rounding * bound->any_s)
        fail_msg("%s, %s: %.9g s, and %.9g s is the bound of every plan (%s)", sample->text, name, seconds,
                 bound->any_s, bound->text);
    if (!parallel && seconds < rounding * bound->seconds)
        fail_msg("%s, %s: %.9g s, and %.9g s is the bound (%s)", sample->text, name, seconds, bound->seconds,
                 bound->text);
    if (seconds < rounding * plan->lower_bound_s)
        fail_msg("%s, %s: %.9g s, and its own bound is %.9g s", sample->text, name, seconds, plan->lower_bound_s);
    counts->plans++;
    counts->parallel += parallel;
    counts->chains += parallel && seconds < bound->seconds;
    if (bound->any_s / seconds > counts->tightest) counts->tightest = bound->any_s / seconds;
}

/* Takes the sample over. `rule`: of saturn's; SATURN_RULES: the policy's. */
static void try_policy(struct sample *sample, const struct bound *bound, const struct planner_options *options,
                       enum saturn_rule rule, struct counts *counts)
{
    struct plan plan = {0};
    struct error err = {0};
    struct saturn_report report = {0};
    const struct saturn_clock clock = {.time = sim_seconds};
    const struct saturn_options how = {.spilled = options, .clock = &clock, .rule = rule, .interval_s = -1,
                                       .restart_s = -1};
    const char *name = rule < SATURN_RULES ? saturn_rule_names[rule] : options->policy ? options->policy : "default";
    enum status status = rule < SATURN_RULES ? saturn_plan(&sample->hardware, &sample->jobs, &how, &report, &plan, &err)
                                             : planner_plan(&sample->hardware, &sample->jobs, options, &plan, &err);
    if (status == STATUS_OK) check(sample, bound, name, &plan, counts);
    else if (status == STATUS_INFEASIBLE || status == STATUS_BAD_INPUT) counts->refused++;
    else fail_msg("%s, %s: %s", sample->text, name, err.text);
    plan_release(&plan);
}

static void find_bound(const struct sample *sample, struct bound *out)
{
    bound_makespan(&sample->hardware, &sample->jobs, hardware_has_cpu(&sample->hardware), out);
    assert_true(out->any_s > 0 && out->any_s <= out->seconds);
    assert_true(out->kind == BOUND_CHAIN || out->any_s >= out->seconds);
}

/* Tries plans whose activations are swapped, and such that choose what each shard keeps. */
static void swaps_of(uint64_t key, uint32_t job_count, uint32_t extras, const struct bound *bound,
                     struct counts *counts)
{
    const struct swap_options swap = {.way = (uint32_t)random_below(key, 91, SWAP_WAYS), .limit_s = 0.02};
    for (uint32_t mixed = 0; mixed < 2; mixed++) {
        struct swap_report report = {0};
        struct planner_options options = {.activations = PLANNER_AUTO, .optimizer = PLANNER_AUTO, .mixed = mixed > 0};
        struct sample sample;
        if (!mixed) options.swap = &swap, options.swap_report = &report;
        draw(key, job_count, extras, &sample);
        try_policy(&sample, bound, &options, SATURN_RULES, counts);
        swap_report_release(&report);
    }
}

static void policies_of(uint64_t key, uint32_t job_count, uint32_t extras, bool saturn, struct counts *counts)
{
    static const uint32_t places[] = {PLANNER_AUTO, PLANNER_PLACE_DEVICE, PLANNER_PLACE_CPU, PLANNER_PLACE_SPLIT};
    struct planner_options options = {.activations = PLANNER_AUTO, .iterations = 20,
                                      .optimizer = places[random_below(key, 90, ARRAY_COUNT(places))]};
    struct sample sample;
    struct bound bound;
    draw(key, job_count, extras, &sample);
    find_bound(&sample, &bound);
    release(&sample);
    for (uint32_t p = 0; p == 0 || policy_name_at(p - 1); p++) {
        draw(key, job_count, extras, &sample);
        options.policy = p > 0 ? policy_name_at(p - 1) : NULL;
        options.resident = p == 0;
        try_policy(&sample, &bound, &options, SATURN_RULES, counts);
    }
    swaps_of(key, job_count, extras, &bound, counts);
    options = (struct planner_options){.activations = PLANNER_AUTO, .optimizer = PLANNER_AUTO, .iterations = 200};
    for (enum saturn_rule rule = 0; saturn && rule < SATURN_RULES; rule++) {
        draw(key, job_count, extras, &sample);
        try_policy(&sample, &bound, &options, rule, counts);
    }
}

/* --- tests ------------------------------------------------------------------------------------- */

static void print(const char *name, const struct counts *counts)
{
    print_message("%s: %u plans, %u of parallel jobs, %u refused; %u below the chain's bound, which is not theirs; "
                  "the bound is up to %.4f of a makespan\n", name, counts->plans, counts->parallel, counts->refused,
                  counts->chains, counts->tightest);
    assert_true(counts->plans > 100 && counts->tightest > 0.5);
}

static void of_policies(void **state)
{
    (void)state;
    uint64_t seed = support_seed("bounds_hold: policies");
    struct counts counts = {0};
    for (uint32_t i = 0; i < 40; i++) policies_of(random_u64(seed, i), 1 + i % 4, 0, i % 4 == 1, &counts);
    print("policies", &counts);
}

/* Checks jobs whose held-out minibatches can overlap with training and with each other. */
static void of_evaluations(void **state)
{
    (void)state;
    uint64_t seed = support_seed("bounds_hold: evaluations");
    struct counts counts = {0};
    for (uint32_t i = 0; i < 30; i++) policies_of(random_u64(seed, i), 1 + i % 3, EVALUATES, i % 3 == 1, &counts);
    print("evaluations", &counts);
}

/* Checks jobs that train a part of their network. */
static void of_parts(void **state)
{
    (void)state;
    uint64_t seed = support_seed("bounds_hold: parts");
    struct counts counts = {0};
    for (uint32_t i = 0; i < 30; i++)
        policies_of(random_u64(seed, i), 1 + i % 3, TRAINS_PART | (i % 2 ? EVALUATES : 0), i % 3 == 1, &counts);
    print("parts", &counts);
}

/* Checks one job, in the ways that have its microbatches. */
static void of_ways(void **state)
{
    (void)state;
    enum { SAMPLES = 60, WAYS = 8 };
    static struct what_if_way ways[WHAT_IF_WAYS_MAX];
    uint64_t seed = support_seed("bounds_hold: ways");
    struct counts counts = {0};
    for (uint32_t i = 0; i < SAMPLES; i++) {
        struct sample sample;
        struct bound bound;
        draw(random_u64(seed, i), 1, i % 3 == 2 ? TRAINS_PART : 0, &sample);
        find_bound(&sample, &bound);
        const struct job *job = &sample.jobs.jobs[0];
        uint32_t count = what_if_ways(&sample.hardware, job, ways), kept = 0;
        for (uint32_t w = 0; w < count; w++)
            if (ways[w].microbatch == job->microbatch) ways[kept++] = ways[w];
        for (uint32_t k = 0; k < WAYS && kept > 0; k++) {
            const struct what_if_way *way = &ways[random_below(seed, 1000 + WAYS * i + k, kept)];
            struct plan plan = {0};
            struct error err = {0};
            enum status status = what_if_plan(&sample.hardware, job, way, job->minibatches, &plan, &err);
            if (status == STATUS_OK) check(&sample, &bound, way->fit.name, &plan, &counts);
            else if (status == STATUS_INFEASIBLE || status == STATUS_BAD_INPUT) counts.refused++;
            else fail_msg("%s, %s: %s", sample.text, way->fit.name, err.text);
            plan_release(&plan);
        }
        release(&sample);
    }
    print("ways", &counts);
    assert_true(counts.parallel > 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_policies),
        cmocka_unit_test(of_evaluations),
        cmocka_unit_test(of_parts),
        cmocka_unit_test(of_ways),
    };
    return cmocka_run_group_tests_name("bounds_hold", tests, NULL, NULL);
}
