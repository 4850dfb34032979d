/* label: medium
 * Passes that a tensor group shares: gradients, losses and weights of every family on 2 to 4 devices, each on a thread,
 * are one device's to rounding; tensors that all devices have are equal bit by bit, and so are two runs. A slice of the
 * vocabulary may be padded, or have no word at all. Each pass has the exchanges that models/job/parallel_work.h lists.
 * In 16 bits, also with cut rows, the same holds to the precision of their numbers. So it does for adapters, which are
 * cut as the weights are that they belong to.
 */
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/random.h"
#include "base/size.h"
#include "exec/network/chunk.h"
#include "models/job/parallel_work.h"
#include "models/network/tensor_share.h"
#include "tests/support/exec/support_batch.h"
#include "tests/support/planner/support_planner.h"
#include "tests/support/planner/support_trained.h"

enum { STEPS = 3, RANKS_MAX = 4, MICROBATCHES = 2 };

static const char *const configs[] = {
    "{\"model_type\": \"gpt2\", \"n_layer\": 2, \"n_embd\": 24, \"n_head\": 12, \"n_positions\": 16, "
    "\"vocab_size\": 67}",
    "{\"model_type\": \"gpt2\", \"n_layer\": 2, \"n_embd\": 24, \"n_head\": 12, \"n_positions\": 16, "
    "\"vocab_size\": 40, \"n_inner\": 36, \"tie_word_embeddings\": false, \"embd_pdrop\": 0.1, \"resid_pdrop\": 0.2, "
    "\"attn_pdrop\": 0.15}",
    "{\"model_type\": \"llama\", \"num_hidden_layers\": 2, \"hidden_size\": 48, \"num_attention_heads\": 24, "
    "\"num_key_value_heads\": 12, \"intermediate_size\": 36, \"max_position_embeddings\": 16, \"vocab_size\": 67, "
    "\"tie_word_embeddings\": true}",
    "{\"model_type\": \"llama\", \"num_hidden_layers\": 2, \"hidden_size\": 48, \"num_attention_heads\": 12, "
    "\"intermediate_size\": 36, \"max_position_embeddings\": 16, \"vocab_size\": 67, \"tie_word_embeddings\": false}",
    "{\"model_type\": \"qwen2\", \"num_hidden_layers\": 2, \"hidden_size\": 48, \"num_attention_heads\": 24, "
    "\"num_key_value_heads\": 12, \"intermediate_size\": 36, \"max_position_embeddings\": 16, \"vocab_size\": 67}",
    "{\"model_type\": \"qwen3\", \"num_hidden_layers\": 2, \"hidden_size\": 48, \"num_attention_heads\": 24, "
    "\"head_dim\": 4, \"num_key_value_heads\": 12, \"intermediate_size\": 36, \"max_position_embeddings\": 16, "
    "\"vocab_size\": 67}",
    "{\"model_type\": \"gemma\", \"num_hidden_layers\": 2, \"hidden_size\": 48, \"num_attention_heads\": 12, "
    "\"head_dim\": 4, \"num_key_value_heads\": 12, \"intermediate_size\": 36, \"max_position_embeddings\": 16, "
    "\"vocab_size\": 67}",
    "{\"model_type\": \"gpt_neox\", \"num_hidden_layers\": 2, \"hidden_size\": 48, \"num_attention_heads\": 12, "
    "\"rotary_pct\": 0.5, \"intermediate_size\": 36, \"max_position_embeddings\": 16, \"vocab_size\": 67}",
    "{\"model_type\": \"phi\", \"num_hidden_layers\": 2, \"hidden_size\": 96, \"num_attention_heads\": 24, "
    "\"num_key_value_heads\": 12, \"intermediate_size\": 36, \"max_position_embeddings\": 16, \"vocab_size\": 40}",
    "{\"model_type\": \"gptj\", \"n_layer\": 2, \"n_embd\": 48, \"n_head\": 12, \"n_inner\": 36, \"n_positions\": 16, "
    "\"rotary_dim\": 2, \"vocab_size\": 67}",
    "{\"model_type\": \"bert\", \"num_hidden_layers\": 2, \"hidden_size\": 24, \"num_attention_heads\": 12, "
    "\"intermediate_size\": 36, \"max_position_embeddings\": 16, \"vocab_size\": 67, \"type_vocab_size\": 2, "
    "\"pad_token_id\": 0, \"architectures\": [\"BertForMaskedLM\"]}",
    "{\"model_type\": \"vit\", \"num_hidden_layers\": 2, \"hidden_size\": 24, \"num_attention_heads\": 12, "
    "\"intermediate_size\": 36, \"image_size\": 8, \"patch_size\": 4, \"num_labels\": 5}",
};

/* A device. */
struct rank {
    struct chunk_tables tables;
    struct kernels *kernels;
    struct unit_split split;
    bool splits;
    char *state;
    float *gradient, *workspace, *kept[MICROBATCHES];
    double losses[STEPS];
    char wrong[96]; /* about its exchanges; empty: nothing */
};

struct group {
    const struct job *job;
    struct unit_group *exchange;
    struct rank ranks[RANKS_MAX];
    uint32_t members;
    int32_t *batches[STEPS];
    float *first_gradients[RANKS_MAX]; /* after the first minibatch */
};

static void *allocate(uint64_t bytes)
{
    void *memory = aligned_alloc(MEMORY_ALIGNMENT, size_align(bytes > 0 ? bytes : 1, MEMORY_ALIGNMENT));
    if (!memory) abort();
    memset(memory, 0xff, bytes); /* NaN, also in 16 bits */
    return memory;
}

/* --- a group ---------------------------------------------------------------------------------- */

static void make_group(struct group *g, const struct job *job, struct arena *arena)
{
    struct error err = {0};
    const struct parallel_layers all = {0, job->network.layer_count};
    *g = (struct group){.job = job, .members = job->parallel.tensor};
    if (unit_group_create(g->members, true, false, &g->exchange, &err)) fail_msg("%s", err.text);
    for (uint32_t r = 0; r < g->members; r++) {
        struct rank *rank = &g->ranks[r];
        if (chunk_tables_init(job, 0, all, arena, &rank->tables, &err)) fail_msg("%s", err.text);
        if (kernels_host_create(1, &rank->kernels, &err)) fail_msg("%s", err.text);
        const struct chunk_memory *m = &rank->tables.memory;
        rank->splits = g->members > 1;
        rank->split = chunk_split(job, g->exchange, r);
        rank->state = allocate(m->state_bytes);
        rank->gradient = allocate(m->gradient_bytes);
        rank->workspace = allocate(m->workspace_bytes);
        for (uint32_t b = 0; b < MICROBATCHES; b++)
            rank->kept[b] = m->activation_bytes > 0 ? allocate(m->activation_bytes) : NULL;
        g->first_gradients[r] = allocate(m->gradient_bytes);
    }
    for (uint32_t s = 0; s < STEPS; s++) {
        g->batches[s] = allocate(job_batch_bytes(job));
        support_batch_fill(job, g->batches[s], s);
    }
}

static void free_group(struct group *g)
{
    for (uint32_t r = 0; r < g->members; r++) {
        struct rank *rank = &g->ranks[r];
        kernels_host_destroy(rank->kernels);
        free(rank->state);
        free(rank->gradient);
        free(rank->workspace);
        for (uint32_t b = 0; b < MICROBATCHES; b++) free(rank->kept[b]);
        free(g->first_gradients[r]);
    }
    for (uint32_t s = 0; s < STEPS; s++) free(g->batches[s]);
    unit_group_destroy(g->exchange);
}

/* Returns how often a member exchanged these bytes. Two of a loss's numbers for each row are exchanged together. */
static uint64_t take_exchanges(const struct group *g, const struct rank *rank,
                               const struct parallel_collective *planned)
{
    const uint64_t statistics = g->job->microbatch * network_tokens(&g->job->network, g->job->sequence) * sizeof(float);
    const enum collective_kind kind = (enum collective_kind)planned->kind;
    const uint64_t count = unit_group_take(g->exchange, rank->split.rank, kind, planned->bytes).count;
    if (planned->bytes != statistics) return count;
    return count + 2 * unit_group_take(g->exchange, rank->split.rank, kind, 2 * statistics).count;
}

/* Compares the exchanges of a member's last pass with those that are planned. On the member's thread: the first
 * difference is kept. */
static void check_exchanges(const struct group *g, struct rank *rank, uint32_t pass)
{
    const struct parallel_layers all = {0, g->job->network.layer_count};
    struct parallel_collective list[PARALLEL_COLLECTIVES_MAX];
    struct job planned = *g->job;
    planned.parallel.carrying = PARALLEL_CARRIED_OUT;
    const uint32_t count =
        parallel_collectives(&planned, all, pass == PLAN_FORWARD ? PARALLEL_FORWARD : PARALLEL_BACKWARD, list);
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t found = take_exchanges(g, rank, &list[i]);
        if (found == list[i].count || rank->wrong[0] != '\0') continue;
        snprintf(rank->wrong, sizeof rank->wrong, "pass %u exchanges %u bytes %u times (expected %u)", pass,
                 (unsigned)list[i].bytes, (unsigned)found, list[i].count);
    }
    const uint64_t more = unit_group_take(g->exchange, rank->split.rank, COLLECTIVE_ALL_REDUCE, 0).count;
    if (more > 0 && rank->wrong[0] == '\0')
        snprintf(rank->wrong, sizeof rank->wrong, "pass %u has %u exchanges that are not planned", pass,
                 (unsigned)more);
}

static void pass_over(const struct group *g, struct rank *rank, uint32_t pass, uint32_t step, uint32_t b)
{
    const struct chunk_tables *tables = &rank->tables;
    struct chunk_arguments a = {.job = g->job, .tables = tables, .split = rank->splits ? &rank->split : NULL,
                                .pass = pass,
                                .minibatch = step, .microbatch = {.alone = true, .adds = b > 0, .index = b},
                                .state = rank->state, .batch = g->batches[step], .workspace = rank->workspace,
                                .activations = rank->kept[b]};
    memset(rank->workspace, 0xff, tables->memory.workspace_bytes);
    if (pass != PLAN_FORWARD) {
        a.table = rank->state;
        a.gradient = rank->gradient;
        a.table_gradient = chunk_table_gradient(tables, rank->gradient);
        a.loss = &rank->losses[step];
    }
    chunk_compute(rank->kernels, &a);
    if (rank->splits && pass != PLAN_UPDATE) check_exchanges(g, rank, pass);
}

struct call {
    struct group *group;
    uint32_t rank;
};

static void *train(void *pointer)
{
    const struct call *call = pointer;
    struct group *g = call->group;
    struct rank *rank = &g->ranks[call->rank];
    kernels_host_attach(rank->kernels);
    for (uint32_t step = 0; step < STEPS; step++) {
        for (uint32_t b = 0; b < MICROBATCHES; b++) pass_over(g, rank, PLAN_FORWARD, step, b);
        for (uint32_t b = 0; b < MICROBATCHES; b++) pass_over(g, rank, PLAN_BACKWARD, step, b);
        if (step == 0) memcpy(g->first_gradients[call->rank], rank->gradient, rank->tables.memory.gradient_bytes);
        pass_over(g, rank, PLAN_UPDATE, step, 0);
    }
    return NULL;
}

static void train_all(struct group *g)
{
    pthread_t threads[RANKS_MAX];
    struct call calls[RANKS_MAX];
    for (uint32_t r = 0; r < g->members; r++) {
        calls[r] = (struct call){g, r};
        if (pthread_create(&threads[r], NULL, train, &calls[r]) != 0) abort();
    }
    for (uint32_t r = 0; r < g->members; r++) pthread_join(threads[r], NULL);
    for (uint32_t r = 0; r < g->members; r++)
        if (g->ranks[r].wrong[0] != '\0') fail_msg("%s", g->ranks[r].wrong);
}

/* --- tensors ---------------------------------------------------------------------------------- */

/* Calls `each` for every tensor, with its number and its share. */
typedef void each_tensor(struct group *whole, struct group *parts, uint32_t index, const struct tensor_share *share,
                         const char *name);

static void walk_tensors(struct group *whole, struct group *parts, each_tensor *each)
{
    uint32_t index = 0;
    for (uint64_t layer = 0; layer < whole->job->network.layer_count; layer++) {
        struct tensor_spec specs[LAYER_TENSORS_MAX], slices[LAYER_TENSORS_MAX];
        const uint32_t count = network_layer_tensors(&whole->job->network, layer, specs);
        assert_int_equal(network_layer_tensors(&parts->ranks[0].tables.job->network, layer, slices), count);
        for (uint32_t i = 0; i < count; i++) {
            const struct tensor_share share = tensor_share_of(&specs[i], &slices[i], 0);
            each(whole, parts, index++, &share, specs[i].name);
        }
    }
}

static void *value_of(const struct rank *rank, uint32_t index, enum state_part part)
{
    const struct state_tables *tables = &rank->tables.state;
    return rank->state + tables->layout.parts[part].offset_bytes + tables->parts[part].entries[index].offset_bytes;
}

static bool is_half(const struct group *g)
{
    return g->job->precision == PRECISION_BF16;
}

static bool is_frozen(const struct group *g, uint32_t index)
{
    return g->ranks[0].tables.state.parts[STATE_FROZEN].entries[index].bytes > 0;
}

/* Returns the part of the state with trained weights in fp32. */
static enum state_part full_part(const struct group *g)
{
    return is_half(g) ? STATE_MASTER : STATE_WEIGHTS;
}

/* Returns the part with weights as passes read them. */
static enum state_part read_part(const struct group *g, uint32_t index)
{
    return is_frozen(g, index) ? STATE_FROZEN : STATE_WEIGHTS;
}

static void init_whole(struct group *whole, struct group *parts, uint32_t index, const struct tensor_share *share,
                       const char *name)
{
    (void)parts;
    const uint64_t count = share->outer * share->joined * share->size * share->inner;
    const bool ones = strstr(name, "ln_") || strstr(name, "norm") || strstr(name, "Norm");
    const bool half = is_half(whole), frozen = is_frozen(whole, index);
    float *values = value_of(&whole->ranks[0], index, frozen ? STATE_FROZEN : full_part(whole));
    bf16 *rounded = value_of(&whole->ranks[0], index, read_part(whole, index));
    for (uint64_t i = 0; i < count; i++) {
        const float value =
            (float)(random_unit(17 + index, i) - 0.5) * 0.4f + (ones && strstr(name, "weight") ? 1.0f : 0);
        if (!half || !frozen) values[i] = value;
        if (half) rounded[i] = bf16_nearest(value);
    }
}

static struct tensor_range whole_part(const struct tensor_share *share)
{
    return (struct tensor_range){0, share->outer * share->joined * share->part * share->inner};
}

static void init_part(struct group *whole, struct group *parts, uint32_t index, const struct tensor_share *share,
                      const char *name)
{
    const enum state_part full = full_part(whole), read = read_part(whole, index);
    (void)name;
    for (uint32_t r = 0; r < parts->members; r++) {
        if (is_half(whole) && !is_frozen(whole, index))
            tensor_share_cut(share, r, sizeof(float), whole_part(share), value_of(&parts->ranks[r], index, full),
                             value_of(&whole->ranks[0], index, full));
        tensor_share_cut(share, r, is_half(whole) ? sizeof(bf16) : sizeof(float), whole_part(share),
                         value_of(&parts->ranks[r], index, read), value_of(&whole->ranks[0], index, read));
    }
}

/* Returns how far a group may be from one device, relatively. */
static double tolerance_of(const struct group *g)
{
    return g->job->precision == PRECISION_BF16 ? 5e-2 : 1e-5;
}

/* Compares a tensor of the group with one device's: the norm of the difference. */
static void compare(const char *what, const char *name, const struct tensor_share *share, const float *whole,
                    const float *const *parts, uint32_t members, double tolerance)
{
    const uint64_t count = share->outer * share->joined * share->size * share->inner;
    float *joined = allocate(count * sizeof *joined);
    double difference = 0, norm = 0;
    for (uint32_t r = 0; r < (share->cut ? members : 1); r++)
        tensor_share_join(share, r, sizeof *joined, whole_part(share), parts[r], joined);
    for (uint64_t i = 0; i < count; i++) {
        difference += pow((double)joined[i] - (double)whole[i], 2);
        norm += pow((double)whole[i], 2);
    }
    /* a bias of keys has a gradient of nothing but rounding */
    if (!(sqrt(difference) <= tolerance * (sqrt(norm) + 1e-2)))
        fail_msg("%s of %s differs by %g of %g", what, name, sqrt(difference), sqrt(norm));
    for (uint32_t r = 1; r < members && !share->cut; r++)
        if (memcmp(parts[r], parts[0], count * sizeof *joined) != 0)
        fail_msg("%s of %s: rank %u has other bits", what, name, r);
    free(joined);
}

static void compare_weights(struct group *whole, struct group *parts, uint32_t index, const struct tensor_share *share,
                            const char *name)
{
    const float *found[RANKS_MAX];
    if (is_frozen(whole, index)) return;
    for (uint32_t r = 0; r < parts->members; r++) found[r] = value_of(&parts->ranks[r], index, full_part(parts));
    compare("the weight", name, share, value_of(&whole->ranks[0], index, full_part(whole)), found, parts->members,
            tolerance_of(whole));
}

static void compare_gradients(struct group *whole, struct group *parts, uint32_t index,
                              const struct tensor_share *share, const char *name)
{
    const float *found[RANKS_MAX];
    const struct memory_table *own = &whole->ranks[0].tables.parameters;
    if (is_frozen(whole, index)) return;
    for (uint32_t r = 0; r < parts->members; r++) {
        const struct memory_table *slice = &parts->ranks[r].tables.parameters;
        found[r] = parts->first_gradients[r] + slice->entries[index].offset_bytes / sizeof(float);
    }
    compare("the gradient", name, share, whole->first_gradients[0] + own->entries[index].offset_bytes / sizeof(float),
            found, parts->members, tolerance_of(whole));
}

/* --- cases ------------------------------------------------------------------------------------ */

/* A case's job apart from its tensor group. */
struct about {
    const char *config;
    uint32_t precision, recompute;
    uint64_t rank; /* of adapters of all linear layers; 0: all is trained */
};

static void make_job(struct job_set *jobs, const struct about *about, uint32_t tensor)
{
    const uint32_t precision = about->precision, recompute = about->recompute;
    const char *const config = about->config;
    test_network_jobs(jobs, 1, config, STEPS);
    struct job *job = &jobs->jobs[0];
    job->microbatch = 2;
    job->microbatches = MICROBATCHES;
    job->optimizer.kind = OPTIMIZER_SGD;
    job->optimizer.learning_rate = 0.05;
    job->parallel = (struct parallel){.tensor = tensor, .data = 1, .pipeline = 1, .prefetch = 1, .chunks = 1,
                                      .recompute = recompute};
    job->precision = precision;
    if (about->rank > 0) {
        job->adapter = (struct job_adapter){.rank = about->rank, .alpha = 6, .all_linear = true};
        support_train_only(job, &jobs->arena);
        assert_int_equal(parallel_check(job, &(struct error){0}), STATUS_OK);
    }
    job->parallel.sequence = (precision == PRECISION_BF16 || about->rank > 0) && recompute == RECOMPUTE_FULL &&
                             parallel_divides_tokens(job, tensor);
}

static void make_trained(struct group *g, struct group *whole, const struct job *job, struct arena *arena)
{
    make_group(g, job, arena);
    for (uint32_t r = 0; r < g->members; r++) memset(g->ranks[r].state, 0, g->ranks[r].tables.memory.state_bytes);
    walk_tensors(whole ? whole : g, g, whole ? init_part : init_whole);
    if (!whole) return; /* trained when its values were copied */
    train_all(g);
}

static void check_case(const struct about *about, uint32_t tensor)
{
    struct job_set alone, shared;
    struct arena arena = {0};
    struct group whole, parts, again;
    make_job(&alone, about, 1);
    make_job(&shared, about, tensor);
    make_trained(&whole, NULL, &alone.jobs[0], &arena);
    make_trained(&parts, &whole, &shared.jobs[0], &arena);
    make_trained(&again, &whole, &shared.jobs[0], &arena);
    train_all(&whole);
    walk_tensors(&whole, &parts, compare_gradients);
    walk_tensors(&whole, &parts, compare_weights);
    for (uint32_t s = 0; s < STEPS; s++)
        for (uint32_t r = 0; r < tensor; r++) {
            const double wanted = whole.ranks[0].losses[s], found = parts.ranks[r].losses[s];
            if (!(fabs(found / wanted - 1) <= tolerance_of(&whole)))
                fail_msg("loss %u is %.9g (expected %.9g)", s, found, wanted);
            assert_memory_equal(&found, &parts.ranks[0].losses[s], sizeof found);
        }
    for (uint32_t r = 0; r < tensor; r++) {
        assert_memory_equal(parts.ranks[r].state, again.ranks[r].state, parts.ranks[r].tables.memory.state_bytes);
        assert_memory_equal(parts.ranks[r].losses, again.ranks[r].losses, sizeof again.ranks[r].losses);
    }
    free_group(&whole);
    free_group(&parts);
    free_group(&again);
    arena_release(&arena);
    job_set_release(&alone);
    job_set_release(&shared);
}

static void test_one_device(void **state)
{
    (void)state;
    static const uint32_t recompute[] = {RECOMPUTE_NONE, RECOMPUTE_SELECTIVE, RECOMPUTE_FULL, RECOMPUTE_STAGE};
    for (size_t c = 0; c < ARRAY_COUNT(configs); c++)
        for (size_t way = 0; way < ARRAY_COUNT(recompute); way++)
            for (uint32_t tensor = 2; tensor <= RANKS_MAX; tensor++) {
                print_message("%.60s recompute %u, %u ranks\n", configs[c], recompute[way], tensor);
                check_case(&(struct about){configs[c], PRECISION_FP32, recompute[way], 0}, tensor);
            }
}

static void test_one_device_in_16_bits(void **state)
{
    (void)state;
    for (uint32_t c = 0; c < ARRAY_COUNT(configs); c++) {
        print_message("%.60s in 16 bits\n", configs[c]);
        check_case(&(struct about){configs[c], PRECISION_BF16, RECOMPUTE_NONE, 0}, 2 + c % 3);
        check_case(&(struct about){configs[c], PRECISION_BF16, RECOMPUTE_FULL, 0}, 2 + c % 2 * 2);
    }
}

static void test_adapters(void **state)
{
    (void)state;
    for (uint32_t c = 0; c < ARRAY_COUNT(configs); c++) {
        if (strstr(configs[c], "bert") || strstr(configs[c], "vit")) continue;
        print_message("%.60s with adapters\n", configs[c]);
        for (uint32_t tensor = 2; tensor <= RANKS_MAX; tensor++)
            check_case(&(struct about){configs[c], PRECISION_FP32, RECOMPUTE_NONE, 1 + tensor}, tensor);
        check_case(&(struct about){configs[c], PRECISION_FP32, RECOMPUTE_FULL, 3}, 2 + c % 2 * 2);
        check_case(&(struct about){configs[c], PRECISION_BF16, RECOMPUTE_NONE, 5}, 2 + c % 3);
        check_case(&(struct about){configs[c], PRECISION_BF16, RECOMPUTE_FULL, 3}, 2 + c % 2 * 2);
    }
}

/* --- sums of 16 bits -------------------------------------------------------------------------- */

enum { SUMMED_MEMBERS = 3, SUMMED_MOST = 20000 };

struct summing {
    struct unit_group *group;
    uint32_t rank;
    uint64_t count;
    bf16 *values;
};

static void *sum_up(void *argument)
{
    const struct summing *const one = argument;
    unit_group_sum_numbers(one->group, one->rank, one->values, one->count, sizeof(bf16));
    return NULL;
}

/* They are added up in fp32, in the order of members, and rounded once, also where slices end within a line. */
static void sums_of_16_bits_are_rounded_once(void **state)
{
    (void)state;
    static const uint64_t counts[] = {1, 31, 33, 97, 8191, SUMMED_MOST};
    struct error err = {0};
    struct unit_group *group;
    if (unit_group_create(SUMMED_MEMBERS, true, false, &group, &err)) fail_msg("%s", err.text);
    for (size_t c = 0; c < ARRAY_COUNT(counts); c++) {
        struct summing all[SUMMED_MEMBERS];
        pthread_t threads[SUMMED_MEMBERS];
        bf16 *const wanted = allocate(counts[c] * sizeof *wanted);
        for (uint32_t r = 0; r < SUMMED_MEMBERS; r++)
            all[r] = (struct summing){group, r, counts[c], allocate(counts[c] * sizeof *wanted)};
        for (uint64_t i = 0; i < counts[c]; i++) {
            float sum = 0;
            for (uint32_t r = 0; r < SUMMED_MEMBERS; r++) {
                all[r].values[i] = bf16_nearest((float)random_unit(5 + r, i) - 0.5f);
                sum += bf16_widen(all[r].values[i]);
            }
            wanted[i] = bf16_nearest(sum);
        }
        for (uint32_t r = 0; r < SUMMED_MEMBERS; r++)
            assert_int_equal(pthread_create(&threads[r], NULL, sum_up, &all[r]), 0);
        for (uint32_t r = 0; r < SUMMED_MEMBERS; r++) {
            assert_int_equal(pthread_join(threads[r], NULL), 0);
            assert_memory_equal(all[r].values, wanted, counts[c] * sizeof *wanted);
        }
        for (uint32_t r = 0; r < SUMMED_MEMBERS; r++) free(all[r].values);
        free(wanted);
    }
    unit_group_destroy(group);
}

/* --- waits ------------------------------------------------------------------------------------ */

enum { LATE_TIMES = 10, LATE_US = 10000 };

struct late_rank {
    struct unit_group *group;
    uint32_t rank;
};

static void *come_late(void *argument)
{
    const struct late_rank *const late = argument;
    float values[16] = {1};
    for (uint32_t i = 0; i < LATE_TIMES; i++) {
        if (late->rank == 1) usleep(LATE_US);
        unit_group_sum(late->group, late->rank, values, 16);
    }
    return NULL;
}

/* The first member waits for the second one, which sleeps before each exchange. */
static void waits_are_counted_apart(void **state)
{
    (void)state;
    struct error err = {0};
    struct late_rank ranks[2];
    pthread_t threads[2];
    struct unit_group *group;
    if (unit_group_create(2, true, false, &group, &err)) fail_msg("%s", err.text);
    for (uint32_t r = 0; r < 2; r++) {
        ranks[r] = (struct late_rank){group, r};
        assert_int_equal(pthread_create(&threads[r], NULL, come_late, &ranks[r]), 0);
    }
    for (uint32_t r = 0; r < 2; r++) assert_int_equal(pthread_join(threads[r], NULL), 0);
    const double all_s = unit_group_exchanged_s(group, 0);
    const struct unit_group_seconds first = unit_group_take(group, 0, COLLECTIVE_ALL_REDUCE, 0),
                                    second = unit_group_take(group, 1, COLLECTIVE_ALL_REDUCE, 64);
    assert_true(first.waited_s > LATE_TIMES * LATE_US * 1e-6 / 2);
    assert_true(second.waited_s < first.waited_s);
    assert_true(first.moved_s > 0 && second.moved_s > 0);
    assert_true(fabs(first.waited_s + first.moved_s - all_s) < 1e-9);
    assert_true(unit_group_exchanged_s(group, 0) < 1e-12);
    unit_group_destroy(group);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(waits_are_counted_apart),
        cmocka_unit_test(sums_of_16_bits_are_rounded_once),
        cmocka_unit_test(test_one_device),
        cmocka_unit_test(test_one_device_in_16_bits), cmocka_unit_test(test_adapters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
