/*
 * Weights: initial values, safetensors files both ways, refused inputs and their messages,
 * fingerprints.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "exec/files/safetensors.h"
#include "exec/files/weights.h"
#include "tests/support/exec/support_gpt2.h"
#include "tests/support/support_models.h"

static char path[256];

static struct job tiny_job(void)
{
    struct job job = {.name = "tiny",
                      .network = support_gpt2_network(12, 3, 2, 29, 7),
                      .sequence = 5,
                      .microbatch = 2, .microbatches = 1,
                      .seed = 42,
                      .optimizer = {.kind = OPTIMIZER_ADAMW, .learning_rate = 0.1},
                      .weights_in = path};
    return job;
}

static void init(struct trainer *trainer, const struct job *job, uint64_t blocks_per_shard)
{
    struct trainer_options options = {.blocks_per_shard = blocks_per_shard, .slices = 1};
    trainer_init(trainer, job, &options);
    for (uint32_t s = 0; s < trainer->shard_count; s++)
        weights_init(&trainer->job, &trainer->state_tables[s], trainer->states[s]);
}

static uint64_t fingerprint(const struct trainer *trainer)
{
    return weights_fingerprint(&trainer->job, trainer->state_tables, trainer->shard_count,
                               trainer->states);
}

/* --- initial values --------------------------------------------------------------------------- */

/* Checks mean, deviation and kurtosis of n normal numbers, each within six of its standard errors. */
static void check_normal(const float *x, uint64_t count, double deviation)
{
    double n = (double)count, mean = 0, square = 0, fourth = 0, neighbours = 0, halves = 0;
    for (uint64_t i = 0; i < count; i++) {
        double z = (double)x[i] / deviation;
        assert_true(fabs(z) < 6);
        mean += z / n;
        square += z * z / n;
        fourth += z * z * z * z / n;
        if (i > 0) neighbours += z * (double)x[i - 1] / deviation / n;
        if (i >= 32) halves += z * (double)x[i - 32] / deviation / n; /* cosine and sine of a draw */
    }
    assert_true(fabs(mean) < 6 / sqrt(n));
    assert_true(fabs(square - 1) < 6 * sqrt(2 / n));
    assert_true(fabs(fourth - 3) < 6 * sqrt(96 / n));
    assert_true(fabs(neighbours) < 6 / sqrt(n));
    assert_true(fabs(halves) < 6 / sqrt(n));
}

static void test_init(void **state)
{
    (void)state;
    struct job job = tiny_job();
    job.network = support_gpt2_network(96, 3, 2, 1009, 130);
    struct trainer trainer = {0};
    init(&trainer, &job, 2);
    uint64_t count;
    const float *x = trainer_tensor(&trainer, "wte.weight", &count);
    check_normal(x, count, 0.02);
    const float *positions = trainer_tensor(&trainer, "wpe.weight", &count);
    check_normal(positions, count, 0.02);
    assert_memory_not_equal(x, positions, count * sizeof *x);
    x = trainer_tensor(&trainer, "h.1.mlp.c_fc.weight", &count);
    check_normal(x, count, 0.02);
    /* two blocks: divided by sqrt(4) */
    x = trainer_tensor(&trainer, "h.1.mlp.c_proj.weight", &count);
    check_normal(x, count, 0.01);
    x = trainer_tensor(&trainer, "h.0.attn.c_proj.weight", &count);
    check_normal(x, count, 0.01);
    x = trainer_tensor(&trainer, "h.0.ln_2.weight", &count);
    for (uint64_t i = 0; i < count; i++) assert_true(x[i] == 1.0f);
    x = trainer_tensor(&trainer, "h.0.attn.c_attn.bias", &count);
    for (uint64_t i = 0; i < count; i++) assert_true(x[i] == 0.0f);
    /* moments */
    for (uint32_t s = 0; s < trainer.shard_count; s++)
        for (uint64_t i = 0, n = trainer.parameters[s].bytes / sizeof(float); i < 2 * n; i++)
            assert_true(trainer.states[s][n + i] == 0.0f);
    trainer_release(&trainer);
}

/* Equal weights however the network is cut, others for another seed; and for this seed these bits, on any processor. */
static void test_init_is_a_function_of_the_seed(void **state)
{
    (void)state;
    struct job job = tiny_job();
    struct trainer one = {0}, two = {0}, other = {0};
    init(&one, &job, 1);
    init(&two, &job, 2);
    job.seed = 43;
    init(&other, &job, 1);
    assert_true(fingerprint(&one) == fingerprint(&two));
    assert_true(fingerprint(&one) != fingerprint(&other));
    assert_true(fingerprint(&one) == UINT64_C(0x4307da90f3cbfbae));
    trainer_release(&one);
    trainer_release(&two);
    trainer_release(&other);
}

static void test_fingerprint_sees_each_bit(void **state)
{
    (void)state;
    struct job job = tiny_job();
    struct trainer trainer = {0};
    init(&trainer, &job, 1);
    uint64_t before = fingerprint(&trainer);
    for (uint32_t s = 0; s < trainer.shard_count; s++)
        for (uint32_t i = 0; i < trainer.parameters[s].count; i++) {
            const struct memory_entry *entry = &trainer.parameters[s].entries[i];
            unsigned char *bytes = (unsigned char *)trainer.states[s] + entry->offset_bytes;
            uint64_t places[] = {0, entry->bytes / 2, entry->bytes - 1};
            for (size_t k = 0; k < 3; k++) {
                bytes[places[k]] ^= 1;
                assert_true(fingerprint(&trainer) != before);
                bytes[places[k]] ^= 1;
            }
        }
    assert_true(fingerprint(&trainer) == before);
    trainer_release(&trainer);
}

/* --- there and back --------------------------------------------------------------------------- */

static void write_weights(struct trainer *trainer)
{
    struct error err = {0};
    if (weights_write(&trainer->job, trainer->state_tables, trainer->shard_count, trainer->states,
                      path, &err) != STATUS_OK)
        fail_msg("%s", err.text);
}

static enum status read_weights(struct trainer *trainer, struct error *err)
{
    return weights_read(&trainer->job, trainer->state_tables, trainer->shard_count, trainer->states,
                        err);
}

static void test_round_trip(void **state)
{
    (void)state;
    for (int tied = 0; tied < 2; tied++) {
        struct job job = tiny_job();
        job.network.tied_head = tied;
        struct trainer from = {0}, to = {0};
        init(&from, &job, 1);
        job.seed = 1;
        init(&to, &job, 2);
        uint64_t n = to.parameters[0].bytes / sizeof(float);
        to.states[0][n] = 5.0f; /* a moment */
        write_weights(&from);
        struct error err = {0};
        if (read_weights(&to, &err) != STATUS_OK) fail_msg("%s", err.text);
        assert_true(fingerprint(&from) == fingerprint(&to));
        assert_true(to.states[0][n] == 0.0f);

        struct safetensors *file = NULL;
        assert_int_equal(safetensors_open(path, &file, &err), STATUS_OK);
        /* embedding 2, two blocks of 12, norm 2, head 1 when it is its own */
        assert_int_equal(safetensors_count(file), 2 + 24 + 2 + !tied);
        assert_string_equal(safetensors_at(file, 0)->name, "wte.weight");
        assert_non_null(safetensors_find(file, "h.1.mlp.c_proj.bias"));
        assert_null(safetensors_find(file, "transformer.wte.weight"));
        safetensors_close(file);
        trainer_release(&from);
        trainer_release(&to);
    }
}

/* A file has the values in full, whatever the precision of the job that wrote it or reads it. */
static void test_round_trip_bf16(void **state)
{
    (void)state;
    for (int narrow = 0; narrow < 2; narrow++) {
        struct job job = tiny_job();
        struct trainer from = {0}, to = {0}, plain = {0};
        struct error err = {0};
        init(&plain, &job, 1); /* of the same seed: the same values */
        job.precision = PRECISION_BF16_WEIGHTS;
        init(&from, &job, 1);
        assert_true(fingerprint(&from) == fingerprint(&plain));
        job.seed = 1;
        job.precision = narrow ? PRECISION_BF16_WEIGHTS : PRECISION_FP32;
        init(&to, &job, 2);
        assert_true(fingerprint(&from) != fingerprint(&to));
        write_weights(&from);
        if (read_weights(&to, &err) != STATUS_OK) fail_msg("%s", err.text);
        assert_true(fingerprint(&from) == fingerprint(&to));
        struct safetensors *file = NULL;
        assert_int_equal(safetensors_open(path, &file, &err), STATUS_OK);
        for (size_t i = 0; i < safetensors_count(file); i++)
            assert_string_equal(safetensors_at(file, i)->type_name, "F32");
        safetensors_close(file);
        struct weights_walk walk = {.job = &to.job, .tables = to.state_tables,
                                    .shard_count = to.shard_count, .states = to.states};
        struct weights_tensor tensor;
        while (weights_walk_next(&walk, &tensor)) {
            assert_true((tensor.rounded != NULL) == (narrow && tensor.spec->matrix));
            for (uint64_t i = 0; tensor.rounded && i < tensor.spec->elements; i++)
                assert_int_equal(tensor.rounded[i], bf16_nearest(tensor.values[i]));
        }
        trainer_release(&from);
        trainer_release(&to);
        trainer_release(&plain);
    }
}

static void test_write_fails(void **state)
{
    (void)state;
    struct job job = tiny_job();
    struct trainer trainer = {0};
    init(&trainer, &job, 1);
    struct error err = {0};
    assert_int_equal(weights_write(&trainer.job, trainer.state_tables, trainer.shard_count,
                                   trainer.states, "/nowhere/at/all", &err),
                     STATUS_BAD_INPUT);
    assert_non_null(strstr(err.text, "weights of job 'tiny': "));
    trainer_release(&trainer);
}

/* --- files made by hand ----------------------------------------------------------------------- */

/* Header and data as a file in memory; the caller frees it. */
static unsigned char *assemble(const char *header, const void *data, size_t data_bytes,
                               size_t *length)
{
    size_t header_bytes = strlen(header);
    unsigned char *file = malloc(8 + header_bytes + data_bytes);
    assert_non_null(file);
    for (int i = 0; i < 8; i++) file[i] = (unsigned char)((uint64_t)header_bytes >> 8 * i);
    memcpy(file + 8, header, header_bytes);
    if (data_bytes > 0) memcpy(file + 8 + header_bytes, data, data_bytes);
    *length = 8 + header_bytes + data_bytes;
    return file;
}

static void check_parse(const char *header, size_t data_bytes, const char *expected)
{
    static const unsigned char data[64];
    size_t length;
    unsigned char *file = assemble(header, data, data_bytes, &length);
    struct safetensors *parsed = NULL;
    struct error err = {0};
    enum status status = safetensors_parse("f", file, length, &parsed, &err);
    if (!expected) {
        if (status != STATUS_OK) fail_msg("%s: %s", header, err.text);
    } else {
        assert_int_equal(status, STATUS_BAD_INPUT);
        assert_null(parsed);
        assert_string_equal(err.text, expected);
    }
    safetensors_close(parsed);
    free(file);
}

static void test_parse(void **state)
{
    (void)state;
#define A(shape, range) "\"a\":{\"dtype\":\"F32\",\"shape\":[" shape "],\"data_offsets\":[" range "]}"
#define B(shape, range) "\"b\":{\"dtype\":\"F16\",\"shape\":[" shape "],\"data_offsets\":[" range "]}"
    check_parse("{}", 0, NULL);
    check_parse("{" A("2,3", "0,24") "}  ", 24, NULL);
    check_parse("{" B("2", "24,28") "," A("2,3", "0,24") ",\"__metadata__\":{\"k\":\"v\"}}", 28,
                NULL);
    check_parse("{" A("", "0,4") "}", 4, NULL);
    check_parse("{" A("0,7", "0,0") "," B("1", "0,2") "}", 2, NULL);

    check_parse("{" A("2,3", "0,24") "}", 25,
                "f: 25 bytes of data (the tensors end at 24)");
    check_parse("{" A("2,3", "0,24") "}", 23,
                "f: tensor 'a' ends at byte 24 of the data (the file has 23)");
    check_parse("{" A("2,3", "0,20") "}", 24,
                "f: tensor 'a' has 20 bytes (expected 24 by its shape)");
    check_parse("{" A("2,3", "4,28") "}", 28,
                "f: tensor 'a' begins at byte 4 of the data (expected 0, where the one before it "
                "ends)");
    check_parse("{" A("2,3", "0,24") "," B("2", "22,26") "}", 26,
                "f: tensor 'b' begins at byte 22 of the data (expected 24, where the one before it "
                "ends)");
    check_parse("{" A("2", "8,0") "}", 8,
                "f: tensor 'a' has bad data_offsets (expected [begin, end])");
    check_parse("{" A("2", "-8,0") "}", 8,
                "f: tensor 'a' has bad data_offsets (expected [begin, end])");
    check_parse("{" A("2", "0,8,8") "}", 8,
                "f: tensor 'a' has bad data_offsets (expected [begin, end])");
    check_parse("{" A("4294967296,4294967296", "0,0") "}", 0,
                "f: tensor 'a' has more elements than 64 bits can count");
    check_parse("{" A("4611686018427387904", "0,0") "}", 0,
                "f: tensor 'a' has more bytes than 64 bits can count");
    check_parse("{" A("-1", "0,0") "}", 0, "f: tensor 'a' has a size that is not a natural number");
    check_parse("{" A("1.5", "0,0") "}", 0, "f: tensor 'a' has a size that is not a natural number");
    check_parse("{" A("1,1,1,1,1,1,1,1,1", "0,4") "}", 4,
                "f: tensor 'a' has 9 dimensions (limit is 8)");
    check_parse("{\"a\":{\"dtype\":\"F31\",\"shape\":[],\"data_offsets\":[0,4]}}", 4,
                "f: tensor 'a' has the unknown dtype 'F31'");
    check_parse("{\"a\":{\"shape\":[],\"data_offsets\":[0,4]}}", 4, "f: tensor 'a' has no dtype");
    check_parse("{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,4]}}", 4,
                "f: tensor 'a' has no shape (expected an array)");
    check_parse("{\"a\":{\"dtype\":\"F32\",\"shape\":[],\"offsets\":[0,4]}}", 4,
                "f: tensor 'a' has the unknown key 'offsets' (expected dtype, shape and "
                "data_offsets)");
    check_parse("{\"a\":7}", 0, "f: tensor 'a' is no object");
    check_parse("{\"__metadata__\":{\"k\":1}}", 0, "f: '__metadata__' is not an object of strings");
    check_parse("[]", 0, "f: the header is not an object");
    check_parse("{" A("", "0,4") "," A("", "0,4") "}", 4,
                "f: header, line 1, column 56: duplicate object key near '\"a\"'");
#undef A
#undef B
}

static void test_parse_lengths(void **state)
{
    (void)state;
    struct safetensors *parsed = NULL;
    struct error err = {0};
    assert_int_equal(safetensors_parse("f", "1234567", 7, &parsed, &err), STATUS_BAD_INPUT);
    assert_string_equal(err.text, "f: 7 bytes are too few for a safetensors file");
    err = (struct error){0};
    assert_int_equal(safetensors_parse("f", "\3\0\0\0\0\0\0\0{}", 10, &parsed, &err),
                     STATUS_BAD_INPUT);
    assert_string_equal(err.text, "f: a header of 3 bytes in a file of 10 (limit is 100000000; is "
                                  "it a safetensors file?)");
    err = (struct error){0};
    assert_int_equal(safetensors_parse("f", "\xff\xff\xff\xff\xff\xff\xff\xff{}", 10, &parsed, &err),
                     STATUS_BAD_INPUT);
}

/* Halves: 1.5, -2, the least normal and the least subnormal, the largest; the same as BF16. */
static void test_short_types(void **state)
{
    (void)state;
    static const uint16_t data[] = {0x3e00, 0xc000, 0x0400, 0x0001, 0x7bff, 0x8000,
                                    0x3fc0, 0xc000, 0x0080, 0x0001, 0x7f7f, 0x8000,
                                    0x7c00, 0x7e00, 0x7f80, 0x7fc0};
    static const float halves[] = {1.5f, -2.0f, 0x1p-14f, 0x1p-24f, 65504.0f, -0.0f};
    static const float brains[] = {1.5f, -2.0f, 0x1p-126f, 0x1p-133f, 0x1.fep127f, -0.0f};
    size_t length;
    unsigned char *memory = assemble(
        "{\"h\":{\"dtype\":\"F16\",\"shape\":[6],\"data_offsets\":[0,12]},"
        "\"b\":{\"dtype\":\"BF16\",\"shape\":[2,3],\"data_offsets\":[12,24]},"
        "\"bad\":{\"dtype\":\"F16\",\"shape\":[2],\"data_offsets\":[24,28]},"
        "\"bad2\":{\"dtype\":\"BF16\",\"shape\":[2],\"data_offsets\":[28,32]}}",
        data, sizeof data, &length);
    struct safetensors *file = NULL;
    struct error err = {0};
    assert_int_equal(safetensors_parse("f", memory, length, &file, &err), STATUS_OK);
    float out[6];
    assert_true(safetensors_floats(safetensors_find(file, "h"), out));
    assert_memory_equal(out, halves, sizeof halves);
    assert_true(safetensors_floats(safetensors_find(file, "b"), out));
    assert_memory_equal(out, brains, sizeof brains);
    assert_false(safetensors_floats(safetensors_find(file, "bad"), out));
    assert_true(isinf(out[0]) && isnan(out[1]));
    assert_false(safetensors_floats(safetensors_find(file, "bad2"), out));
    assert_true(isinf(out[0]) && isnan(out[1]));
    safetensors_close(file);
    free(memory);
}

/* --- files that do not fit the network -------------------------------------------------------- */

/* The job's tensors as a list that a test may spoil before it is written. */
struct list {
    struct safetensors_tensor tensors[64];
    char names[64][128];
    size_t count;
};

static void list_of(struct trainer *trainer, const char *prefix, struct list *list)
{
    list->count = 0;
    for (uint32_t s = 0; s < trainer->shard_count; s++) {
        const struct plan_shard *shard = &trainer->shards[s];
        const struct memory_entry *entry = trainer->parameters[s].entries;
        for (uint64_t layer = shard->first_layer; layer < shard->first_layer + shard->layer_count;
             layer++) {
            struct tensor_spec specs[LAYER_TENSORS_MAX];
            uint32_t count = network_layer_tensors(&trainer->job.network, layer, specs);
            for (uint32_t i = 0; i < count; i++, entry++, list->count++) {
                struct safetensors_tensor *tensor = &list->tensors[list->count];
                snprintf(list->names[list->count], sizeof list->names[0], "%.16s%.100s", prefix,
                         specs[i].name);
                *tensor = (struct safetensors_tensor){
                    .name = list->names[list->count],
                    .rank = specs[i].rank,
                    .data = (unsigned char *)trainer->states[s] + entry->offset_bytes};
                memcpy(tensor->shape, specs[i].shape, sizeof specs[i].shape);
            }
        }
    }
}

static void write_list(struct list *list)
{
    struct error err = {0};
    if (safetensors_write(path, list->tensors, list->count, &err) != STATUS_OK)
        fail_msg("%s", err.text);
}

static void refuse(struct trainer *trainer, const char *expected)
{
    struct error err = {0};
    assert_int_equal(read_weights(trainer, &err), STATUS_BAD_INPUT);
    char text[512];
    snprintf(text, sizeof text, "weights of job 'tiny': %s: %s", path, expected);
    assert_string_equal(err.text, text);
}

static void test_read_refused(void **state)
{
    (void)state;
    struct job job = tiny_job();
    struct trainer from = {0}, to = {0};
    init(&from, &job, 1);
    init(&to, &job, 2);
    struct list list;

    list_of(&from, "transformer.", &list);
    write_list(&list);
    struct error err = {0};
    assert_int_equal(read_weights(&to, &err), STATUS_OK);
    assert_true(fingerprint(&from) == fingerprint(&to));

    list_of(&from, "", &list);
    list.tensors[5].shape[0] = 37; /* h.0.attn.c_attn.bias: 36 */
    write_list(&list);
    refuse(&to, "tensor 'h.0.attn.c_attn.bias' has shape [37] (expected [36])");

    list_of(&from, "", &list);
    list.tensors[4].shape[0] = 36; /* h.0.attn.c_attn.weight, stored (out, in) */
    list.tensors[4].shape[1] = 12;
    write_list(&list);
    refuse(&to, "tensor 'h.0.attn.c_attn.weight' has shape [36, 12] (expected [12, 36])");

    list_of(&from, "", &list);
    list.tensors[1].name = "wpe";
    write_list(&list);
    refuse(&to, "no tensor 'wpe.weight' (nor 'transformer.wpe.weight') among its 28; the network has no tensor 'wpe'");

    uint64_t count;
    float *x = trainer_tensor(&from, "h.1.ln_1.bias", &count);
    x[count - 1] = NAN;
    list_of(&from, "", &list);
    write_list(&list);
    refuse(&to, "tensor 'h.1.ln_1.bias' has a number that is not finite");

    remove(path);
    err = (struct error){0};
    assert_int_equal(read_weights(&to, &err), STATUS_BAD_INPUT);
    trainer_release(&from);
    trainer_release(&to);
}

/* --- the other families ----------------------------------------------------------------------- */

/* Two blocks of each; the names of a few tensors, as Hugging Face's files have them. */
static const struct family_file {
    const char *config, *base; /* the prefix of all names but the head's */
    size_t count;
    const char *names[3];
    const char *missing; /* the message about the first tensor of the second block */
} family_files[] = {
    {"{\"model_type\": \"llama\", \"num_hidden_layers\": 2, \"hidden_size\": 12, "
     "\"num_attention_heads\": 3, \"num_key_value_heads\": 1, \"intermediate_size\": 20, "
     "\"vocab_size\": 29, \"max_position_embeddings\": 7}",
     "model.", 1 + 2 * 9 + 2,
     {"model.embed_tokens.weight", "model.layers.1.mlp.down_proj.weight", "lm_head.weight"},
     "no tensor 'model.layers.1.self_attn.q_proj.weight' (nor 'layers.1.self_attn.q_proj.weight') "
     "among its 21; the network has no tensor 'x'"},
    {"{\"model_type\": \"bert\", \"num_hidden_layers\": 2, \"hidden_size\": 12, "
     "\"num_attention_heads\": 3, \"intermediate_size\": 20, \"vocab_size\": 29, "
     "\"max_position_embeddings\": 7}",
     "bert.", 5 + 2 * 16 + 5,
     {"bert.embeddings.LayerNorm.weight", "bert.encoder.layer.0.attention.self.key.bias",
      "cls.predictions.transform.dense.weight"},
     "no tensor 'bert.encoder.layer.1.attention.self.query.weight' (nor "
     "'encoder.layer.1.attention.self.query.weight') among its 42; the network has no tensor 'x'"},
    {"{\"model_type\": \"vit\", \"num_hidden_layers\": 2, \"hidden_size\": 12, "
     "\"num_attention_heads\": 3, \"intermediate_size\": 20, \"image_size\": 6, \"patch_size\": 2}",
     "vit.", 4 + 2 * 16 + 4,
     {"vit.embeddings.patch_embeddings.projection.weight",
      "vit.encoder.layer.1.layernorm_after.bias", "classifier.weight"},
     "no tensor 'vit.encoder.layer.1.layernorm_before.weight' (nor "
     "'encoder.layer.1.layernorm_before.weight') among its 40; the network has no tensor 'x'"},
};

static struct job family_job(const struct family_file *family)
{
    struct job job = tiny_job();
    struct arena arena = {0};
    struct error err = {0};
    if (support_network(family->config, &arena, &job.network, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    arena_release(&arena);
    job.sequence = network_tokens(&job.network, job.sequence);
    return job;
}

/* Renames all tensors to names without their base, and BERT's norms to the names of its first files. */
static void rename_all(struct list *list, const char *base, bool old_norms)
{
    size_t length = strlen(base);
    for (size_t i = 0; i < list->count; i++) {
        char *name = list->names[i];
        if (strncmp(name, base, length) == 0) memmove(name, name + length, strlen(name + length) + 1);
        char *norm = strstr(name, "LayerNorm.");
        if (old_norms && norm) strcpy(norm + 10, strcmp(norm + 10, "bias") ? "gamma" : "beta");
    }
}

static void test_families(void **state)
{
    (void)state;
    for (size_t f = 0; f < sizeof family_files / sizeof *family_files; f++) {
        const struct family_file *family = &family_files[f];
        struct job job = family_job(family);
        struct trainer from = {0}, to = {0};
        struct list list;
        init(&from, &job, 1);
        job.seed = 1;
        init(&to, &job, 2);
        uint64_t others = fingerprint(&to);

        /* there and back, in another cut */
        write_weights(&from);
        struct error err = {0};
        if (read_weights(&to, &err) != STATUS_OK) fail_msg("%s", err.text);
        assert_true(fingerprint(&from) == fingerprint(&to) && fingerprint(&to) != others);
        struct safetensors *file = NULL;
        assert_int_equal(safetensors_open(path, &file, &err), STATUS_OK);
        assert_int_equal(safetensors_count(file), family->count);
        for (size_t i = 0; i < 3; i++) assert_non_null(safetensors_find(file, family->names[i]));
        safetensors_close(file);

        /* under the names of the network without its head */
        weights_init(&to.job, &to.state_tables[1], to.states[1]);
        list_of(&from, "", &list);
        rename_all(&list, family->base, job.network.family == NETWORK_BERT);
        write_list(&list);
        if (read_weights(&to, &err) != STATUS_OK) fail_msg("%s", err.text);
        assert_true(fingerprint(&from) == fingerprint(&to));

        list_of(&from, "", &list);
        size_t second = from.parameters[0].count + from.parameters[1].count;
        list.tensors[second].name = "x";
        write_list(&list);
        refuse(&to, family->missing);
        trainer_release(&from);
        trainer_release(&to);
    }
}

/* A tensor of the head has no other name. */
static void test_head_is_missing(void **state)
{
    (void)state;
    struct job job = family_job(&family_files[0]);
    struct trainer from = {0};
    struct list list;
    init(&from, &job, 1);
    list_of(&from, "", &list);
    list.tensors[list.count - 1].name = "x";
    write_list(&list);
    refuse(&from, "no tensor 'lm_head.weight' among its 21; the network has no tensor 'x'");
    trainer_release(&from);
}

static int setup(void **state)
{
    (void)state;
    snprintf(path, sizeof path, "%s/test_exec_weights-%ld.tmp", BINARY_DIR, (long)getpid());
    /* on a thread that flushes subnormal numbers, as one that computes does */
    struct kernels *kernels = NULL;
    struct error err = {0};
    if (kernels_host_create(1, &kernels, &err) != STATUS_OK) return -1;
    kernels_host_attach(kernels);
    kernels_host_destroy(kernels);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    remove(path);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_init),
        cmocka_unit_test(test_init_is_a_function_of_the_seed),
        cmocka_unit_test(test_fingerprint_sees_each_bit),
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_round_trip_bf16), cmocka_unit_test(test_write_fails),
        cmocka_unit_test(test_parse),
        cmocka_unit_test(test_parse_lengths),
        cmocka_unit_test(test_short_types),
        cmocka_unit_test(test_read_refused),
        cmocka_unit_test(test_families),
        cmocka_unit_test(test_head_is_missing),
    };
    return cmocka_run_group_tests_name("exec/files/weights.h", tests, setup, teardown);
}
