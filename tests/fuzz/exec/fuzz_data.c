/*
 * The readers of data on any bytes. First tokens, in each of the three formats and for several jobs. A second reader
 * below, written only from the formats' description, computes the right result: which files are refused, and the number
 * and values of the tokens. Every sample of a batch must then be a range of these tokens. Then images: a whole number
 * of records with valid labels, or refused; every sample of a batch must be one of the records.
 */
#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "exec/files/data.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_batch(const struct data_source *source, uint64_t minibatch, int32_t *out)
{
    struct error err = {0};
    enum status status = data_batch(source, minibatch, out, &err);
    assert(status == STATUS_OK);
}

/* --- the second reader ------------------------------------------------------------------------ */

struct tokens {
    uint64_t *values; /* the caller frees them */
    uint64_t count;
};

static uint64_t number(const uint8_t *bytes, size_t width)
{
    uint64_t value = 0;
    for (size_t i = width; i > 0; i--) value = value << 8 | bytes[i - 1];
    return value;
}

/* Returns false if the bytes are no file of the format. */
static bool read_tokens(uint32_t format, const uint8_t *data, size_t size, struct tokens *out)
{
    size_t begin = 0, width = 1;
    if (format == DATA_NANOGPT) width = 2;
    if (format == DATA_LLMC) {
        begin = 1024;
        if (size < begin) return false;
        uint64_t magic = number(data, 4), version = number(data + 4, 4);
        if (magic == 20240520 && version == 1)
            width = 2;
        else if (magic == 20240801 && version == 7)
            width = 4;
        else
            return false;
        if ((size - begin) / width != number(data + 8, 4)) return false;
    }
    if ((size - begin) % width != 0) return false;
    out->count = (size - begin) / width;
    out->values = calloc(out->count + 1, sizeof *out->values);
    assert(out->values);
    for (uint64_t i = 0; i < out->count; i++) out->values[i] = number(data + begin + i * width, width);
    return true;
}

static bool usable(const struct tokens *tokens, const struct job *job)
{
    if (tokens->count <= job->sequence) return false;
    for (uint64_t i = 0; i < tokens->count; i++)
        if (tokens->values[i] >= job->network.vocabulary) return false;
    return true;
}

static bool is_run(const struct tokens *tokens, const int32_t *sample, uint64_t length)
{
    for (uint64_t start = 0; start + length <= tokens->count; start++) {
        uint64_t same = 0;
        while (same < length && sample[same] >= 0 &&
               (uint64_t)sample[same] == tokens->values[start + same])
            same++;
        if (same == length) return true;
    }
    return false;
}

/* --- one file, one job ------------------------------------------------------------------------ */

static void check_batches(const struct data_source *source, const struct tokens *tokens,
                          const struct job *job)
{
    const uint64_t minibatches[] = {0, 1, 2, 3, 12345, JOB_MINIBATCHES_MAX - 1};
    uint64_t length = job->sequence + 1;
    size_t bytes = job->microbatch * length * sizeof(int32_t);
    int32_t *batch = malloc(bytes), *again = malloc(bytes); /* exact, for the address sanitizer */
    assert(batch && again);
    for (size_t i = 0; i < sizeof minibatches / sizeof *minibatches; i++) {
        read_batch(source, minibatches[i], batch);
        for (uint64_t b = 0; b < job->microbatch; b++)
            assert(is_run(tokens, batch + b * length, length));
        read_batch(source, minibatches[i], again);
        assert(memcmp(batch, again, bytes) == 0);
    }
    free(batch);
    free(again);
}

static void try_job(const struct job *job, const uint8_t *data, size_t size)
{
    static const char place[] = "data of job 'fuzz': input: ";
    struct tokens tokens = {0};
    bool good = read_tokens(job->data_format, data, size, &tokens) && usable(&tokens, job);
    struct data_source *source = NULL;
    struct error err = {0};
    enum status status = data_parse(job, "input", data, size, &source, &err);
    if (good) {
        assert(status == STATUS_OK && source && err.text[0] == '\0');
        assert(data_tokens(source) == tokens.count);
        check_batches(source, &tokens, job);
    } else {
        assert(status == STATUS_BAD_INPUT && !source);
        assert(strncmp(err.text, place, strlen(place)) == 0);
    }
    data_close(source);
    free(tokens.values);
}

/* --- images ------------------------------------------------------------------------------------- */

static bool is_record(const struct job *job, const uint8_t *data, size_t size, int32_t label,
                      const float *pixels)
{
    const struct network *n = &job->network;
    size_t width = job->data_format == DATA_CIFAR10 ? 1 : 2;
    size_t count = n->channels * n->image * n->image, record = width + count;
    for (size_t i = 0; i < size; i += record) {
        bool equal = number(data + i, width) == (uint64_t)label;
        for (size_t j = 0; equal && j < count; j++) {
            float difference = (float)data[i + width + j] / 127.5f - 1.0f - pixels[j];
            equal = difference < 1e-6f && difference > -1e-6f;
        }
        if (equal) return true;
    }
    return false;
}

static void try_images(uint32_t format, uint64_t image, uint64_t classes, const uint8_t *data,
                       size_t size)
{
    struct job job = {.name = "fuzz", .sequence = 2, .microbatch = 2, .microbatches = 1, .seed = 5,
                      .data_format = format};
    struct network *n = &job.network;
    n->family = NETWORK_VIT;
    n->image = n->patch = image;
    n->channels = image == 32 ? 3 : 1;
    n->classes = classes;
    size_t width = format == DATA_CIFAR10 ? 1 : 2, count = n->channels * image * image;
    bool good = size > 0 && size % (width + count) == 0;
    for (size_t i = 0; good && i < size; i += width + count)
        good = number(data + i, width) < classes;
    struct data_source *source = NULL;
    struct error err = {0};
    enum status status = data_parse(&job, "input", data, size, &source, &err);
    assert(status == (good ? STATUS_OK : STATUS_BAD_INPUT) && !source == !good);
    if (good) {
        int32_t *batch = malloc(job_batch_bytes(&job));
        assert(batch);
        read_batch(source, 3, batch);
        const float *pixels = (const float *)(const void *)(batch + job.microbatch);
        for (uint64_t b = 0; b < job.microbatch; b++)
            assert(is_record(&job, data, size, batch[b], pixels + b * count));
        free(batch);
    }
    data_close(source);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    try_images(DATA_CIFAR10, 32, 10, data, size);
    try_images(DATA_IMAGES, 2, 300, data, size);
    try_images(DATA_IMAGES, 1, 65536, data, size);
    /* Vocabularies on both sides of what one byte and two bytes can hold; GPT-2's. */
    static const struct {
        uint64_t vocabulary, sequence, microbatch;
    } kinds[] = {{255, 3, 2}, {256, 7, 3}, {50257, 31, 2}, {65536, 1, 5}, {128256, 15, 2}};
    for (uint32_t format = 0; format < DATA_NONE; format++)
        for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
            struct job job = {.name = "fuzz",
                              .sequence = kinds[i].sequence,
                              .microbatch = kinds[i].microbatch, .microbatches = 1,
                              .seed = 7 + i,
                              .data_format = format};
            job.network.vocabulary = kinds[i].vocabulary;
            try_job(&job, data, size);
        }
    return 0;
}
