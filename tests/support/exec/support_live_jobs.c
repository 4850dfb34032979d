#include "tests/support/exec/support_live_jobs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/random.h"
#include "planner/strategy/planner.h"
#include "tests/support/planner/support_planner.h"

static const char config[] =
    "{\"model_type\": \"gpt2\", \"n_layer\": 4, \"n_embd\": 16, \"n_head\": 4, \"n_positions\": 16, "
    "\"vocab_size\": 61, \"tie_word_embeddings\": false}";

const struct parallel live_jobs_ways[LIVE_JOBS_WAYS] = {
    {.tensor = 1, .pipeline = 2, .data = 1, .chunks = 1, .prefetch = 1, .schedule = PIPELINE_1F1B},
    {.tensor = 1, .pipeline = 3, .data = 1, .chunks = 1, .prefetch = 1, .schedule = PIPELINE_GPIPE},
    {.tensor = 1, .pipeline = 2, .data = 1, .chunks = 2, .prefetch = 1, .schedule = PIPELINE_ZB_V},
    {.tensor = 1, .pipeline = 1, .data = 1, .chunks = 1, .prefetch = 1},
    {.tensor = 1, .pipeline = 1, .data = 2, .chunks = 2, .prefetch = 1, .tree = true},
    {.tensor = 1, .pipeline = 2, .data = 2, .chunks = 1, .prefetch = 1, .zero = 1, .schedule = PIPELINE_GPIPE},
    {.tensor = 1, .pipeline = 1, .data = 2, .chunks = 2, .prefetch = 1, .zero = 3},
    {.tensor = 2, .pipeline = 2, .data = 1, .chunks = 1, .prefetch = 1, .schedule = PIPELINE_1F1B},
    {.tensor = 2, .pipeline = 1, .data = 1, .chunks = 1, .prefetch = 1, .sequence = true},
    {.tensor = 1, .pipeline = 1, .data = 2, .chunks = 2, .prefetch = 1, .offload = OFFLOAD_STATES, .zero = 2},
    {.tensor = 1, .pipeline = 1, .data = 1, .chunks = 2, .prefetch = 1, .offload = OFFLOAD_STATES, .delayed = true,
     .flush = 3},
    {.tensor = 1, .pipeline = 2, .data = 1, .chunks = 1, .prefetch = 1, .schedule = PIPELINE_2BW, .flush = 3},
    {.tensor = 1, .pipeline = 2, .data = 1, .chunks = 1, .prefetch = 1, .schedule = PIPELINE_PIPEDREAM, .flush = 2},
    {.tensor = 1, .pipeline = 3, .data = 1, .chunks = 1, .prefetch = 1, .schedule = PIPELINE_PIPEDREAM},
    {.tensor = 1, .pipeline = 2, .data = 1, .chunks = 1, .prefetch = 1, .schedule = PIPELINE_TERAPIPE, .slices = 2,
     .slice_tokens = {6, 4}},
};

static void describe(struct job *job, const struct live_job *s, uint32_t index, uint64_t done)
{
    static const char *const names[LIVE_JOBS] = {"first", "second", "third"};
    const struct parallel *const way = &live_jobs_ways[s->way];
    job->name = names[index];
    job->microbatch = 2;
    job->microbatches = way->schedule == PIPELINE_PIPEDREAM ? 1 : 4;
    job->sequence = 10;
    job->optimizer.kind = index == 1 ? OPTIMIZER_ADAMW : OPTIMIZER_SGD;
    job->optimizer.learning_rate = s->rate > 0 ? s->rate : 0.01;
    job->optimizer.schedule = (struct rate_schedule){.kind = RATE_CONSTANT};
    job->optimizer.clip = s->clip;
    job->seed = 7 + index;
    job->minibatches = LIVE_JOBS_STEPS - 2 * index - done; /* they do not end together */
    job->first_minibatch = done;
    job->parallel = *way;
    job->parallel.first_device = s->first_device;
    if (s->evaluated) {
        job->evaluation = (struct job_evaluation){.every = 3, .minibatches = 2, .data_format = DATA_NONE};
        job->keep_best = true;
    }
}

void live_jobs_plan(const struct live_jobs *s, const uint64_t *done, struct plan *plan)
{
    struct hardware hardware;
    struct job_set jobs;
    struct error err = {0};
    const struct planner_options options = {.activations = PLANNER_AUTO, .optimizer = PLANNER_AUTO, .live = !s->fixed};
    test_hardware(&hardware, LIVE_JOBS_DEVICES, 1 << 24, 1e9);
    hardware.backend = "host";
    hardware.threads = 1;
    hardware.host_bandwidth = (struct sourced_value){.value = 2e9, .kind = SOURCE_ASSUMED, .source = "made up"};
    test_network_jobs(&jobs, s->count, config, LIVE_JOBS_STEPS);
    for (uint32_t j = 0; j < s->count; j++) describe(&jobs.jobs[j], &s->jobs[j], j, done ? done[j] : 0);
    *plan = (struct plan){0};
    if (planner_plan(&hardware, &jobs, &options, plan, &err) != STATUS_OK) fail_msg("%s", err.text);
    assert_int_equal(plan->any_order, !s->fixed);
}

struct live_jobs live_jobs_draw(uint64_t key)
{
    struct live_jobs s = {.count = 1 + (uint32_t)random_below(key, 0, LIVE_JOBS)};
    for (uint32_t j = 0; j < s.count; j++) {
        struct live_job *job = &s.jobs[j];
        job->way = (uint32_t)random_below(key, 10 + j, LIVE_JOBS_WAYS);
        const uint32_t devices = (uint32_t)parallel_devices(&live_jobs_ways[job->way]);
        if (random_below(key, 20 + j, 2))
            job->first_device = (uint32_t)random_below(key, 30 + j, LIVE_JOBS_DEVICES - devices + 1);
        const bool synchronous = !parallel_is_stale(&live_jobs_ways[job->way]);
        job->evaluated = random_below(key, 40 + j, 3) == 0;
        job->clip = synchronous && random_below(key, 50 + j, 3) == 0 ? 0.5 : 0;
    }
    return s;
}
