/*
 * Shares of replicas in plans that are carried out (label: fast): every parameter is in one share, in every part of the
 * state; less memory at every level; and the judge misses no share, gather or reduction.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/random.h"
#include "base/size.h"
#include "models/job/chunk_share.h"
#include "tests/support/planner/support_parallel_plan.h"
#include "tests/support/planner/support_planner.h"
#include "tests/support/support_seed.h"

enum { MINIBATCHES = 3, CASES = 40 };

static const char *const configs[] = {
    "{\"model_type\": \"gpt2\", \"n_layer\": 3, \"n_embd\": 16, \"n_head\": 2, \"n_positions\": 16, "
    "\"vocab_size\": 37}",
    "{\"model_type\": \"gpt2\", \"n_layer\": 4, \"n_embd\": 20, \"n_head\": 2, \"n_positions\": 9, \"vocab_size\": 67, "
    "\"tie_word_embeddings\": false}",
    "{\"model_type\": \"llama\", \"num_hidden_layers\": 3, \"hidden_size\": 16, \"num_attention_heads\": 4, "
    "\"num_key_value_heads\": 2, \"intermediate_size\": 24, \"max_position_embeddings\": 16, \"vocab_size\": 41, "
    "\"tie_word_embeddings\": true}",
    "{\"model_type\": \"bert\", \"num_hidden_layers\": 3, \"hidden_size\": 16, \"num_attention_heads\": 2, "
    "\"intermediate_size\": 24, \"max_position_embeddings\": 16, \"vocab_size\": 37, \"type_vocab_size\": 2, "
    "\"architectures\": [\"BertForMaskedLM\"]}",
    "{\"model_type\": \"vit\", \"num_hidden_layers\": 3, \"hidden_size\": 16, \"num_attention_heads\": 2, "
    "\"intermediate_size\": 24, \"image_size\": 8, \"patch_size\": 4, \"num_labels\": 5}",
};

/* --- shares ---------------------------------------------------------------------------------- */

/* Makes a job with `zero` and other options by chance. */
static void draw(struct job_set *jobs, uint64_t seed, uint64_t n)
{
    static const uint32_t precisions[] = {PRECISION_FP32, PRECISION_BF16_WEIGHTS};
    static const uint32_t optimizers[] = {OPTIMIZER_ADAMW, OPTIMIZER_SGD, OPTIMIZER_MOMENTUM};
    test_network_jobs(jobs, 1, configs[n % ARRAY_COUNT(configs)], MINIBATCHES);
    struct job *job = &jobs->jobs[0];
    job->microbatches = 12;
    job->precision = precisions[random_below(seed, 10 * n, 2)];
    job->optimizer.kind = optimizers[random_below(seed, 10 * n + 1, 3)];
    job->optimizer.moments = random_below(seed, 10 * n + 2, 2) ? PRECISION_BF16 : PRECISION_FP32;
    job->parallel = (struct parallel){.tensor = 1, .pipeline = 1 + (uint32_t)random_below(seed, 10 * n + 3, 3),
                                      .prefetch = 1,
                                      .data = 2 + (uint32_t)random_below(seed, 10 * n + 4, 3), .chunks = 1,
                                      .schedule = PIPELINE_GPIPE,
                                      .zero = 1 + (uint32_t)random_below(seed, 10 * n + 5, 3)};
    if (job->parallel.pipeline == 1) job->parallel.chunks = 1 + (uint32_t)random_below(seed, 10 * n + 6, 3);
}

/* Counts, for each parameter of the layers, the shares that have it, and checks its place in a part. */
static void check_entry(const struct chunk_share *shares, const struct chunk_memory *m,
                        const struct memory_entry *parameters, const struct memory_entry *own, uint32_t part)
{
    const uint64_t first = parameters->offset_bytes / sizeof(float), count = parameters->bytes / sizeof(float);
    const uint64_t each = own->bytes / count;
    for (uint64_t i = 0; i < count; i++) {
        uint32_t found = 0;
        for (uint32_t rank = 0; rank < m->ranks; rank++)
            for (uint32_t s = 0; s < m->section_count; s++) {
                const struct chunk_share_section *section = &shares[rank].sections[s];
                const struct chunk_share_part *range = &section->parts[part];
                const uint64_t at = own->offset_bytes + i * each;
                if (m->sections[s].kind == CHUNK_SECTION_HEAD || first + i < section->first ||
                    first + i >= section->first + section->count)
                    continue;
                found++;
                assert_true(each == 0 || (at >= range->whole && at + each <= range->whole + range->bytes));
                assert_true(range->here + range->bytes <= m->state_bytes);
            }
        assert_int_equal(found, 1);
    }
}

static void check_chunk(const struct job *job, struct parallel_layers layers)
{
    struct arena arena = {0};
    struct error err = {0};
    struct memory_table parameters;
    struct state_tables state;
    const struct chunk_memory m = chunk_memory(job, layers);
    struct chunk_share shares[4];
    assert_true(m.splits_states && m.ranks <= ARRAY_COUNT(shares));
    for (uint32_t rank = 0; rank < m.ranks; rank++) shares[rank] = chunk_share(job, layers, &m, rank);
    if (memory_parameters(&job->network, layers.first, layers.count, &arena, &parameters, &err) ||
        memory_state_tables(&job->network, layers.first, layers.count, job_state_format(job), &arena, &state, &err))
        fail_msg("%s", err.text);
    for (uint32_t part = 0; part < STATE_PARTS; part++)
        for (uint32_t i = 0; i < parameters.count; i++)
            check_entry(shares, &m, &parameters.entries[i], &state.parts[part].entries[i], part);
    for (uint32_t rank = 0; rank < m.ranks; rank++)
        for (uint32_t s = 0; s < m.section_count; s++) {
            const struct chunk_share_section *own = &shares[rank].sections[s];
            if (own->count > 0 && rank > 0)
                assert_int_equal((own->first - shares[0].sections[s].first) % CHUNK_SHARE_ROUNDING, 0);
            if (m.splits_gradients) assert_true(own->gradient_offset + own->count * sizeof(float) <= m.gradient_bytes);
        }
    arena_release(&arena);
}

static void every_parameter_once(void **state)
{
    (void)state;
    const uint64_t seed = support_seed("shares");
    for (uint64_t n = 0; n < CASES; n++) {
        struct job_set jobs;
        draw(&jobs, seed, n);
        for (uint32_t c = 0; c < parallel_chunks(&jobs.jobs[0].parallel); c++)
            check_chunk(&jobs.jobs[0], parallel_layers(&jobs.jobs[0], c));
        job_set_release(&jobs);
    }
}

/* Both ends of a tied table have the same rows on each replica. */
static void tables_are_cut_alike(void **state)
{
    (void)state;
    const uint64_t seed = support_seed("tables");
    for (uint64_t n = 0; n < CASES; n++) {
        struct job_set jobs;
        draw(&jobs, seed, n);
        const struct job *job = &jobs.jobs[0];
        const struct parallel_layers ends[] = {parallel_layers(job, 0),
                                               parallel_layers(job, parallel_chunks(&job->parallel) - 1)};
        const struct chunk_memory first = chunk_memory(job, ends[0]), last = chunk_memory(job, ends[1]);
        for (uint32_t rank = 0; rank < job->parallel.data && job->network.tied_head; rank++) {
            const struct chunk_share a = chunk_share(job, ends[0], &first, rank),
                b = chunk_share(job, ends[1], &last, rank);
            const uint32_t head = last.section_count - 1;
            assert_int_equal(first.sections[0].kind, CHUNK_SECTION_TABLE);
            assert_int_equal(last.sections[head].kind, CHUNK_SECTION_HEAD);
            assert_int_equal(a.sections[0].count, b.sections[head].count);
            assert_int_equal(a.sections[0].first - first.sections[0].first,
                             b.sections[head].first - last.sections[head].first);
            for (uint32_t part = 0; part < STATE_PARTS && last.copies_table; part++) { /* the layers may have padding */
                const uint64_t own = a.sections[0].parts[part].bytes, copy = b.sections[head].parts[part].bytes;
                assert_true(own >= copy && own - copy < MEMORY_ALIGNMENT);
            }
        }
        job_set_release(&jobs);
    }
}

/* --- plans ----------------------------------------------------------------------------------- */

/* A variant is 100 times the level, 10 times the replicas, and the stages; one stage has three chunks. */
static void make_plan(struct plan *out, uint32_t variant)
{
    struct hardware hardware;
    struct job_set jobs;
    struct error err = {0};
    const struct planner_options options = {.weight_buffers = 0};
    const uint32_t stages = variant % 10;
    test_hardware(&hardware, 6, 1 << 26, 1e9);
    test_gpt_jobs(&jobs, 1, 6, 32, 97, MINIBATCHES);
    jobs.jobs[0].microbatches = 6;
    jobs.jobs[0].parallel = (struct parallel){.tensor = 1, .data = variant / 10 % 10, .pipeline = stages, .prefetch = 1,
                                              .zero = variant / 100, .chunks = stages == 1 ? 3 : 1,
                                              .schedule = PIPELINE_1F1B};
    *out = (struct plan){0};
    if (planner_plan(&hardware, &jobs, &options, out, &err)) fail_msg("%s", err.text);
    assert_true(parallel_is_carried_out(&out->jobs.jobs[0].parallel));
}

/* States shrink at levels 1 and 3, gradients at level 2, and plans have these sizes. */
static void memory_by_level(void **state)
{
    (void)state;
    for (uint32_t stages = 1; stages <= 3; stages++) {
        uint64_t states[4] = {0}, gradients[4] = {0};
        for (uint32_t zero = ZERO_NOTHING; zero <= ZERO_WEIGHTS; zero++) {
            struct plan plan;
            make_plan(&plan, 100 * zero + 20 + stages);
            for (uint32_t b = 0; b < plan.buffer_count; b++) {
                const struct plan_buffer *buffer = &plan.buffers[b];
                if (buffer->on_device && buffer->kind == BUFFER_STATE) states[zero] += buffer->bytes;
                if (buffer->on_device && buffer->kind == BUFFER_GRADIENT && buffer->variant == 0)
                    gradients[zero] += buffer->bytes;
            }
            plan_release(&plan);
        }
        assert_true(states[1] < states[0] && states[2] == states[1] && states[3] < states[2]);
        assert_true(gradients[1] == gradients[0] && gradients[2] < gradients[1] && gradients[3] == gradients[2]);
        assert_true(3 * states[1] < 2 * states[0] + states[0] / 10); /* weights and half of two moments: 2/3 */
        assert_true(2 * states[3] < states[0] + states[0] / 10);
    }
}

/* --- broken plans ---------------------------------------------------------------------------- */

static struct plan_op *collective_of(struct plan *p, uint32_t pass, uint32_t chunk)
{
    return test_parallel_op(p, pass, chunk, OP_COLLECTIVE);
}

static struct plan_unit *unit_of(struct plan *p, uint32_t pass, uint32_t chunk)
{
    return &p->units[test_parallel_task(p, pass, chunk, 0)->unit];
}

static struct plan_buffer *buffer_of(struct plan *p, uint32_t kind, uint32_t shard, uint32_t variant, bool on_device)
{
    for (uint32_t b = 0; b < p->buffer_count; b++)
        if (p->buffers[b].kind == kind && p->buffers[b].shard == shard && p->buffers[b].variant == variant &&
            p->buffers[b].on_device == on_device)
            return &p->buffers[b];
    fail_msg("no buffer of kind %u", kind);
    return NULL;
}

static struct plan_access *access_of(struct plan *p, const struct plan_op *op, uint32_t kind)
{
    for (uint32_t a = 0; a < op->access_count; a++)
        if (p->buffers[p->accesses[op->first_access + a].buffer].kind == kind)
        return &p->accesses[op->first_access + a];
    fail_msg("no access of kind %u", kind);
    return NULL;
}

static void gathers_less(struct plan *p) { collective_of(p, PLAN_GATHER, 1)->bytes -= 64; }
static void gathers_by_sum(struct plan *p) { collective_of(p, PLAN_GATHER, 1)->collective = COLLECTIVE_ALL_REDUCE; }
static void not_gathered(struct plan *p) { unit_of(p, PLAN_GATHER, 1)->op_count = 0; }
static void table_not_gathered(struct plan *p) { unit_of(p, PLAN_GATHER, 2)->op_count = 1; }
static void updated_not_gathered(struct plan *p)
{
    struct plan_unit *unit = unit_of(p, PLAN_UPDATE, 1);
    unit->op_count--;
}
static void late_gather(struct plan *p)
{
    test_parallel_swap(test_parallel_task(p, PLAN_GATHER, 0, 0), test_parallel_task(p, PLAN_FORWARD, 0, 0));
}
static void reads_shares(struct plan *p)
{
    struct plan_op *op = test_parallel_op(p, PLAN_FORWARD, 1, OP_COMPUTE);
    access_of(p, op, BUFFER_PARAMETERS)->buffer = (uint32_t)(buffer_of(p, BUFFER_STATE, 1, 0, true) - p->buffers);
}
static void reduces_less(struct plan *p) { collective_of(p, PLAN_REDUCE, 1)->bytes /= 2; }
static void reduces_to_all(struct plan *p) { collective_of(p, PLAN_REDUCE, 1)->collective = COLLECTIVE_ALL_REDUCE; }
static void not_reduced(struct plan *p)
{
    test_parallel_swap(test_parallel_task(p, PLAN_REDUCE, 1, 2), test_parallel_task(p, PLAN_UPDATE, 1, 0));
}
static void overwrites_share(struct plan *p) { access_of(p, collective_of(p, PLAN_REDUCE, 1),
                                                         BUFFER_GRADIENT)[1].flags = ACCESS_WRITE; }
static void member_missing(struct plan *p) { p->gangs[test_parallel_task(p, PLAN_REDUCE, 1,
                                                                         0)->gang].extents[AXIS_DATA]--; }
static void members_swapped(struct plan *p)
{
    uint32_t *devices = p->gang_devices + p->gangs[test_parallel_task(p, PLAN_UPDATE, 1, 0)->gang].first,
        device = devices[1];
    devices[1] = devices[2];
    devices[2] = device;
}
static void share_small(struct plan *p) { buffer_of(p, BUFFER_STATE, 1, 0, true)->bytes -= 64; }
static void host_share_small(struct plan *p) { buffer_of(p, BUFFER_STATE, 1, 0, false)->bytes -= 64; }
static void sum_small(struct plan *p) { buffer_of(p, BUFFER_GRADIENT, 1, 0, true)->bytes -= 64; }
static void whole_small(struct plan *p) { buffer_of(p, BUFFER_PARAMETERS, 1, 0, true)->bytes -= 64; }
static void updated_twice(struct plan *p) { *test_parallel_task(p, PLAN_UPDATE, 1,
                                                                0) = *test_parallel_task(p, PLAN_UPDATE, 0, 0); }

static void broken(void **state)
{
    (void)state;
    static const struct test_parallel_damage cases[] = {
        {gathers_less, 322, "times all-gather of"},
        {gathers_by_sum, 322, "times all-gather of"},
        {not_gathered, 322, "form: a unit without operations"},
        {table_not_gathered, 321, "times all-gather of"},
        {late_gather, 322, "lifetimes: accesses the parameters of job-0 shard 0, which is not live"},
        {late_gather, 321, "lifetimes: accesses the parameters of job-0 shard 0, which is not live"},
        {reads_shares, 322, "form: has no use for the state of job-0 shard 1"},
        {updated_not_gathered, 122, "times all-gather of"},
        {updated_not_gathered, 232, "times all-gather of"},
        {reduces_less, 122, "times reduce-scatter of"},
        {reduces_less, 332, "times reduce-scatter of"},
        {reduces_to_all, 122, "times reduce-scatter of"},
        {reduces_to_all, 222, "times reduce-scatter of"},
        {not_reduced, 222, "gradient of job-0 shard 1, microbatch"},
        {not_reduced, 322, "gradient of job-0 shard 1, microbatch"},
        {overwrites_share, 222, "form: a collective on the gradient of job-0 shard 1"},
        {member_missing, 132, "is not on the devices of stage 1"},
        {members_swapped, 132, "is not on the devices of stage 1"},
        {share_small, 122, "of the state of job-0 shard 1 (it has"},
        {share_small, 332, "state of job-0 shard 1"},
        {host_share_small, 322, "state of job-0 shard 1 on the host has"},
        {sum_small, 222, "memory: the gradient of job-0 shard 1"},
        {whole_small, 322, "memory: the parameters of job-0 shard 1"},
        {updated_twice, 122, "form: ends the minibatch too early"},
    };
    test_parallel_broken(cases, ARRAY_COUNT(cases), make_plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_parameter_once),
        cmocka_unit_test(tables_are_cut_alike),
        cmocka_unit_test(memory_by_level),
        cmocka_unit_test(broken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
