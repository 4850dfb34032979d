/*
 * T5 (models/network/network_t5.h): parameters of published models, tensors as a file's header lists them, FLOPs and
 * activations against closed forms, sequences of two lengths, refused models, and plans.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "base/size.h"
#include "models/job/memory.h"
#include "models/job/parallel_memory.h"
#include "models/job/parallel_work.h"
#include "models/network/network_t5.h"
#include "planner/capacity/feasibility_largest.h"
#include "planner/check/plan_check.h"
#include "planner/strategy/planner.h"
#include "tests/support/support_models.h"
#include "tests/support/support_seed.h"

static void parse(const char *text, struct arena *arena, struct network *out)
{
    struct error err = {0};
    if (support_network(text, arena, out, &err)) fail_msg("%s", err.text);
}

static void assert_near(double found, double expected)
{
    if (fabs(found - expected) > 1e-12 * expected) fail_msg("found %.17g, expected %.17g", found, expected);
}

static uint64_t shape_product(const struct tensor_spec *spec)
{
    uint64_t product = 1;
    for (uint32_t i = 0; i < spec->rank; i++) product *= spec->shape[i];
    return product;
}

/* --- parameters ------------------------------------------------------------------------------- */

/*
 * "keras": the figure "params" of keras-hub's t5_presets.py. "flan": a table of sizes in a public report of fine-tuning
 * Flan-T5, whose shapes are version 1.1's. "used": a constant that public scripts compare a loaded model with.
 * "recalled": from memory of the model's page, and equal to what the shapes give.
 */
static const struct {
    const char *name, *source;
    uint64_t parameters;
} published[] = {
    {"t5-small", "keras", 60506624},
    {"t5-base", "keras", 222903552},
    {"t5-large", "keras", 737668096},
    {"t5-3b", "keras", 2851598336},
    {"t5-11b", "recalled", 11307321344},
    {"t5-v1.1-base", "keras", 247577856},
    {"flan-t5-small", "flan", 76961152},
    {"flan-t5-base", "flan", 247577856},
    {"flan-t5-large", "flan", 783150080},
    {"flan-t5-xl", "flan", 2849757184},
    {"flan-t5-xxl", "flan", 11135332352},
    {"google/t5-v1_1-small", "flan", 76961152},
    {"google/mt5-small", "used", 300176768},
    {"google/mt5-base", "used", 582401280},
    {"google/mt5-large", "recalled", 1229581312},
    {"google/mt5-xl", "recalled", 3742619648},
    {"google/umt5-small", "recalled", 306601984},
    {"google/byt5-small", "used", 299637760},
    {"google/byt5-base", "recalled", 581653248},
};

static void published_models_have_their_parameters(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct error err = {0};
    struct network n;
    for (size_t i = 0; i < ARRAY_COUNT(published); i++) {
        if (network_find(published[i].name, &arena, &n, &err)) fail_msg("%s", err.text);
        if (network_parameters(&n) != published[i].parameters)
            fail_msg("%s has %" PRIu64 " parameters, found %" PRIu64 " (%s)", published[i].name,
                     published[i].parameters, network_parameters(&n), published[i].source);
    }
    arena_release(&arena);
}

/* As on the hub; the first one's is version 1.0's, without what later versions of the class wrote. */
static const char small_config[] =
    "{\"architectures\": [\"T5WithLMHeadModel\"], \"d_ff\": 2048, \"d_kv\": 64, \"d_model\": 512, "
    "\"decoder_start_token_id\": 0, \"dropout_rate\": 0.1, \"eos_token_id\": 1, \"initializer_factor\": 1.0, "
    "\"is_encoder_decoder\": true, \"layer_norm_epsilon\": 1e-06, \"model_type\": \"t5\", \"n_positions\": 512, "
    "\"num_heads\": 8, \"num_layers\": 6, \"output_past\": true, \"pad_token_id\": 0, "
    "\"relative_attention_num_buckets\": 32, \"vocab_size\": 32128}";
static const char byt5_large_config[] =
    "{\"architectures\": [\"T5ForConditionalGeneration\"], \"d_ff\": 3840, \"d_kv\": 64, \"d_model\": 1536, "
    "\"feed_forward_proj\": \"gated-gelu\", \"is_encoder_decoder\": true, \"layer_norm_epsilon\": 1e-06, "
    "\"model_type\": \"t5\", \"num_decoder_layers\": 12, \"num_heads\": 16, \"num_layers\": 36, "
    "\"relative_attention_num_buckets\": 32, \"tie_word_embeddings\": false, \"vocab_size\": 384}";
static const char mt5_small_config[] =
    "{\"architectures\": [\"MT5ForConditionalGeneration\"], \"d_ff\": 1024, \"d_kv\": 64, \"d_model\": 512, "
    "\"dense_act_fn\": \"gelu_new\", \"feed_forward_proj\": \"gated-gelu\", \"is_encoder_decoder\": true, "
    "\"is_gated_act\": true, \"layer_norm_epsilon\": 1e-06, \"model_type\": \"mt5\", \"num_decoder_layers\": 8, "
    "\"num_heads\": 6, \"num_layers\": 8, \"relative_attention_max_distance\": 128, "
    "\"relative_attention_num_buckets\": 32, \"tie_word_embeddings\": false, \"vocab_size\": 250112}";

/* From memory, as its presets are. */
static const char umt5_small_config[] =
    "{\"architectures\": [\"UMT5ForConditionalGeneration\"], \"d_ff\": 1024, \"d_kv\": 64, \"d_model\": 512, "
    "\"dense_act_fn\": \"gelu_new\", \"feed_forward_proj\": \"gated-gelu\", \"is_encoder_decoder\": true, "
    "\"is_gated_act\": true, \"layer_norm_epsilon\": 1e-06, \"model_type\": \"umt5\", \"num_decoder_layers\": 8, "
    "\"num_heads\": 6, \"num_layers\": 8, \"relative_attention_max_distance\": 128, "
    "\"relative_attention_num_buckets\": 32, \"scalable_attention\": true, \"tie_word_embeddings\": false, "
    "\"vocab_size\": 256384}";

static void presets_are_their_configurations(void **state)
{
    (void)state;
    static const struct {
        const char *preset, *config;
    } cases[] = {{"t5-small", small_config}, {"byt5-large", byt5_large_config}, {"mt5-small", mt5_small_config},
                 {"umt5-small", umt5_small_config}};
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct arena arena = {0};
        struct error err = {0};
        struct network n, preset;
        parse(cases[i].config, &arena, &n);
        if (network_find(cases[i].preset, &arena, &preset, &err)) fail_msg("%s", err.text);
        memcpy(n.name, preset.name, sizeof n.name);
        assert_memory_equal(&n, &preset, sizeof n);
        arena_release(&arena);
    }
}

static void networks_survive_writing(void **state)
{
    (void)state;
    static const char *const configs[] = {small_config, byt5_large_config, mt5_small_config, umt5_small_config};
    for (size_t i = 0; i < ARRAY_COUNT(configs); i++) {
        struct arena arena = {0};
        struct error err = {0};
        struct network n, again;
        parse(configs[i], &arena, &n);
        char *text = support_network_text(&n);
        if (support_network(text, &arena, &again, &err)) fail_msg("%s: %s", text, err.text);
        assert_memory_equal(&n, &again, sizeof n);
        free(text);
        arena_release(&arena);
    }
}

/* --- tensors ---------------------------------------------------------------------------------- */

/* A header as the hub's files have it: every tensor's name and shape, typed out by stack. */
struct header {
    struct {
        char name[96];
        uint64_t rows, columns; /* columns 0: a vector */
    } items[512];
    uint32_t count;
};

static void list(struct header *h, uint64_t rows, uint64_t columns, const char *format, ...) PRINTF_LIKE(4, 5);
static void list(struct header *h, uint64_t rows, uint64_t columns, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(h->items[h->count].name, sizeof h->items[0].name, format, arguments);
    va_end(arguments);
    h->items[h->count].rows = rows;
    h->items[h->count++].columns = columns;
}

struct header_shape {
    uint64_t width, inner, ff, heads, vocabulary, encoder, decoder;
    bool gated, tied, tables; /* of relative positions, in every block */
};

static void list_attention(struct header *h, const struct header_shape *s, const char *stack, uint64_t block, int layer,
                           const char *kind)
{
    for (const char *c = "qkv"; *c; c++)
        list(h, s->inner, s->width, "%s.block.%" PRIu64 ".layer.%d.%s.%c.weight", stack, block, layer, kind, *c);
    list(h, s->width, s->inner, "%s.block.%" PRIu64 ".layer.%d.%s.o.weight", stack, block, layer, kind);
    list(h, s->width, 0, "%s.block.%" PRIu64 ".layer.%d.layer_norm.weight", stack, block, layer);
}

static void list_stack(struct header *h, const struct header_shape *s, const char *stack, uint64_t blocks, bool crosses)
{
    for (uint64_t b = 0; b < (s->tables ? blocks : 1); b++)
        list(h, 32, s->heads, "%s.block.%" PRIu64 ".layer.0.SelfAttention.relative_attention_bias.weight", stack, b);
    list(h, s->width, 0, "%s.final_layer_norm.weight", stack);
    for (uint64_t b = 0; b < blocks; b++) {
        int last = crosses ? 2 : 1;
        list_attention(h, s, stack, b, 0, "SelfAttention");
        if (crosses) list_attention(h, s, stack, b, 1, "EncDecAttention");
        for (int w = 0; w < (s->gated ? 2 : 1); w++)
            list(h, s->ff, s->width, "%s.block.%" PRIu64 ".layer.%d.DenseReluDense.wi%s.weight", stack, b, last,
                 !s->gated ? "" : w == 0 ? "_0" : "_1");
        list(h, s->width, s->ff, "%s.block.%" PRIu64 ".layer.%d.DenseReluDense.wo.weight", stack, b, last);
        list(h, s->width, 0, "%s.block.%" PRIu64 ".layer.%d.layer_norm.weight", stack, b, last);
    }
}

static void check_header(const char *name, const struct header_shape *s)
{
    static struct header h;
    struct arena arena = {0};
    struct error err = {0};
    struct network n;
    struct tensor_spec specs[LAYER_TENSORS_MAX];
    uint64_t found = 0, elements = 0;
    h.count = 0;
    list(&h, s->vocabulary, s->width, "shared.weight");
    list_stack(&h, s, "encoder", s->encoder, false);
    list_stack(&h, s, "decoder", s->decoder, true);
    if (!s->tied) list(&h, s->vocabulary, s->width, "lm_head.weight");
    if (network_find(name, &arena, &n, &err)) fail_msg("%s", err.text);
    for (uint64_t layer = 0; layer < n.layer_count; layer++) {
        uint32_t count = network_layer_tensors(&n, layer, specs);
        for (uint32_t t = 0; t < count; t++, found++) {
            uint32_t at = 0;
            while (at < h.count && strcmp(h.items[at].name, specs[t].name) != 0) at++;
            if (at == h.count) fail_msg("%s has no '%s'", name, specs[t].name);
            assert_int_equal(specs[t].rank, h.items[at].columns ? 2 : 1);
            assert_int_equal(specs[t].shape[0], h.items[at].rows);
            if (specs[t].rank == 2) assert_int_equal(specs[t].shape[1], h.items[at].columns);
            assert_int_equal(specs[t].elements, shape_product(&specs[t]));
            elements += specs[t].elements;
        }
    }
    assert_int_equal(found, h.count);
    assert_int_equal(elements, network_parameters(&n));
    arena_release(&arena);
}

static void tensors_are_those_of_the_files(void **state)
{
    (void)state;
    check_header("t5-small", &(struct header_shape){512, 512, 2048, 8, 32128, 6, 6, false, true, false});
    check_header("t5-3b", &(struct header_shape){1024, 4096, 16384, 32, 32128, 24, 24, false, true, false});
    check_header("flan-t5-small", &(struct header_shape){512, 384, 1024, 6, 32128, 8, 8, true, false, false});
    check_header("umt5-small", &(struct header_shape){512, 384, 1024, 6, 256384, 8, 8, true, false, true});
    check_header("byt5-small", &(struct header_shape){1472, 384, 3584, 6, 384, 12, 4, true, false, false});
}

/* Each run of equal layers has equal layers, and is as long as it can be. */
static void equal_layers_are_equal(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct error err = {0};
    struct network n;
    static const uint64_t begins[] = {0, 1, 2, 13, 14, 17};
    if (network_find("byt5-small", &arena, &n, &err)) fail_msg("%s", err.text);
    uint32_t run = 0;
    for (uint64_t layer = 0, next; layer < n.layer_count; layer = next, run++) {
        next = network_alike_end(&n, layer);
        assert_int_equal(layer, begins[run]);
        for (uint64_t l = layer; l < next; l++) {
            assert_int_equal(network_alike_begin(&n, l), layer);
            assert_int_equal(network_alike_end(&n, l), next);
            assert_int_equal(network_layer_parameters(&n, l), network_layer_parameters(&n, layer));
        }
    }
    assert_int_equal(run, ARRAY_COUNT(begins));
    arena_release(&arena);
}

/* --- work ------------------------------------------------------------------------------------- */

static double pass_flops(const struct network *n, enum network_pass pass, uint64_t batch, uint64_t sequence)
{
    struct work_item items[LAYER_WORK_MAX];
    double sum = 0;
    for (uint64_t layer = 0; layer < n->layer_count; layer++)
        sum += work_flops(items, network_layer_work(n, layer, pass, batch, sequence, (struct state_format){0}, items));
    return sum;
}

/*
 * FLOPs forward of B samples of Te and Td tokens; I = H D, F' = 2 F, or 3 F with a gate:
 *
 *     encoder block   2 B Te C (4 I + F') + 4 B Te^2 I
 *     decoder block   2 B Td C (4 I + F') + 2 B Td^2 I          causal: half
 *                     + 2 B C I (2 Td + 2 Te) + 4 B Td Te I     cross: q and o of its rows, k and v of the encoder's
 *     head            2 B Td C V
 *
 * Backward twice that.
 */
static double closed_form(const struct network *n, double b, double te, double td)
{
    double c = (double)n->width, i = (double)(n->heads * n->head_width), f = (double)n->ff_width * (n->gated ? 3 : 2);
    double encoders = (double)n->encoder_blocks, decoders = (double)(n->blocks - n->encoder_blocks);
    double encoder = 2 * b * te * c * (4 * i + f) + 4 * b * te * te * i;
    double decoder = 2 * b * td * c * (4 * i + f) + 2 * b * td * td * i + 4 * b * c * i * (td + te) +
                     4 * b * td * te * i;
    return encoders * encoder + decoders * decoder + 2 * b * td * c * (double)n->vocabulary;
}

static void work_is_the_closed_form(void **state)
{
    (void)state;
    static const char *const names[] = {"t5-small", "flan-t5-base", "byt5-small"};
    static const uint64_t lengths[][2] = {{512, 512}, {512, 114}, {114, 512}, {391, 17}};
    for (size_t i = 0; i < ARRAY_COUNT(names) * ARRAY_COUNT(lengths); i++) {
        struct arena arena = {0};
        struct error err = {0};
        struct network n;
        const uint64_t *length = lengths[i % ARRAY_COUNT(lengths)];
        if (network_find(names[i / ARRAY_COUNT(lengths)], &arena, &n, &err) ||
            network_set_decoder(&n, length[0], length[1], &err))
            fail_msg("%s", err.text);
        double expected = closed_form(&n, 3, (double)length[0], (double)length[1]);
        assert_near(pass_flops(&n, PASS_FORWARD, 3, length[0]), expected);
        assert_near(pass_flops(&n, PASS_BACKWARD, 3, length[0]), 2 * expected);
        double halves = pass_flops(&n, PASS_INPUT, 3, length[0]) + pass_flops(&n, PASS_WEIGHT, 3, length[0]);
        assert_near(halves, 2 * expected);
        arena_release(&arena);
    }
}

static uint64_t greatest_divisor(uint64_t a, uint64_t b)
{
    return b == 0 ? a : greatest_divisor(b, a % b);
}

/* Squares cover a rectangle, and their sides are a + b - gcd, unless there are too many sizes of them. */
static void squares_cover_rectangles(void **state)
{
    (void)state;
    uint64_t seed = support_seed("squares");
    uint32_t exact = 0;
    for (uint64_t i = 0; i < 20000; i++) {
        struct network_square squares[T5_SQUARES_MAX];
        uint64_t key = random_mix(seed ^ i), most = i % 2 ? 5000 : NETWORK_POSITIONS_MAX;
        uint64_t a = 1 + key % most, b = 1 + (key >> 32) % most, area = 0, sides = 0;
        uint32_t count = network_squares(a, b, squares);
        assert_in_range(count, 1, T5_SQUARES_MAX);
        for (uint32_t s = 0; s < count; s++) {
            area += squares[s].count * squares[s].side * squares[s].side;
            sides += squares[s].count * squares[s].side;
        }
        if (area == a * b) {
            assert_int_equal(sides, a + b - greatest_divisor(a, b));
            exact++;
        } else if (count < T5_SQUARES_MAX || area < a * b || area - a * b > a * b / 1000) {
            fail_msg("%" PRIu64 " x %" PRIu64 " by squares is %" PRIu64, a, b, area);
        }
    }
    assert_true(exact > 10000);
    /* worked: 512 x 114 is 4 of 114, 2 of 56, 28 of 2 */
    struct network_square squares[T5_SQUARES_MAX];
    assert_int_equal(network_squares(512, 114, squares), 3);
    assert_int_equal(squares[1].side, 56);
    assert_int_equal(squares[2].count, 28);
}

/* A member of a tensor group computes its share of all products but none of another's. */
static void a_tensor_group_shares_the_work(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct error err = {0};
    struct network n;
    struct work_item items[LAYER_WORK_MAX];
    const struct layer_share share = {.members = 4};
    double sum = 0;
    if (network_find("t5-base", &arena, &n, &err) || network_set_decoder(&n, 512, 128, &err)) fail_msg("%s", err.text);
    for (uint64_t layer = 0; layer < n.layer_count; layer++)
        sum += work_flops(items, network_slice_work(&n, layer, PASS_FORWARD, 2, 512, share, items));
    double expected = closed_form(&n, 2, 512, 128) / 4;
    assert_near(sum, expected);
    arena_release(&arena);
}

/* --- memory ----------------------------------------------------------------------------------- */

/*
 * Numbers that blocks keep, all of them multiples of 16 here, so that nothing is padded. R rows, S of the encoder:
 *
 *     encoder   norm1, middle, norm2, out 4 R C; two statistics 2 R; q, k, v, attention 4 R I, a number per head; fc,
 *               gelu
 *     decoder   the same, and norm, middle 2 R C, a statistic R; q, attention 2 R I, k, v 2 S I, a number per head
 *     the first of them  the encoder's result normed S C, its statistic S
 */
static void blocks_keep_what_their_backward_passes_read(void **state)
{
    (void)state;
    const uint64_t b = 2, te = 64, td = 32, re = b * te, rd = b * td, c = 512, i = 512, h = 8, f = 2048;
    struct arena arena = {0};
    struct error err = {0};
    struct network n;
    if (network_find("t5-small", &arena, &n, &err) || network_set_decoder(&n, te, td, &err)) fail_msg("%s", err.text);
    uint64_t encoder = 4 * re * c + 2 * re + 4 * re * i + re * h + 2 * re * f;
    uint64_t decoder = 6 * rd * c + 3 * rd + 6 * rd * i + 2 * re * i + 2 * rd * h + 2 * rd * f;
    assert_int_equal(memory_activation_bytes(&n, 1, 1, b, te, PRECISION_FP32), 4 * (encoder - re * c));
    assert_int_equal(memory_activation_bytes(&n, 8, 1, b, te, PRECISION_FP32), 4 * (decoder - rd * c));
    assert_int_equal(memory_activation_bytes(&n, 7, 1, b, te, PRECISION_FP32), 4 * (decoder - rd * c + re));
    /* all blocks, of which the last has its output outside */
    assert_int_equal(memory_activation_bytes(&n, 1, 12, b, te, PRECISION_FP32),
                     4 * (6 * encoder + 6 * decoder - rd * c + re * c + re));
    /* only inputs: of five encoder blocks and of the six decoder blocks after the first */
    assert_int_equal(memory_input_bytes(&n, 1, 12, b, te, PRECISION_FP32), 4 * c * (6 * re + 5 * rd + re));
    for (uint64_t layer = 0; layer + 1 < n.layer_count; layer++)
        assert_int_equal(memory_boundary_bytes(&n, layer, b, te, PRECISION_FP32), 4 * c * (re + rd));
    arena_release(&arena);
}

/* --- jobs ------------------------------------------------------------------------------------- */

static void read_jobs(const char *keys, struct job_set *out)
{
    struct error err = {0};
    char text[1024];
    snprintf(text, sizeof text, "{\"spillway_jobs\": 1, \"jobs\": [{\"minibatches\": 2, %s}]}", keys);
    if (support_jobs(text, ".", out, &err)) fail_msg("%s", err.text);
}

static void jobs_have_two_lengths(void **state)
{
    (void)state;
    struct job_set jobs = {0}, again = {0};
    struct error err = {0};
    read_jobs("\"network\": \"t5-small\", \"sequence\": 1024, \"decoder_sequence\": 114, \"microbatch\": 3", &jobs);
    const struct job *job = &jobs.jobs[0];
    assert_int_equal(network_tokens(&job->network, job->sequence), 1138); /* 512 is no limit */
    assert_int_equal(network_layer_tokens(&job->network, 3, job->sequence), 1024);
    assert_int_equal(network_layer_tokens(&job->network, 9, job->sequence), 114);
    assert_int_equal(job_batch_bytes(job), 3 * 1139 * 4);
    char *text = support_jobs_text(&jobs);
    if (support_jobs(text, ".", &again, &err)) fail_msg("%s\n%s", text, err.text);
    assert_int_equal(again.jobs[0].network.decoder_tokens, 114);
    free(text);
    job_set_release(&again);
    job_set_release(&jobs);
    read_jobs("\"network\": \"t5-small\"", &jobs);
    assert_int_equal(network_tokens(&jobs.jobs[0].network, jobs.jobs[0].sequence), 1024); /* twice 512 */
    job_set_release(&jobs);
}

static void what_is_not_t5_is_refused(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"{\"model_type\": \"t5\", \"is_encoder_decoder\": false}",
         "test:1:44: 'is_encoder_decoder' is false (only true is supported)"},
        {"{\"model_type\": \"t5\", \"feed_forward_proj\": \"gated-silu\"}",
         "test:1:43: unknown feed_forward_proj 'gated-silu' (expected relu or gated-gelu)"},
        {"{\"model_type\": \"t5\", \"architectures\": [\"T5EncoderModel\"]}",
         "test:1:40: unsupported architecture 'T5EncoderModel' (expected one of T5ForConditionalGeneration, "
         "T5WithLMHeadModel, T5Model)"},
        {"{\"model_type\": \"t5\", \"d_kv\": 1000000, \"num_heads\": 8}",
         "test:1:30: 8 heads of 1000000 are too wide together (limit is 1048576)"},
        {"{\"model_type\": \"t5\", \"num_layers\": 60000, \"num_decoder_layers\": 60000}",
         "test:1:65: 120000 layers of encoder and decoder (limit is 99998)"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) support_network_refused(cases[i][0], cases[i][1]);
    struct job_set jobs = {0};
    struct error err = {0};
    assert_int_equal(support_jobs("{\"spillway_jobs\": 1, \"jobs\": [{\"network\": \"gpt2\", \"minibatches\": 1, "
                                  "\"decoder_sequence\": 5}]}", ".", &jobs, &err), STATUS_BAD_INPUT);
    assert_string_equal(err.text, "test:1:89: network 'gpt2' has no encoder and therefore no separate decoder "
                                  "sequence");
    job_set_release(&jobs);
}

/* --- plans ------------------------------------------------------------------------------------ */

static const char tiny[] = "\"network\": {\"model_type\": \"t5\", \"d_model\": 64, \"d_kv\": 32, \"d_ff\": 192, "
                           "\"num_heads\": 4, \"num_layers\": 4, \"num_decoder_layers\": 3, \"vocab_size\": 509}, "
                           "\"sequence\": 32, \"decoder_sequence\": 24, \"microbatches\": 4";

/* spilled, resident and parallel: plan_check() accepts what the planner makes. */
static void t5_is_planned(void **state)
{
    (void)state;
    static const struct {
        const char *policy, *degrees;
        uint32_t recompute;
    } ways[] = {{"sharded-lrtf", NULL, 0},
                {"spill-sequential", NULL, 0},
                {"model-parallel", NULL, 0},
                {NULL, "tp=2,pp=2,sp", RECOMPUTE_SELECTIVE},
                {NULL, "pp=4", RECOMPUTE_FULL},
                {NULL, "dp=4,v=2,zero=3", RECOMPUTE_NONE},
                {NULL, "tp=4", RECOMPUTE_FULL},
                {NULL, "pp=2,dp=2,zero=1", RECOMPUTE_NONE}};
    for (size_t w = 0; w < ARRAY_COUNT(ways); w++) {
        const struct hardware_options four = {.device_count = 4, .device_memory_bytes = 8 << 20};
        struct hardware machine = {0};
        struct job_set jobs = {0};
        struct plan plan = {0};
        struct error err = {0};
        read_jobs(tiny, &jobs);
        if (hardware_find("dgx-a100-80gb", &machine, &err) || hardware_adjust(&machine, &four, &err))
            fail_msg("%s", err.text);
        if (ways[w].degrees && parallel_parse_text(ways[w].degrees, &jobs.jobs[0].parallel, &err))
            fail_msg("%s", err.text);
        jobs.jobs[0].parallel.recompute = ways[w].recompute;
        const struct planner_options options = {.policy = ways[w].policy, .activations = PLANNER_AUTO,
                                                .optimizer = PLANNER_AUTO};
        if (planner_plan(&machine, &jobs, &options, &plan, &err) || plan_check(&plan, &err))
            fail_msg("%s %s: %s", ways[w].policy, ways[w].degrees, err.text);
        plan_release(&plan);
    }
}

static uint64_t all_parameters(const struct job *job)
{
    uint64_t sum = 0;
    for (uint32_t chunk = 0; chunk < parallel_chunks(&job->parallel); chunk++)
        sum += parallel_parameters(job, parallel_layers(job, chunk));
    return sum;
}

/* Wherever stages are cut, their parameters and work add up to the network's, and each sends the rows of both
 * sequences. */
static void stages_are_the_network(void **state)
{
    (void)state;
    struct job_set jobs = {0};
    read_jobs(tiny, &jobs);
    struct job *job = &jobs.jobs[0];
    const uint64_t boundary = 4 * 64 * (32 + 24);
    double whole = pass_flops(&job->network, PASS_FORWARD, 1, 32);
    for (uint32_t stages = 1; stages <= 7; stages++) {
        struct error err = {0};
        char text[16];
        double flops = 0;
        uint64_t copies = stages > 1 ? 509 * 64 : 0; /* the tied table is there twice */
        snprintf(text, sizeof text, "pp=%" PRIu32, stages);
        if (parallel_parse_text(text, &job->parallel, &err) || parallel_check(job, &err)) fail_msg("%s", err.text);
        assert_int_equal(all_parameters(job), network_parameters(&job->network) + copies);
        for (uint32_t chunk = 0; chunk < stages; chunk++) {
            struct work_item items[PARALLEL_WORK_MAX];
            struct parallel_layers layers = parallel_layers(job, chunk);
            flops += work_flops(items, parallel_work(job, layers, PARALLEL_FORWARD, items));
            if (chunk + 1 < stages)
                assert_int_equal(parallel_boundary_bytes(job, layers.first + layers.count - 1), boundary);
        }
        assert_near(flops, whole);
    }
    job_set_release(&jobs);
}

/* A network of 14 blocks keeps the encoder's share of 7, which has 4; a network of one block has no encoder left. */
static void deeper_networks_keep_their_proportion(void **state)
{
    (void)state;
    struct job_set jobs = {0};
    read_jobs(tiny, &jobs);
    struct job twice = feasibility_job_of_blocks(&jobs.jobs[0], 14), one = feasibility_job_of_blocks(&jobs.jobs[0], 1);
    assert_int_equal(twice.network.encoder_blocks, 8);
    assert_int_equal(twice.network.layer_count, 16);
    assert_true(network_crosses(&twice.network, 9) && !network_crosses(&twice.network, 8));
    assert_int_equal(one.network.encoder_blocks, 0);
    assert_int_equal(network_tokens(&one.network, 32), 32);
    job_set_release(&jobs);
}

/*
 * A tensor group of 4 sends for a decoder's block: forward three sums of the decoder's rows, backward three more and
 * one of the encoder's rows. Each member has a share of the encoder's keys and values.
 */
static void a_decoder_sums_the_gradients_of_the_encoder(void **state)
{
    (void)state;
    struct job_set jobs = {0};
    struct error err = {0};
    struct parallel_collective sums[PARALLEL_COLLECTIVES_MAX];
    read_jobs(tiny, &jobs);
    struct job *job = &jobs.jobs[0];
    const struct parallel_layers second = {6, 1};
    if (parallel_parse_text("tp=4", &job->parallel, &err)) fail_msg("%s", err.text);
    assert_int_equal(parallel_collectives(job, second, PARALLEL_FORWARD, sums), 1);
    assert_int_equal(sums[0].count, 3);
    assert_int_equal(sums[0].bytes, 24 * 64 * 4);
    assert_int_equal(parallel_collectives(job, second, PARALLEL_BACKWARD, sums), 2);
    assert_int_equal(sums[0].count, 3);
    assert_int_equal(sums[1].count, 1);
    assert_int_equal(sums[1].bytes, 32 * 64 * 4);
    job_set_release(&jobs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_models_have_their_parameters),
        cmocka_unit_test(presets_are_their_configurations),
        cmocka_unit_test(networks_survive_writing),
        cmocka_unit_test(tensors_are_those_of_the_files),
        cmocka_unit_test(equal_layers_are_equal),
        cmocka_unit_test(work_is_the_closed_form),
        cmocka_unit_test(squares_cover_rectangles),
        cmocka_unit_test(a_tensor_group_shares_the_work),
        cmocka_unit_test(blocks_keep_what_their_backward_passes_read),
        cmocka_unit_test(jobs_have_two_lengths),
        cmocka_unit_test(what_is_not_t5_is_refused),
        cmocka_unit_test(t5_is_planned),
        cmocka_unit_test(stages_are_the_network),
        cmocka_unit_test(deeper_networks_keep_their_proportion),
        cmocka_unit_test(a_decoder_sums_the_gradients_of_the_encoder),
    };
    return cmocka_run_group_tests_name("models/network_t5", tests, NULL, NULL);
}
