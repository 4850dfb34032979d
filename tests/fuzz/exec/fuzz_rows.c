/*
 * The reader of rows on any bytes. A second reader, written from the description in models/rows/rows_file.h, tells
 * whether the bytes are a file of rows. Those that are train two jobs, with packs and without: every sample of a batch
 * must then be made of rows, with labels where the file marks learned tokens.
 */
#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "exec/files/data.h"
#include "models/rows/rows_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { VOCABULARY = 300, SEQUENCE = 5, SAMPLES = 3 };

static uint64_t number(const uint8_t *bytes, size_t width)
{
    uint64_t value = 0;
    for (size_t i = width; i > 0; i--) value = value << 8 | bytes[i - 1];
    return value;
}

static bool is_file(const uint8_t *data, size_t size)
{
    if (size < 64 || memcmp(data, "SPILROWS", 8) != 0 || number(data + 8, 4) != 1) return false;
    const uint64_t width = number(data + 12, 4), rows = number(data + 16, 8), tokens = number(data + 24, 8);
    if ((width != 2 && width != 4) || rows > size || tokens > size) return false;
    for (size_t i = 48; i < 64; i++)
        if (data[i] != 0) return false;
    if (size != 64 + 8 * (rows + 1) + (tokens + 63) / 64 * 8 + tokens * width) return false;
    if (number(data + 64, 8) != 0 || number(data + 64 + 8 * rows, 8) != tokens) return false;
    for (uint64_t r = 0; r < rows; r++)
        if (number(data + 64 + 8 * r, 8) > number(data + 72 + 8 * r, 8)) return false;
    const uint8_t *mask = data + 72 + 8 * rows;
    for (uint64_t i = tokens; i < (tokens + 63) / 64 * 64; i++)
        if (mask[i / 8] >> i % 8 & 1) return false;
    return true;
}

/* Checks that a sample's places are those of rows of the file, then padding. Returns its learned tokens. */
static uint64_t check_sample(const int32_t *sample, const int32_t *begins)
{
    const int32_t *tokens = sample, *labels = sample + SEQUENCE;
    uint64_t learned = 0, begin = 0;
    for (uint64_t i = 0; i < SEQUENCE; i++) {
        if (begins[i] == (int32_t)i) begin = i;
        assert(begins[i] == (int32_t)begin);
        assert(tokens[i] >= 0 && tokens[i] < VOCABULARY && labels[i] >= -1 && labels[i] < VOCABULARY);
        learned += labels[i] >= 0;
    }
    for (uint64_t i = 0; i + 1 < SEQUENCE; i++) /* within a row a label is the next token */
        if (labels[i] >= 0 && begins[i + 1] != (int32_t)i + 1) assert(labels[i] == tokens[i + 1]);
    return learned;
}

static void train(const uint8_t *data, size_t size, bool packs)
{
    struct job job = {.name = "fuzz", .sequence = SEQUENCE, .microbatch = SAMPLES, .microbatches = 1, .seed = 3,
                      .packs = packs, .data_format = DATA_ROWS};
    job.network.vocabulary = VOCABULARY;
    struct data_source *source = NULL;
    struct error err = {0};
    const enum status status = data_parse(&job, "input", data, size, &source, &err);
    if (!is_file(data, size)) assert(status == STATUS_BAD_INPUT && err.text[0] != '\0');
    if (status != STATUS_OK) {
        assert(status == STATUS_BAD_INPUT);
        return;
    }
    const struct parallel_microbatches all = {0, 1, 1};
    int32_t *batch = malloc(job_batch_bytes(&job)), *begins = malloc(job_batch_bytes(&job) / 2); /* exact */
    assert(batch && begins);
    for (uint64_t minibatch = 0; minibatch < 4; minibatch++) {
        uint64_t learned = 0;
        assert(data_batch(source, minibatch, batch, &err) == STATUS_OK);
        data_begins(source, minibatch, &all, begins);
        for (uint64_t s = 0; s < SAMPLES; s++) learned += check_sample(batch + s * 2 * SEQUENCE, begins + s * SEQUENCE);
        assert(data_targets(source, minibatch) == (learned > 0 ? learned : 1));
    }
    free(batch);
    free(begins);
    data_close(source);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rows_file file = {0};
    struct error err = {0};
    assert((rows_file_parse("input", data, size, &file, &err) == STATUS_OK) == is_file(data, size));
    train(data, size, false);
    train(data, size, true);
    return 0;
}
