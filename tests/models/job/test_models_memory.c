/*
 * models/job/memory.h: tables against sums written down independently, sizes against tables for random
 * ranges of all networks, and the properties that planner and executor lean on.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/random.h"
#include "base/size.h"
#include "models/job/memory.h"
#include "tests/support/support_seed.h"

static const struct state_format adamw = {.optimizer = OPTIMIZER_ADAMW};
static const struct state_format sgd = {.optimizer = OPTIMIZER_SGD};

static struct network preset(const char *name)
{
    static struct arena arena; /* of all that are asked for */
    struct network network = {0};
    struct error err = {0};
    if (network_find(name, &arena, &network, &err) != STATUS_OK) fail_msg("%s", err.text);
    return network;
}

static uint64_t up(uint64_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

/* Entries in order, aligned, not overlapping, and the table's size is their end. */
static void check_table(const struct memory_table *table, uint64_t alignment)
{
    uint64_t end = 0;
    for (uint32_t i = 0; i < table->count; i++) {
        const struct memory_entry *entry = &table->entries[i];
        assert_true(entry->offset_bytes >= end);
        assert_true(entry->offset_bytes - end < 64);
        assert_int_equal(entry->offset_bytes % alignment, 0);
        end = entry->offset_bytes + entry->bytes;
    }
    assert_int_equal(table->bytes, up(end));
}

/* --- parameters ----------------------------------------------------------------------------- */

static void parameters_of_a_gpt2_block(void **state)
{
    (void)state;
    struct network n = preset("gpt2");
    struct arena arena = {0};
    struct memory_table table;
    struct error err = {0};
    assert_int_equal(memory_parameters(&n, 2, 3, &arena, &table, &err), STATUS_OK);
    check_table(&table, MEMORY_ALIGNMENT);
    assert_int_equal(table.count, 36);
    /* gpt2's sizes are multiples of 16 floats, so there is no padding: 3 blocks of 7 087 872 */
    assert_int_equal(table.bytes, 3 * 7087872 * 4);
    assert_int_equal(memory_parameter_bytes(&n, 2, 3), table.bytes);
    assert_int_equal(memory_state(&n, 2, 3, sgd).bytes, table.bytes);
    assert_int_equal(memory_state(&n, 2, 3, adamw).bytes, 3 * table.bytes);
    const struct memory_entry *fc = memory_find(&table, 3, "h.2.mlp.c_fc.weight");
    assert_non_null(fc);
    /* after one block and, in its own, 2 C + 3 C (C + 1) + C (C + 1) + 2 C */
    assert_int_equal(fc->offset_bytes, (7087872 + 4 * 768 + 4 * 768 * 769) * 4);
    assert_int_equal(fc->bytes, 768 * 3072 * 4);
    assert_ptr_equal(memory_find(&table, 3, "mlp.c_fc.weight"), fc);
    assert_null(memory_find(&table, 3, "fc.weight"));
    assert_null(memory_find(&table, 9, "mlp.c_fc.weight"));
    arena_release(&arena);
}

/* Any range of rows is a slice: the tables lie without padding even where a row is 20 bytes. */
static void embedding_tables_lie_row_behind_row(void **state)
{
    (void)state;
    struct network n = {.family = NETWORK_GPT2, .layer_count = 3, .blocks = 1, .width = 5,
                        .heads = 1, .head_width = 5, .ff_width = 20, .vocabulary = 7,
                        .positions = 3, .tied_head = true, .biases = true};
    struct arena arena = {0};
    struct memory_table table;
    struct error err = {0};
    assert_int_equal(memory_parameters(&n, 0, 1, &arena, &table, &err), STATUS_OK);
    assert_int_equal(table.count, 2);
    assert_int_equal(table.entries[0].offset_bytes, 0);
    assert_int_equal(table.entries[0].bytes, 7 * 20);
    assert_int_equal(table.entries[1].offset_bytes, 7 * 20);
    assert_int_equal(table.entries[1].bytes, 3 * 20);
    assert_int_equal(table.bytes, 256); /* 200 and padding */
    /* the next block begins on a boundary of its own, each tensor too */
    assert_int_equal(memory_parameters(&n, 0, 3, &arena, &table, &err), STATUS_OK);
    assert_int_equal(memory_find(&table, 1, "h.0.ln_1.weight")->offset_bytes, 256);
    assert_int_equal(memory_find(&table, 1, "h.0.ln_1.bias")->offset_bytes, 320);
    assert_int_equal(memory_parameter_bytes(&n, 0, 3), table.bytes);
    arena_release(&arena);
}

/* --- states --------------------------------------------------------------------------------- */

static void check_part(const struct state_layout *layout, uint32_t part, uint64_t offset, uint64_t bytes)
{
    assert_int_equal(layout->parts[part].offset_bytes, offset);
    assert_int_equal(layout->parts[part].bytes, bytes);
}

/* 7 + 3 rows of 5 numbers, and a block: bf16-weights halves the matrices, and brings their master. */
static void states_with_bf16(void **state)
{
    (void)state;
    struct network n = {.family = NETWORK_GPT2, .layer_count = 3, .blocks = 1, .width = 5,
                        .heads = 1, .head_width = 5, .ff_width = 20, .vocabulary = 7,
                        .positions = 3, .tied_head = true, .biases = true};
    const struct state_format both = {OPTIMIZER_ADAMW, PRECISION_BF16_WEIGHTS, PRECISION_BF16, false};
    const struct state_format weights = {OPTIMIZER_MOMENTUM, PRECISION_BF16_WEIGHTS, PRECISION_FP32, false};
    const struct state_format moments = {OPTIMIZER_ADAMW, PRECISION_FP32, PRECISION_BF16, false};
    struct arena arena = {0};
    struct state_tables tables;
    struct error err = {0};
    /* 50 numbers: 100 bytes and 200, each up to a multiple of 64 */
    assert_int_equal(memory_state_tables(&n, 0, 1, both, &arena, &tables, &err), STATUS_OK);
    check_part(&tables.layout, STATE_WEIGHTS, 0, 128);
    check_part(&tables.layout, STATE_MASTER, 128, 256);
    check_part(&tables.layout, STATE_FIRST, 384, 128);
    check_part(&tables.layout, STATE_SECOND, 512, 128);
    assert_int_equal(tables.layout.bytes, 640);
    assert_int_equal(state_value_bytes(&tables.layout), 384);
    assert_int_equal(tables.parts[STATE_WEIGHTS].entries[1].offset_bytes, 70); /* row after row */
    assert_int_equal(tables.parts[STATE_MASTER].entries[1].offset_bytes, 140);
    assert_int_equal(tables.parts[STATE_SECOND].entries[1].bytes, 30);
    struct state_layout layout = memory_state(&n, 0, 1, weights);
    check_part(&layout, STATE_FIRST, 384, 256);
    check_part(&layout, STATE_SECOND, 640, 0);
    layout = memory_state(&n, 0, 1, moments);
    check_part(&layout, STATE_MASTER, 256, 0);
    check_part(&layout, STATE_FIRST, 256, 128);
    assert_int_equal(layout.bytes, 512);
    /* three rows: fp32 in front, so that nothing needs a gap */
    layout = memory_state_rows(&n, 3, both);
    check_part(&layout, STATE_MASTER, 0, 60);
    check_part(&layout, STATE_WEIGHTS, 60, 30);
    check_part(&layout, STATE_FIRST, 90, 30);
    check_part(&layout, STATE_SECOND, 120, 30);
    assert_int_equal(layout.bytes, 150);
    layout = memory_state_rows(&n, 3, adamw);
    check_part(&layout, STATE_SECOND, 120, 60);

    /* a block's vectors have no master; of its matrices the weights are half as long */
    assert_int_equal(memory_state_tables(&n, 1, 1, both, &arena, &tables, &err), STATUS_OK);
    for (uint32_t i = 0; i < tables.parts[STATE_WEIGHTS].count; i++) {
        struct tensor_spec specs[LAYER_TENSORS_MAX];
        network_layer_tensors(&n, 1, specs);
        const uint64_t elements = specs[i].elements, half = specs[i].rank == 2 ? 2 : 4;
        assert_int_equal(tables.parts[STATE_WEIGHTS].entries[i].bytes, elements * half);
        assert_int_equal(tables.parts[STATE_MASTER].entries[i].bytes,
                         specs[i].rank == 2 ? elements * 4 : 0);
        assert_int_equal(tables.parts[STATE_FIRST].entries[i].bytes, elements * 2);
        assert_int_equal(tables.parts[STATE_WEIGHTS].entries[i].offset_bytes % MEMORY_ALIGNMENT, 0);
    }
    /* and there is room for what its products round: the widest input and output are F */
    const uint64_t plain = memory_workspace_bytes(&n, 1, 1, UNIT_BACKWARD, UNIT_KEEP, 2, 3);
    const uint64_t rounded =
        memory_workspace_bytes(&n, 1, 1, UNIT_BACKWARD, UNIT_KEEP | UNIT_ROUNDED, 2, 3);
    /* 6 rows of 20, twice 240 bytes; copies for attention, 6 (2 * 5 * 2 + 1) * 4 = 504 bytes, and for a
     * library 2 * 64^2 + 1024 = 9216 instead of two heads' tiles of 2 * 3 * 3 * 4 = 72, in all 9720, which
     * in place of 144 take 9728 instead of 192 */
    assert_int_equal(rounded - plain, 2 * 256 + 9728 - 192);
    arena_release(&arena);
}

/* "bf16": of the same block all weights have 2 bytes and a master, vectors too; activations have 2 bytes, their
 * statistics 4. */
static void sixteen_bits_throughout(void **state)
{
    (void)state;
    struct network n = {.family = NETWORK_GPT2, .layer_count = 3, .blocks = 1, .width = 5,
                        .heads = 1, .head_width = 5, .ff_width = 20, .vocabulary = 7,
                        .positions = 3, .tied_head = true, .biases = true};
    const struct state_format halves = {OPTIMIZER_ADAMW, PRECISION_BF16, PRECISION_FP32, false};
    struct arena arena = {0};
    struct state_tables tables;
    struct error err = {0};
    assert_int_equal(memory_state_tables(&n, 1, 1, halves, &arena, &tables, &err), STATUS_OK);
    for (uint32_t i = 0; i < tables.parts[STATE_WEIGHTS].count; i++) {
        assert_int_equal(2 * tables.parts[STATE_WEIGHTS].entries[i].bytes, tables.parts[STATE_FIRST].entries[i].bytes);
        assert_int_equal(tables.parts[STATE_MASTER].entries[i].bytes, tables.parts[STATE_FIRST].entries[i].bytes);
    }
    arena_release(&arena);
    /* 2 samples of 32 tokens, so that no row is padded to 64 bytes: of each row 8 C + 2 F numbers without the
     * output's C, 4 statistics of norms and one of the head's attention */
    n.positions = 32;
    const uint64_t rows = 64, numbers = rows * (7 * 5 + 2 * 20), statistics = rows * 5 * 4;
    assert_int_equal(memory_activation_bytes(&n, 1, 1, 2, 32, PRECISION_FP32), 4 * numbers + statistics);
    assert_int_equal(memory_activation_bytes(&n, 1, 1, 2, 32, PRECISION_BF16_WEIGHTS), 4 * numbers + statistics);
    assert_int_equal(memory_activation_bytes(&n, 1, 1, 2, 32, PRECISION_BF16), 2 * numbers + statistics);
    assert_int_equal(memory_input_bytes(&n, 0, 2, 2, 32, PRECISION_BF16), 2 * rows * 5);
    assert_int_equal(memory_boundary_bytes(&n, 0, 2, 32, PRECISION_BF16), 2 * rows * 5);
    assert_int_equal(memory_boundary_bytes(&n, 0, 2, 32, PRECISION_BF16_WEIGHTS), 4 * rows * 5);
    /* a backward pass works on d_stream2 (R, C), d_qkv (R, 3 C) and d_wide (R, F) */
    const uint64_t wide = memory_workspace_bytes(&n, 1, 1, UNIT_BACKWARD, UNIT_KEEP, 2, 32);
    const uint64_t half = memory_workspace_bytes(&n, 1, 1, UNIT_BACKWARD, UNIT_KEEP | UNIT_HALF, 2, 32);
    const uint64_t library = 2 * 64 * 64 + 1024, tiles = 4 * 2 * 2 * 32 * 32; /* scratch of attention ... */
    const uint64_t widened = tiles + 4 * 2 * MEMORY_ATTENTION_HALF_TILES * 32 * 5; /* ... by tiles of q, k and so on */
    assert_true(widened > library);
    assert_int_equal(wide - half, 2 * rows * (5 + 15 + 20) - (widened - tiles));
}

/* --- activations ---------------------------------------------------------------------------- */

/* B 2, T 96, R 192. Per row of a block: norm1 C, stats 2, qkv 3 C, attention C, stats H, middle C,
 * norm2 C, stats 2, fc F, gelu F, output C = 8 C + 2 F + 4 + H floats; a head C + 2. */
static void activations_of_gpt2(void **state)
{
    (void)state;
    struct network n = preset("gpt2");
    struct arena arena = {0};
    struct memory_table table;
    struct error err = {0};
    const uint64_t rows = 192, block = 8 * 768 + 2 * 3072 + 4 + 12, head = 768 + 2;
    assert_int_equal(memory_activations(&n, 11, 3, 2, 96, PRECISION_FP32, &arena, &table, &err), STATUS_OK);
    check_table(&table, MEMORY_ALIGNMENT);
    assert_int_equal(table.count, 11 + 11 + 2);
    assert_int_equal(table.bytes, rows * (2 * block + head) * 4);
    assert_string_equal(table.entries[0].name, "11.norm1");
    assert_string_equal(table.entries[23].name, "13.normf_stats");
    assert_int_equal(memory_find(&table, 12, "qkv")->bytes, rows * 2304 * 4);
    assert_int_equal(memory_find(&table, 12, "attention_stats")->bytes, 2 * 12 * 96 * 4);
    assert_int_equal(memory_find(&table, 12, "output")->bytes, rows * 768 * 4);
    /* the last layer's output is the boundary */
    assert_int_equal(memory_activations(&n, 3, 2, 2, 96, PRECISION_FP32, &arena, &table, &err), STATUS_OK);
    assert_int_equal(table.bytes, rows * (2 * block - 768) * 4);
    assert_non_null(memory_find(&table, 3, "output"));
    assert_null(memory_find(&table, 4, "output"));
    /* an embedding keeps nothing; its output is the input of the layer after it */
    assert_int_equal(memory_activation_bytes(&n, 0, 1, 2, 96, PRECISION_FP32), 0);
    assert_int_equal(memory_activation_bytes(&n, 0, 2, 2, 96, PRECISION_FP32), rows * (768 + block - 768) * 4);
    assert_int_equal(memory_boundary_bytes(&n, 5, 2, 96, PRECISION_FP32), rows * 768 * 4);
    arena_release(&arena);
}

/* With inputs only there is one entry less than layers: the first layer's input is the boundary. */
static void inputs_of_layers(void **state)
{
    (void)state;
    struct network n = preset("gpt2");
    struct arena arena = {0};
    struct memory_table table;
    struct error err = {0};
    const uint64_t stream = 192 * 768 * 4;
    assert_int_equal(memory_inputs(&n, 4, 5, 2, 96, PRECISION_FP32, &arena, &table, &err), STATUS_OK);
    check_table(&table, MEMORY_ALIGNMENT);
    assert_int_equal(table.count, 4);
    assert_int_equal(table.bytes, 4 * stream);
    for (uint32_t i = 0; i < table.count; i++) {
        assert_int_equal(table.entries[i].layer, 5 + i);
        assert_int_equal(table.entries[i].bytes, stream);
    }
    assert_string_equal(table.entries[3].name, "8.input");
    assert_ptr_equal(memory_find(&table, 6, "input"), &table.entries[1]);
    /* the head's too; an embedding's output is block 1's; a single layer has none */
    assert_int_equal(memory_input_bytes(&n, 11, 3, 2, 96, PRECISION_FP32), 2 * stream);
    assert_int_equal(memory_input_bytes(&n, 0, 3, 2, 96, PRECISION_FP32), 2 * stream);
    assert_int_equal(memory_input_bytes(&n, 7, 1, 2, 96, PRECISION_FP32), 0);
    /* a 16th of all activations, and what attention and norms keep a row */
    assert_int_equal(memory_activation_bytes(&n, 4, 5, 2, 96, PRECISION_FP32),
                     16 * 5 * stream + 5 * 192 * 16 * 4 - stream);
    arena_release(&arena);
}

/* Post-norm: qkv 3 C, attention C, middle C, norm1 C, fc F, gelu F, sum C, output C, stats 4 + H:
 * the same count as pre-norm. The head has transform, gelu, normf and statistics. */
static void activations_of_encoders(void **state)
{
    (void)state;
    struct network bert = preset("bert-large"), vit = preset("hydra-vit-1b");
    uint64_t rows = 3 * 128, block = 8 * 1024 + 2 * 4096 + 4 + 16;
    assert_int_equal(memory_activation_bytes(&bert, 1, 2, 3, 128, PRECISION_FP32), rows * (2 * block - 1024) * 4);
    assert_int_equal(memory_activation_bytes(&bert, 25, 1, 3, 128, PRECISION_FP32), rows * (3 * 1024 + 2) * 4);
    /* the embedding: pairs to sort, 4 words a row, and for the norm two rows and two numbers */
    assert_int_equal(memory_workspace_bytes(&bert, 0, 1, UNIT_FORWARD, true, 3, 128),
                     rows * (2 * 1024 + 2 + 4) * 4);
    assert_int_equal(memory_workspace_bytes(&bert, 0, 1, UNIT_BACKWARD, true, 3, 128),
                     rows * (2 * 1024 + 2 + 4) * 4 + 4 * 1024 * 4);
    /* 17 tokens whatever the sequence; heads of 64 on a width of 1280: 4 C + 4 H D + 2 F + 4 + H.
     * 2 * 17 rows of 2 or 16 floats are not multiples of 64 bytes: three entries are padded. */
    rows = 2 * 17;
    uint64_t floats = 4 * 1280 + 4 * 1024 + 2 * 5120;
    uint64_t bytes = rows * floats * 4 + 2 * up(rows * 2 * 4) + up(rows * 16 * 4);
    assert_int_equal(memory_activation_bytes(&vit, 1, 2, 2, 999, PRECISION_FP32),
                     2 * bytes - rows * 1280 * 4);
    assert_int_equal(memory_boundary_bytes(&vit, 0, 2, 999, PRECISION_FP32), rows * 1280 * 4);
    /* its head keeps the class tokens, their norms and statistics */
    assert_int_equal(memory_activation_bytes(&vit, vit.layer_count - 1, 1, 2, 999, PRECISION_FP32),
                     2 * 2 * 1280 * 4 + up(2 * 2 * 4));
    /* its embedding: 2 * 16 patches of 3 * 8 * 8 pixels and of 1280 */
    assert_int_equal(memory_workspace_bytes(&vit, 0, 1, UNIT_FORWARD, UNIT_KEEP, 2, 999),
                     2 * 16 * (192 + 1280) * 4);
}

/* B 2, T 96, R 192; 32 heads of 64, 8 of keys. Per row: norm1 C, norm 1, q 2048, k and v 512, attention
 * 2048, 32 statistics, middle C, norm2 C, norm 1, three of F, output C. */
static void activations_of_llama(void **state)
{
    (void)state;
    struct network n = preset("llama-3.2-1b");
    struct arena arena = {0};
    struct memory_table table;
    struct error err = {0};
    const uint64_t rows = 192, block = 4 * 2048 + 2 * 2048 + 2 * 512 + 3 * 8192 + 2 + 32;
    assert_int_equal(memory_activations(&n, 15, 3, 2, 96, PRECISION_FP32, &arena, &table, &err), STATUS_OK);
    check_table(&table, MEMORY_ALIGNMENT);
    assert_int_equal(table.count, 14 + 14 + 2);
    assert_int_equal(table.bytes, rows * (2 * block + 2048 + 1) * 4);
    assert_int_equal(memory_find(&table, 16, "k")->bytes, rows * 512 * 4);
    assert_int_equal(memory_find(&table, 16, "norm2_stats")->bytes, rows * 4);
    assert_int_equal(memory_workspace(&n, 3, 2, UNIT_BACKWARD, true, 2, 96, &arena, &table, &err),
                     STATUS_OK);
    assert_int_equal(memory_find(&table, 3, "d_qkv")->bytes, rows * (2048 + 2 * 512) * 4);
    assert_int_equal(memory_find(&table, 3, "d_wide")->bytes, rows * 2 * 8192 * 4);
    assert_int_equal(memory_workspace_bytes(&n, 0, 1, UNIT_BACKWARD, false, 2, 96), rows * 4 * 4);
    arena_release(&arena);
}

/* --- workspace ------------------------------------------------------------------------------ */

struct expected {
    const char *name;
    uint64_t bytes;
};

static void check_workspace(const struct network *n, uint64_t first, uint64_t count,
                            enum unit_pass pass, uint32_t how, const struct expected *expected,
                            uint32_t expected_count)
{
    struct arena arena = {0};
    struct memory_table table;
    struct error err = {0};
    assert_int_equal(memory_workspace(n, first, count, pass, how, 2, 96, &arena, &table, &err),
                     STATUS_OK);
    check_table(&table, MEMORY_ALIGNMENT);
    assert_int_equal(table.count, expected_count);
    for (uint32_t i = 0; i < expected_count; i++) {
        assert_string_equal(table.entries[i].name, expected[i].name);
        if (table.entries[i].bytes != expected[i].bytes)
            fail_msg("%s: %" PRIu64, expected[i].name, table.entries[i].bytes);
        assert_int_equal(table.entries[i].layer, first);
    }
    assert_int_equal(memory_workspace_bytes(n, first, count, pass, how, 2, 96), table.bytes);
    arena_release(&arena);
}

/* B 2, T 96, R 192; tiles of 64 rows for all 24 heads. Bytes of the stream, of scores, of a block's gradients, of
 * logits and of a block's kept activations. */
enum {
    STREAM = 192 * 768 * 4,
    SCORES = 2 * 64 * 96 * 24 * 4,
    BLOCK = 7087872 * 4,
    LOGITS = 192 * 50257 * 4,
    KEPT = 192 * (8 * 768 + 2 * 3072 + 16) * 4
};

static void workspaces_of_gpt2(void **state)
{
    (void)state;
    struct network n = preset("gpt2");
    const struct expected forward[] = {
        {"keep", KEPT - STREAM}, {"d_stream", STREAM}, {"d_stream2", STREAM},
        {"scratch", SCORES},     {"logits", 0},
    };
    const struct expected forward_kept[] = {
        {"keep", 0}, {"d_stream", 0}, {"d_stream2", 0}, {"scratch", SCORES}, {"logits", 0},
    };
    const struct expected backward[] = {
        {"gradients", BLOCK},    {"d_stream", 0}, {"d_stream2", STREAM},
        {"d_qkv", 3 * STREAM},   {"d_wide", 4 * STREAM}, {"scratch", SCORES},
        {"logits", 0},           {"activations", 3 * KEPT - STREAM},
    };
    const struct expected backward_kept[] = {
        {"gradients", BLOCK},    {"d_stream", 0}, {"d_stream2", STREAM},
        {"d_qkv", 3 * STREAM},   {"d_wide", 4 * STREAM}, {"scratch", SCORES},
        {"logits", 0},           {"activations", 0},
    };
    const struct expected loss[] = {
        {"gradients", BLOCK},    {"d_stream", 0}, {"d_stream2", STREAM},
        {"d_qkv", 3 * STREAM},   {"d_wide", 4 * STREAM}, {"scratch", SCORES},
        {"logits", LOGITS},      {"activations", 2 * KEPT + 192 * 770 * 4},
    };
    /* only the head: its norm's gradients, no attention */
    const struct expected head[] = {
        {"gradients", 1536 * 4}, {"d_stream", 0}, {"d_stream2", STREAM},
        {"d_qkv", 0},            {"d_wide", 0},        {"scratch", 0},
        {"logits", LOGITS},      {"activations", 192 * 770 * 4},
    };
    const struct expected embedding[] = {
        {"gradients", 0}, {"d_stream", 0}, {"d_stream2", 0},
        {"d_qkv", 0},     {"d_wide", 0},   {"scratch", 192 * 4 * 4},
        {"logits", 0},           {"activations", 0},
    };
    check_workspace(&n, 4, 3, UNIT_FORWARD, false, forward, 5);
    check_workspace(&n, 4, 3, UNIT_FORWARD, true, forward_kept, 5);
    check_workspace(&n, 4, 3, UNIT_BACKWARD, false, backward, 8);
    check_workspace(&n, 4, 3, UNIT_BACKWARD, true, backward_kept, 8);
    check_workspace(&n, 11, 3, UNIT_LOSS, false, loss, 8);
    check_workspace(&n, 11, 3, UNIT_LOSS, true, loss, 8);
    check_workspace(&n, 13, 1, UNIT_LOSS, false, head, 8);
    check_workspace(&n, 0, 1, UNIT_BACKWARD, false, embedding, 8);
    check_workspace(&n, 4, 3, UNIT_FORWARD, UNIT_INPUTS, forward, 5); /* kept nowhere: as without */
    check_workspace(&n, 4, 3, UNIT_BACKWARD, UNIT_INPUTS, backward, 8);
    n.tied_head = false; /* the head's own table has a gradient: 50257 * 768 + 1536 floats */
    struct expected untied[ARRAY_COUNT(loss)];
    memcpy(untied, loss, sizeof loss);
    untied[0].bytes = up((UINT64_C(50257) * 768 + 1536) * 4);
    check_workspace(&n, 11, 3, UNIT_LOSS, false, untied, 8);
}

/* Sums as a tree: a microbatch's gradients are a partial sum, of which `levels` wait; with a tied head also the table's
 * gradient and the loss. */
static void workspaces_of_trees(void **state)
{
    (void)state;
    struct network n = preset("gpt2");
    const uint64_t table = UINT64_C(50257) * 768 * 4;
    const struct expected backward[] = {
        {"gradients", 0}, {"d_stream", 0}, {"d_stream2", STREAM}, {"d_qkv", 3 * STREAM}, {"d_wide", 4 * STREAM},
        {"scratch", SCORES}, {"logits", 0}, {"activations", 0}, {"sums", 3 * BLOCK}, {"levels", 2 * 3 * BLOCK},
    };
    const struct expected head[] = {
        {"gradients", 0}, {"d_stream", 0}, {"d_stream2", STREAM}, {"d_qkv", 0}, {"d_wide", 0}, {"scratch", 0},
        {"logits", LOGITS}, {"activations", 192 * 770 * 4}, {"sums", 0},
        {"levels", 3 * (1536 * 4 + table + MEMORY_ALIGNMENT)},
    };
    const struct expected embedding[] = {
        {"gradients", 0}, {"d_stream", 0}, {"d_stream2", 0}, {"d_qkv", 0}, {"d_wide", 0}, {"scratch", 192 * 4 * 4},
        {"logits", 0}, {"activations", 0}, {"levels", 0},
    };
    check_workspace(&n, 4, 3, UNIT_BACKWARD, UNIT_KEEP | UNIT_ACCUMULATE | 2 * UNIT_LEVEL, backward, 10);
    check_workspace(&n, 13, 1, UNIT_LOSS, UNIT_GRADIENTS_OUT | UNIT_ACCUMULATE | 3 * UNIT_LEVEL, head, 10);
    check_workspace(&n, 0, 1, UNIT_BACKWARD, UNIT_KEEP | 3 * UNIT_LEVEL, embedding, 9);
}

/* Only the inputs of layers: one layer's activations, however many layers; in the loss the activations of its
 * last block and of the head together, and the inputs of both blocks and the head but one */
static void workspaces_of_inputs(void **state)
{
    (void)state;
    struct network n = preset("gpt2");
    const struct expected forward_inputs[] = {
        {"keep", KEPT - STREAM}, {"d_stream", 0}, {"d_stream2", 0}, {"scratch", SCORES},
        {"logits", 0},
    };
    const struct expected backward_inputs[] = {
        {"gradients", BLOCK},    {"d_stream", 0}, {"d_stream2", STREAM},
        {"d_qkv", 3 * STREAM},   {"d_wide", 4 * STREAM}, {"scratch", SCORES},
        {"logits", 0},           {"activations", KEPT - STREAM},
        {"head", 0},
    };
    const struct expected loss_inputs[] = {
        {"gradients", BLOCK},    {"d_stream", 0}, {"d_stream2", STREAM},
        {"d_qkv", 3 * STREAM},   {"d_wide", 4 * STREAM}, {"scratch", SCORES},
        {"logits", LOGITS},      {"activations", KEPT - STREAM},
        {"head", 192 * 770 * 4}, {"inputs", 2 * STREAM},
    };
    const uint32_t inputs = UNIT_KEEP | UNIT_INPUTS;
    check_workspace(&n, 4, 3, UNIT_FORWARD, inputs, forward_inputs, 5);
    check_workspace(&n, 2, 9, UNIT_BACKWARD, inputs, backward_inputs, 9);
    check_workspace(&n, 11, 3, UNIT_LOSS, inputs, loss_inputs, 10);
    check_workspace(&n, 11, 3, UNIT_LOSS, UNIT_INPUTS, loss_inputs, 10);
}

/* Logits of a piece: 512 rows, whatever the total. */
static void logits_are_those_of_a_piece(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint64_t b, t, logits;
    } cases[] = {
        {"gpt2", 4, 64, UINT64_C(256) * 50257 * 4},
        {"gpt2", 1, 1024, UINT64_C(512) * 50257 * 4},
        {"gpt2", 32, 1024, UINT64_C(512) * 50257 * 4},
        {"llama-3.2-1b", 1, 8192, UINT64_C(512) * 128256 * 4},
        {"vit-base", 5, 0, 5 * 1000 * 4},
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct network n = preset(cases[i].name);
        struct arena arena = {0};
        struct memory_table table;
        struct error err = {0};
        uint64_t head = n.layer_count - 1;
        assert_int_equal(memory_workspace(&n, head, 1, UNIT_LOSS, 0, cases[i].b, cases[i].t, &arena,
                                          &table, &err),
                         STATUS_OK);
        assert_int_equal(memory_find(&table, head, "logits")->bytes, cases[i].logits);
        arena_release(&arena);
    }
}

static void profiles_have_what_they_say(void **state)
{
    (void)state;
    static const struct layer_profile layers[] = {
        {800, 100, 70, 1, 1}, {400, 300, 30, 1, 1}, {0, 200, 50, 1, 1}};
    struct network n = {.family = NETWORK_PROFILE, .layer_count = 3, .profile = layers};
    struct arena arena = {0};
    struct memory_table table;
    struct error err = {0};
    assert_int_equal(memory_parameter_bytes(&n, 0, 3), up(800) + up(400));
    assert_int_equal(memory_state(&n, 1, 2, adamw).bytes, 3 * up(400));
    assert_int_equal(memory_activation_bytes(&n, 0, 3, 5, 1, PRECISION_FP32), up(100) + up(300) + up(200));
    assert_int_equal(memory_boundary_bytes(&n, 1, 5, 1, PRECISION_FP32), 30);
    assert_int_equal(memory_workspace(&n, 0, 3, UNIT_LOSS, false, 5, 1, &arena, &table, &err),
                     STATUS_OK);
    assert_int_equal(memory_find(&table, 0, "gradients")->bytes, up(800));
    assert_int_equal(memory_find(&table, 0, "d_stream2")->bytes, 72); /* 70, in whole floats */
    assert_int_equal(memory_find(&table, 0, "activations")->bytes, up(100) + up(300) + up(200));
    assert_int_equal(memory_input_bytes(&n, 0, 3, 5, 1, PRECISION_FP32), up(70) + up(30));
    assert_int_equal(memory_workspace(&n, 0, 3, UNIT_LOSS, UNIT_INPUTS, 5, 1, &arena, &table, &err),
                     STATUS_OK);
    assert_int_equal(memory_find(&table, 0, "activations")->bytes, up(300));
    assert_int_equal(memory_find(&table, 0, "head")->bytes, 0);
    assert_int_equal(memory_find(&table, 0, "inputs")->bytes, up(70) + up(30));
    arena_release(&arena);
}

/* --- properties ----------------------------------------------------------------------------- */

/* Counts the running means of a layer, which have room among the parameters. */
static uint64_t running_numbers(const struct network *n, uint64_t layer)
{
    struct tensor_spec specs[LAYER_TENSORS_MAX];
    const uint32_t count = network_layer_shapes(n, layer, specs);
    uint64_t sum = 0;
    for (uint32_t i = 0; i < count; i++) sum += specs[i].running ? specs[i].elements : 0;
    return sum;
}


/* Sizes without tables are the tables' sizes; more layers never need less. */
static void sizes_are_those_of_the_tables(void **state)
{
    (void)state;
    uint64_t seed = support_seed("sizes_are_those_of_the_tables");
    uint32_t presets = 0;
    while (network_preset_name(presets)) presets++;
    for (uint64_t round = 0; round < 400; round++) {
        uint64_t r = round * 16;
        struct network n = preset(network_preset_name((uint32_t)random_below(seed, r, presets)));
        n.tied_head = random_below(seed, r + 1, 2) && n.family != NETWORK_VIT;
        n.width = n.heads * n.head_width + 4 * random_below(seed, r + 2, 2);
        uint64_t first = random_below(seed, r + 3, n.layer_count);
        uint64_t count = 1 + random_below(seed, r + 4, n.layer_count - first);
        uint64_t b = 1 + random_below(seed, r + 5, 7), t = 1 + random_below(seed, r + 6, 300);
        enum unit_pass pass = (enum unit_pass)random_below(seed, r + 7, 3);
        uint32_t how = (uint32_t)random_below(seed, r + 8, UNIT_WAYS + UNIT_ACCUMULATE) |
                       UNIT_LEVEL * (uint32_t)random_below(seed, r + 9, 3);
        struct arena arena = {0};
        struct memory_table table;
        struct error err = {0};
        assert_int_equal(memory_parameters(&n, first, count, &arena, &table, &err), STATUS_OK);
        check_table(&table, 4);
        assert_int_equal(memory_parameter_bytes(&n, first, count), table.bytes);
        uint64_t elements = 0;
        for (uint32_t i = 0; i < table.count; i++) elements += table.entries[i].bytes / 4;
        uint64_t parameters = 0;
        for (uint64_t i = 0; i < count; i++)
            parameters += network_layer_parameters(&n, first + i) + running_numbers(&n, first + i);
        assert_int_equal(elements, parameters);

        assert_int_equal(memory_activations(&n, first, count, b, t, PRECISION_FP32, &arena, &table, &err),
                         STATUS_OK);
        check_table(&table, MEMORY_ALIGNMENT);
        assert_int_equal(memory_activation_bytes(&n, first, count, b, t, PRECISION_FP32), table.bytes);
        uint64_t all = table.bytes;
        assert_int_equal(memory_inputs(&n, first, count, b, t, PRECISION_FP32, &arena, &table, &err), STATUS_OK);
        check_table(&table, MEMORY_ALIGNMENT);
        assert_int_equal(table.count, count - 1);
        assert_int_equal(memory_input_bytes(&n, first, count, b, t, PRECISION_FP32), table.bytes);
        assert_true(table.bytes <= all);
        assert_int_equal(memory_workspace(&n, first, count, pass, how, b, t, &arena, &table, &err),
                         STATUS_OK);
        check_table(&table, MEMORY_ALIGNMENT);
        assert_int_equal(memory_workspace_bytes(&n, first, count, pass, how, b, t), table.bytes);
        if (pass == UNIT_BACKWARD) /* a layer at a time never needs more than all at once */
            assert_true(memory_workspace_bytes(&n, first, count, pass,
                                               how | UNIT_KEEP | UNIT_INPUTS, b, t) <=
                        memory_workspace_bytes(&n, first, count, pass,
                                               how & ~(uint32_t)(UNIT_KEEP | UNIT_INPUTS), b, t));
        if (count > 1) {
            assert_true(memory_workspace_bytes(&n, first, count - 1, pass, how, b, t) <=
                        table.bytes);
            assert_true(memory_activation_bytes(&n, first, count - 1, b, t, PRECISION_FP32) <=
                        memory_activation_bytes(&n, first, count, b, t, PRECISION_FP32));
        }
        arena_release(&arena);
    }
}

/* The whole is the sum of its shards, without the outputs that become boundaries. */
static void shards_add_up(void **state)
{
    (void)state;
    struct network n = preset("gpt2-medium");
    for (uint64_t cut = 2; cut < n.layer_count; cut++) {
        assert_int_equal(memory_parameter_bytes(&n, 1, cut - 1) +
                             memory_parameter_bytes(&n, cut, n.layer_count - cut),
                         memory_parameter_bytes(&n, 1, n.layer_count - 1));
        assert_int_equal(memory_activation_bytes(&n, 1, cut - 1, 3, 64, PRECISION_FP32) +
                             memory_activation_bytes(&n, cut, n.layer_count - cut, 3, 64, PRECISION_FP32) +
                             memory_boundary_bytes(&n, cut - 1, 3, 64, PRECISION_FP32),
                         memory_activation_bytes(&n, 1, n.layer_count - 1, 3, 64, PRECISION_FP32));
    }
}

static void memory_may_end_anywhere(void **state)
{
    (void)state;
    struct network n = preset("gpt2");
    struct error err = {0};
    struct memory_table table = {.count = 77};
    struct arena arena = {0};
    alloc_test_fail_at(1);
    assert_int_equal(memory_parameters(&n, 0, 14, &arena, &table, &err), STATUS_NO_MEMORY);
    alloc_test_fail_at(1);
    assert_int_equal(memory_activations(&n, 0, 14, 2, 96, PRECISION_FP32, &arena, &table, &err), STATUS_NO_MEMORY);
    alloc_test_fail_at(1);
    assert_int_equal(memory_inputs(&n, 0, 14, 2, 96, PRECISION_FP32, &arena, &table, &err), STATUS_NO_MEMORY);
    alloc_test_fail_at(1);
    assert_int_equal(memory_workspace(&n, 0, 14, UNIT_LOSS, false, 2, 96, &arena, &table, &err),
                     STATUS_NO_MEMORY);
    alloc_test_fail_at(0);
    assert_int_equal(table.count, 77);
    arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parameters_of_a_gpt2_block),
        cmocka_unit_test(embedding_tables_lie_row_behind_row),
        cmocka_unit_test(states_with_bf16),
        cmocka_unit_test(sixteen_bits_throughout),
        cmocka_unit_test(activations_of_gpt2),
        cmocka_unit_test(inputs_of_layers),
        cmocka_unit_test(activations_of_encoders),
        cmocka_unit_test(activations_of_llama),
        cmocka_unit_test(workspaces_of_gpt2),
        cmocka_unit_test(workspaces_of_trees),
        cmocka_unit_test(workspaces_of_inputs),
        cmocka_unit_test(logits_are_those_of_a_piece),
        cmocka_unit_test(profiles_have_what_they_say),
        cmocka_unit_test(sizes_are_those_of_the_tables),
        cmocka_unit_test(shards_add_up),
        cmocka_unit_test(memory_may_end_anywhere),
    };
    return cmocka_run_group_tests_name("models/job/memory.h", tests, NULL, NULL);
}
