/* label: medium
 * Chunks of pipelines have the bits of one device: for every family, cut, number of microbatches, way to keep
 * activations and precision, all weights and moments after some steps, and all losses.
 *
 * The reference computes the embedding, then all other layers, over all microbatches (unit_compute()). The pipeline
 * computes one microbatch after the other over its chunks (chunk_compute()), and adds up the gradients of the two
 * copies of a tied table as a JOIN does. Backward passes in two units are over all microbatches twice. Buffers that a
 * pass must not read hold NaN.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "base/size.h"
#include "exec/network/chunk.h"
#include "models/job/parallel_memory.h"
#include "tests/support/exec/support_batch.h"
#include "tests/support/planner/support_planner.h"

enum { STEPS = 3, CHUNKS_MAX = 8, MICROBATCHES_MAX = 4 };

static const char *const configs[] = {
    "{\"model_type\": \"gpt2\", \"n_layer\": 3, \"n_embd\": 16, \"n_head\": 2, \"n_positions\": 16, "
    "\"vocab_size\": 37}",
    "{\"model_type\": \"gpt2\", \"n_layer\": 3, \"n_embd\": 16, \"n_head\": 2, \"n_positions\": 16, "
    "\"vocab_size\": 37, \"tie_word_embeddings\": false}",
    "{\"model_type\": \"llama\", \"num_hidden_layers\": 3, \"hidden_size\": 16, \"num_attention_heads\": 4, "
    "\"num_key_value_heads\": 2, \"intermediate_size\": 24, \"max_position_embeddings\": 16, \"vocab_size\": 37, "
    "\"tie_word_embeddings\": true}",
    "{\"model_type\": \"bert\", \"num_hidden_layers\": 3, \"hidden_size\": 16, \"num_attention_heads\": 2, "
    "\"intermediate_size\": 24, \"max_position_embeddings\": 16, \"vocab_size\": 37, \"type_vocab_size\": 2, "
    "\"architectures\": [\"BertForMaskedLM\"]}",
    "{\"model_type\": \"vit\", \"num_hidden_layers\": 3, \"hidden_size\": 16, \"num_attention_heads\": 2, "
    "\"intermediate_size\": 24, \"image_size\": 8, \"patch_size\": 4, \"num_labels\": 5}",
};

static const struct kernels *kernels;

static int make_kernels(void **state)
{
    (void)state;
    static struct kernels *made;
    struct error err = {0};
    if (kernels_host_create(1, &made, &err)) fail_msg("%s", err.text);
    kernels = made;
    return 0;
}

static int destroy_kernels(void **state)
{
    (void)state;
    kernels_host_destroy((struct kernels *)(uintptr_t)kernels);
    return 0;
}

static void *allocate(uint64_t bytes)
{
    void *memory = aligned_alloc(MEMORY_ALIGNMENT, size_align(bytes > 0 ? bytes : 1, MEMORY_ALIGNMENT));
    if (!memory) abort();
    memset(memory, 0xff, bytes); /* NaN, also in 16 bits */
    return memory;
}

/* --- states ----------------------------------------------------------------------------------- */

static void fill_values(const struct state_tables *tables, void *state, uint64_t seed)
{
    memset(state, 0, tables->layout.bytes);
    for (uint32_t i = 0; i < tables->parts[STATE_WEIGHTS].count; i++) {
        const struct memory_entry *weights = &tables->parts[STATE_WEIGHTS].entries[i];
        const struct memory_entry *master = &tables->parts[STATE_MASTER].entries[i];
        const bool rounded = master->bytes > 0;
        const uint64_t count = (rounded ? master->bytes : weights->bytes) / sizeof(float);
        for (uint64_t k = 0; k < count; k++) {
            const float value = (float)(random_unit(seed, i * 1000003 + k) - 0.5) * 0.4f + (count <= 16 ? 0.5f : 0);
            if (!rounded) {
                ((float *)(void *)((char *)state + weights->offset_bytes))[k] = value;
                continue;
            }
            ((float *)(void *)((char *)state + tables->layout.parts[STATE_MASTER].offset_bytes +
                               master->offset_bytes))[k] = value;
            ((bf16 *)(void *)((char *)state + weights->offset_bytes))[k] = bf16_nearest(value);
        }
    }
}

/* Returns the same tensor's index in another table. */
static uint32_t same_tensor(const struct memory_table *in, const struct memory_entry *entry)
{
    for (uint32_t i = 0; i < in->count; i++)
        if (in->entries[i].layer == entry->layer && strcmp(in->entries[i].name, entry->name) == 0) return i;
    fail_msg("no tensor %s of layer %d", entry->name, (int)entry->layer);
    return 0;
}

/* Calls `each` for every part of every tensor of a piece: its place there and in the whole. */
typedef void each_part(void *piece, void *whole, uint64_t bytes, const char *name);

static void walk_piece(const struct state_tables *piece, void *piece_state, const struct state_tables *whole,
                       void *whole_state, each_part *each)
{
    for (uint32_t part = 0; part < STATE_PARTS; part++)
        for (uint32_t i = 0; i < piece->parts[part].count; i++) {
            const struct memory_entry *entry = &piece->parts[part].entries[i];
            const uint32_t at = same_tensor(&whole->parts[STATE_WEIGHTS], &piece->parts[STATE_WEIGHTS].entries[i]);
            each((char *)piece_state + piece->layout.parts[part].offset_bytes + entry->offset_bytes,
                 (char *)whole_state + whole->layout.parts[part].offset_bytes +
                     whole->parts[part].entries[at].offset_bytes,
                 entry->bytes, entry->name);
        }
}

static void copy_part(void *piece, void *whole, uint64_t bytes, const char *name)
{
    (void)name;
    memcpy(piece, whole, bytes);
}

static void compare_part(void *piece, void *whole, uint64_t bytes, const char *name)
{
    if (memcmp(piece, whole, bytes) != 0) fail_msg("%s has other bits", name);
}

/* --- one device ------------------------------------------------------------------------------- */

struct reference {
    const struct job *job;
    struct plan_shard shards[2];
    struct unit_tables tables[2];
    void *states[2];
    float *boundary, *d_boundary, *workspace, *table_gradient;
};

static uint64_t largest_workspace(const struct unit_tables *tables)
{
    uint64_t bytes = 0;
    for (uint32_t pass = 0; pass < 3; pass++)
        for (uint32_t how = 0; how < UNIT_WAYS; how++)
            if (tables->workspace[pass][how].bytes > bytes) bytes = tables->workspace[pass][how].bytes;
    return bytes;
}

static void make_reference(struct reference *r, const struct job *job, struct arena *arena)
{
    const struct network *n = &job->network;
    struct error err = {0};
    uint64_t workspace = 0;
    const uint64_t boundary = memory_boundary_bytes(n, 0, job_samples(job), job->sequence, PRECISION_FP32);
    *r = (struct reference){.job = job, .shards = {{0, 0, 1, false}, {0, 1, n->layer_count - 1, false}}};
    for (int s = 0; s < 2; s++) {
        if (unit_tables_init(job, &r->shards[s], arena, &r->tables[s], &err)) fail_msg("%s", err.text);
        r->states[s] = allocate(r->tables[s].state.layout.bytes);
        fill_values(&r->tables[s].state, r->states[s], 7 + (uint64_t)s);
        if (largest_workspace(&r->tables[s]) > workspace) workspace = largest_workspace(&r->tables[s]);
    }
    r->boundary = allocate(boundary);
    r->d_boundary = allocate(boundary);
    r->workspace = allocate(workspace);
    r->table_gradient = n->tied_head ? allocate(n->vocabulary * n->width * sizeof(float)) : NULL;
}

static void free_reference(struct reference *r)
{
    free(r->states[0]);
    free(r->states[1]);
    free(r->boundary);
    free(r->d_boundary);
    free(r->workspace);
    free(r->table_gradient);
}

static double step_reference(struct reference *r, const int32_t *batch, uint64_t minibatch)
{
    double loss = NAN;
    struct unit_arguments a = {.job = r->job, .minibatch = minibatch, .batch = batch, .workspace = r->workspace,
                               .table_gradient = r->table_gradient};
    a.shard = &r->shards[0];
    a.tables = &r->tables[0];
    a.state = r->states[0];
    a.pass = PLAN_FORWARD;
    a.boundary_out = r->boundary;
    unit_compute(kernels, &a);
    struct unit_arguments last = a;
    last.shard = &r->shards[1];
    last.tables = &r->tables[1];
    last.state = r->states[1];
    last.pass = PLAN_LOSS;
    last.table = r->states[0];
    last.loss = &loss;
    last.boundary_in = r->boundary;
    last.boundary_out = NULL;
    last.gradient_out = r->d_boundary;
    unit_compute(kernels, &last);
    a.pass = PLAN_BACKWARD;
    a.boundary_out = NULL;
    a.gradient_in = r->d_boundary;
    unit_compute(kernels, &a);
    return loss;
}

/* --- a pipeline ------------------------------------------------------------------------------- */

struct stage {
    struct chunk_tables tables;
    char *state;
    float *gradient, *workspace;
    float *handover[MICROBATCHES_MAX];
    float *kept[MICROBATCHES_MAX], *boundary[MICROBATCHES_MAX], *d_boundary[MICROBATCHES_MAX]; /* of its input */
};

struct line {
    const struct job *job;
    uint32_t chunks;
    struct stage stages[CHUNKS_MAX];
};

static void make_line(struct line *line, const struct job *job, const struct reference *r, struct arena *arena)
{
    struct error err = {0};
    *line = (struct line){.job = job, .chunks = parallel_chunks(&job->parallel)};
    for (uint32_t c = 0; c < line->chunks; c++) {
        struct stage *stage = &line->stages[c];
        struct chunk_memory *m = &stage->tables.memory;
        if (chunk_tables_init(job, 0, parallel_layers(job, c), arena, &stage->tables, &err)) fail_msg("%s", err.text);
        stage->state = allocate(m->state_bytes);
        stage->gradient = allocate(m->gradient_bytes);
        stage->workspace = allocate(m->workspace_bytes);
        for (uint64_t b = 0; b < job->microbatches; b++) {
            const uint64_t bytes = memory_boundary_bytes(&job->network, 0, job->microbatch, job->sequence,
                                                         PRECISION_FP32);
            stage->kept[b] = m->activation_bytes > 0 ? allocate(m->activation_bytes) : NULL;
            stage->handover[b] = m->handover_bytes > 0 ? allocate(m->handover_bytes) : NULL;
            stage->boundary[b] = c > 0 ? allocate(bytes) : NULL;
            stage->d_boundary[b] = c > 0 ? allocate(bytes) : NULL;
        }
        for (uint32_t i = 0; i < m->piece_count; i++) {
            const int of = m->pieces[i].first == 0 ? 0 : 1;
            walk_piece(&stage->tables.units[i].state, stage->state, &r->tables[of].state,
                       r->states[of], copy_part);
        }
    }
}

/* Calls `each` for the rows of the head's copy of the table. */
static void walk_table(struct line *line, const struct reference *r, each_part *each)
{
    const struct stage *stage = &line->stages[line->chunks - 1];
    const struct chunk_memory *m = &stage->tables.memory;
    if (!m->copies_table) return;
    const struct state_layout copy = memory_state_rows(&line->job->network, m->table_rows, job_state_format(line->job));
    for (uint32_t part = 0; part < STATE_PARTS; part++)
        each(stage->state + m->table_state_offset + copy.parts[part].offset_bytes,
             (char *)r->states[0] + r->tables[0].state.layout.parts[part].offset_bytes, copy.parts[part].bytes,
             "the head's copy of the table");
}

static void free_line(struct line *line)
{
    for (uint32_t c = 0; c < line->chunks; c++) {
        free(line->stages[c].state);
        free(line->stages[c].gradient);
        free(line->stages[c].workspace);
        for (uint64_t b = 0; b < line->job->microbatches; b++) {
            free(line->stages[c].kept[b]);
            free(line->stages[c].handover[b]);
            free(line->stages[c].boundary[b]);
            free(line->stages[c].d_boundary[b]);
        }
    }
}

static struct chunk_arguments pass_over(struct line *line, uint32_t c, uint32_t pass, uint64_t minibatch, uint32_t b)
{
    struct stage *stage = &line->stages[c], *next = c + 1 < line->chunks ? &line->stages[c + 1] : NULL;
    struct chunk_arguments a = {.job = line->job, .tables = &stage->tables, .pass = pass, .minibatch = minibatch,
                                .microbatch = {.alone = true, .adds = b > 0, .index = b}, .state = stage->state,
                                .workspace = stage->workspace, .activations = stage->kept[b],
                                .handover = pass == PLAN_FORWARD ? NULL : stage->handover[b],
                                .boundary_in = stage->boundary[b]};
    memset(stage->workspace, 0xff, stage->tables.memory.workspace_bytes);
    if (pass == PLAN_FORWARD) {
        a.boundary_out = next ? next->boundary[b] : NULL;
        return a;
    }
    const struct stage *last = &line->stages[line->chunks - 1];
    a.table = line->stages[0].state;
    a.table_gradient = chunk_table_gradient(&last->tables, last->gradient);
    a.gradient = stage->gradient;
    a.gradient_in = next ? next->d_boundary[b] : NULL;
    a.gradient_out = stage->d_boundary[b];
    return a;
}

/* Adds up both ends' gradients of a tied table. */
static void join(struct line *line)
{
    struct stage *first = &line->stages[0], *last = &line->stages[line->chunks - 1];
    const struct chunk_memory *m = &last->tables.memory;
    if (!m->copies_table) return;
    float *other = last->gradient + m->table_gradient_offset / sizeof(float);
    const int64_t count = (int64_t)(m->table_rows * line->job->network.width);
    kernels->add(kernels, first->gradient, first->gradient, other, count);
    memcpy(other, first->gradient, (size_t)count * sizeof(float));
}

static double step_line(struct line *line, const int32_t *batch, uint64_t minibatch)
{
    double loss = NAN;
    const uint32_t microbatches = (uint32_t)line->job->microbatches;
    for (uint32_t b = 0; b < microbatches; b++) /* all forward first, as in gpipe */
        for (uint32_t c = 0; c < line->chunks; c++) {
            struct chunk_arguments a = pass_over(line, c, PLAN_FORWARD, minibatch, b);
            a.batch = batch;
            chunk_compute(kernels, &a);
        }
    const bool halves = pipeline_has_halves(line->job->parallel.schedule);
    for (uint32_t half = 0; half < (halves ? 2 : 1); half++)
        for (uint32_t b = 0; b < microbatches; b++)
            for (uint32_t c = line->chunks; c-- > 0;) {
                const uint32_t pass = !halves ? PLAN_BACKWARD : half == 0 ? PLAN_BACKWARD_INPUT : PLAN_BACKWARD_WEIGHT;
                struct chunk_arguments a = pass_over(line, c, pass, minibatch, b);
                a.batch = batch;
                a.loss = half == 0 ? &loss : NULL;
                if (half == 1) a.gradient_out = a.boundary_out = NULL;
                chunk_compute(kernels, &a);
            }
    join(line);
    for (uint32_t c = 0; c < line->chunks; c++) {
        struct chunk_arguments a = pass_over(line, c, PLAN_UPDATE, minibatch, 0);
        chunk_compute(kernels, &a);
    }
    return loss;
}

/* --- cases ------------------------------------------------------------------------------------ */

static void check_case(const struct job *job)
{
    struct arena arena = {0};
    struct reference reference;
    struct line line;
    int32_t *batch = allocate(job_batch_bytes(job));
    make_reference(&reference, job, &arena);
    make_line(&line, job, &reference, &arena);
    walk_table(&line, &reference, copy_part);
    for (uint64_t minibatch = 0; minibatch < STEPS; minibatch++) {
        support_batch_fill(job, batch, minibatch);
        const double want = step_reference(&reference, batch, minibatch), got = step_line(&line, batch, minibatch);
        assert_true(isfinite(want));
        if (memcmp(&got, &want, sizeof got) != 0) fail_msg("%s: cut %d, recompute %d, %d microbatches, step %d: %.17g "
                                                           "not %.17g", job->network.name, (int)job->parallel.pipeline,
                                                           (int)job->parallel.recompute, (int)job->microbatches,
                                                           (int)minibatch, got, want);
    }
    for (uint32_t c = 0; c < line.chunks; c++) {
        struct stage *stage = &line.stages[c];
        const struct chunk_memory *m = &stage->tables.memory;
        for (uint32_t i = 0; i < m->piece_count; i++) {
            const int of = m->pieces[i].first == 0 ? 0 : 1;
            walk_piece(&stage->tables.units[i].state, stage->state,
                       &reference.tables[of].state, reference.states[of], compare_part);
        }
    }
    walk_table(&line, &reference, compare_part);
    free_line(&line);
    free_reference(&reference);
    free(batch);
    arena_release(&arena);
}

/* Stages, chunks on each and schedule, in which the three blocks are cut. */
static const uint32_t cuts[][3] = {{1, 1, PIPELINE_GPIPE}, {2, 1, PIPELINE_GPIPE}, {3, 1, PIPELINE_GPIPE},
                                   {1, 3, PIPELINE_GPIPE}, {1, 1, PIPELINE_ZB_H1}, {2, 1, PIPELINE_ZB_H1},
                                   {3, 1, PIPELINE_ZB_H2}, {1, 2, PIPELINE_ZB_V}};

static void check_config(const char *config, uint32_t precision, uint32_t optimizer)
{
    for (size_t cut = 0; cut < ARRAY_COUNT(cuts); cut++)
        for (uint32_t recompute = RECOMPUTE_NONE; recompute < RECOMPUTE_COUNT; recompute++)
            for (uint64_t microbatches = 1; microbatches <= MICROBATCHES_MAX; microbatches += 3) {
                struct job_set jobs;
                test_network_jobs(&jobs, 1, config, STEPS);
                struct job *job = &jobs.jobs[0];
                job->microbatch = 2;
                job->microbatches = microbatches;
                job->precision = precision;
                job->optimizer.kind = optimizer;
                job->optimizer.learning_rate = 0.01;
                job->parallel = (struct parallel){.tensor = 1, .data = 1, .pipeline = cuts[cut][0], .prefetch = 1,
                                                  .chunks = cuts[cut][1], .schedule = cuts[cut][2],
                                                  .recompute = recompute};
                print_message("%.40s precision %d optimizer %d stages %d chunks %d recompute %d microbatches %d\n",
                              config, (int)precision, (int)optimizer, (int)cuts[cut][0], (int)cuts[cut][1],
                              (int)recompute, (int)microbatches);
                check_case(job);
                job_set_release(&jobs);
            }
}

static void test_bits_of_one_device(void **state)
{
    (void)state;
    for (size_t c = 0; c < ARRAY_COUNT(configs); c++) {
        check_config(configs[c], PRECISION_FP32, OPTIMIZER_ADAMW);
        check_config(configs[c], PRECISION_BF16_WEIGHTS, OPTIMIZER_ADAMW);
        check_config(configs[c], c % 2 ? PRECISION_BF16 : PRECISION_FP32, OPTIMIZER_SGD);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bits_of_one_device),
    };
    return cmocka_run_group_tests(tests, make_kernels, destroy_kernels);
}
