/* Training data: the file formats and none, refused inputs, and the tokens of a batch. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "exec/files/data.h"

static void read_batch(const struct data_source *source, uint64_t minibatch, int32_t *out)
{
    struct error err = {0};
    if (data_batch(source, minibatch, out, &err) != STATUS_OK) fail_msg("%s", err.text);
}

static char path[256];

static void write_file(const void *data, size_t bytes)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_true(fwrite(data, 1, bytes, file) == bytes);
    assert_int_equal(fclose(file), 0);
}

static struct job job_of(uint32_t format, uint64_t vocabulary)
{
    struct job job = {.name = "a",
                      .sequence = 5,
                      .microbatch = 3, .microbatches = 1,
                      .seed = 11,
                      .data = format == DATA_NONE ? NULL : path,
                      .data_format = format};
    job.network.vocabulary = vocabulary;
    return job;
}

static struct data_source *open_good(const struct job *job)
{
    struct data_source *source = NULL;
    struct error err = {0};
    if (data_open(job, &source, &err) != STATUS_OK) fail_msg("%s", err.text);
    return source;
}

/* Expects "data of job 'a': PATH: " and then `expected`. */
static void refuse(const struct job *job, enum status status, const char *expected)
{
    struct data_source *source = NULL;
    struct error err = {0};
    assert_int_equal(data_open(job, &source, &err), status);
    assert_null(source);
    char text[512];
    snprintf(text, sizeof text, "data of job 'a': %s: %s", path, expected);
    assert_string_equal(err.text, text);
}

/* Returns token i: 7 i mod 251, so that a run of tokens shows where it begins. */
static uint32_t token(uint64_t i)
{
    return (uint32_t)(7 * i % 251);
}

/* Each sample of a few batches is a run of the file's tokens; several places are drawn. */
static void check_batches(const struct data_source *source, const struct job *job, uint64_t tokens)
{
    int32_t batch[3 * 6];
    bool begins[251] = {0};
    int different = 0;
    assert_true(data_tokens(source) == tokens);
    for (uint64_t minibatch = 0; minibatch < 40; minibatch++) {
        read_batch(source, minibatch, batch);
        for (uint64_t b = 0; b < job->microbatch; b++) {
            const int32_t *sample = batch + b * 6;
            /* 7 * 36 = 252 = 1 mod 251: the inverse of 7 is 36 */
            uint64_t start = (uint64_t)sample[0] * 36 % 251;
            assert_true(start + 5 < tokens);
            for (uint64_t i = 0; i < 6; i++)
                assert_int_equal(sample[i], (int32_t)token(start + i));
            if (!begins[start]) different++;
            begins[start] = true;
        }
    }
    assert_true(different > 60);
}

static void test_text(void **state)
{
    (void)state;
    unsigned char text[200];
    for (uint64_t i = 0; i < sizeof text; i++) text[i] = (unsigned char)token(i);
    write_file(text, sizeof text);
    struct job job = job_of(DATA_TEXT, 251);
    struct data_source *source = open_good(&job);
    check_batches(source, &job, 200);
    data_close(source);
    /* 7 * 35 = 245 is the largest byte of the first 36; a vocabulary of 245 refuses it */
    job.network.vocabulary = 245;
    refuse(&job, STATUS_BAD_INPUT, "token 35 is 245 (expected less than the vocabulary, 245)");
}

static void test_nanogpt(void **state)
{
    (void)state;
    uint16_t tokens[201];
    for (uint64_t i = 0; i < 201; i++) tokens[i] = (uint16_t)token(i);
    write_file(tokens, 400);
    struct job job = job_of(DATA_NANOGPT, 50257);
    struct data_source *source = open_good(&job);
    check_batches(source, &job, 200);
    data_close(source);
    write_file(tokens, 401);
    refuse(&job, STATUS_BAD_INPUT, "401 bytes (expected tokens of 2 bytes)");
    tokens[199] = 50257;
    write_file(tokens, 400);
    refuse(&job, STATUS_BAD_INPUT, "token 199 is 50257 (expected less than the vocabulary, 50257)");
}

/* Known files are not scanned again; a wrong token is reported when it is read, a wrong length at once. */
static void test_known_files(void **state)
{
    (void)state;
    uint16_t tokens[20];
    int32_t batch[3 * 6];
    struct job job = job_of(DATA_NANOGPT, 50257);
    struct data_source *source = NULL;
    struct error err = {0};
    for (uint64_t i = 0; i < 20; i++) tokens[i] = 50257;
    write_file(tokens, sizeof tokens);
    if (data_open_known(&job, &source, &err) != STATUS_OK) fail_msg("%s", err.text);
    assert_int_equal(data_batch(source, 0, batch, &err), STATUS_BAD_INPUT);
    assert_non_null(strstr(err.text, "is 50257 (expected less than the vocabulary, 50257)"));
    data_close(source);
    source = NULL;
    err = (struct error){0};
    write_file(tokens, 10);
    assert_int_equal(data_open_known(&job, &source, &err), STATUS_BAD_INPUT);
    assert_null(source);
}

struct llmc {
    uint32_t header[256];
    union {
        uint16_t narrow[200];
        uint32_t wide[200];
    } tokens;
};

static void test_llmc(void **state)
{
    (void)state;
    struct llmc file = {.header = {20240520, 1, 200}};
    for (uint64_t i = 0; i < 200; i++) file.tokens.narrow[i] = (uint16_t)token(i);
    write_file(&file, 1024 + 400);
    struct job job = job_of(DATA_LLMC, 50257);
    struct data_source *source = open_good(&job);
    check_batches(source, &job, 200);
    data_close(source);
}

static void test_llmc_wide(void **state)
{
    (void)state;
    struct llmc file = {.header = {20240801, 7, 200}};
    for (uint64_t i = 0; i < 200; i++) file.tokens.wide[i] = token(i);
    write_file(&file, 1024 + 800);
    struct job job = job_of(DATA_LLMC, 128256);
    struct data_source *source = open_good(&job);
    check_batches(source, &job, 200);
    data_close(source);
    file.tokens.wide[3] = 0x80000001;
    write_file(&file, 1024 + 800);
    refuse(&job, STATUS_BAD_INPUT,
           "token 3 is 2147483649 (expected less than the vocabulary, 128256)");
}

static void test_llmc_refused(void **state)
{
    (void)state;
    struct llmc file = {.header = {20240520, 1, 200}};
    struct job job = job_of(DATA_LLMC, 50257);
    write_file(&file, 1023);
    refuse(&job, STATUS_BAD_INPUT, "1023 bytes are too few (an llm.c file has a header of 1024)");
    write_file(&file, 1024 + 399);
    refuse(&job, STATUS_BAD_INPUT,
           "1423 bytes (expected 1424: the header announces 200 tokens of 2 bytes)");
    file.header[1] = 2;
    write_file(&file, 1024 + 400);
    refuse(&job, STATUS_BAD_INPUT, "unknown version 2 (expected 1)");
    file.header[0] = 20240326;
    write_file(&file, 1024 + 400);
    refuse(&job, STATUS_BAD_INPUT, "bad magic number 20240326 (expected 20240520 or 20240801)");
    file.header[0] = 20240520;
    file.header[1] = 1;
    file.header[2] = 5;
    write_file(&file, 1024 + 10);
    refuse(&job, STATUS_BAD_INPUT,
           "5 tokens (expected at least 6, one sample and the next token)");
}

static void test_files_refused(void **state)
{
    (void)state;
    struct job job = job_of(DATA_TEXT, 256);
    write_file("", 0);
    refuse(&job, STATUS_BAD_INPUT,
           "0 tokens (expected at least 6, one sample and the next token)");
    remove(path);
    struct data_source *source = NULL;
    struct error err = {0};
    assert_int_equal(data_open(&job, &source, &err), STATUS_BAD_INPUT);
    assert_non_null(strstr(err.text, "No such file or directory"));
    job.data = "/";
    err = (struct error){0};
    assert_int_equal(data_open(&job, &source, &err), STATUS_BAD_INPUT);
    assert_non_null(strstr(err.text, "'/' is not a regular file"));
    /* a pipe without a writer: refused, not waited for */
    assert_int_equal(mkfifo(path, 0600), 0);
    job.data = path;
    err = (struct error){0};
    assert_int_equal(data_open(&job, &source, &err), STATUS_BAD_INPUT);
    assert_non_null(strstr(err.text, "is not a regular file"));
    remove(path);
}

/* The shortest file: one sample, always the same. */
static void test_one_sample(void **state)
{
    (void)state;
    write_file("spills", 6);
    struct job job = job_of(DATA_TEXT, 256);
    struct data_source *source = open_good(&job);
    int32_t batch[18];
    read_batch(source, 123456789, batch);
    for (int i = 0; i < 18; i++) assert_int_equal(batch[i], "spills"[i % 6]);
    data_close(source);
}

/* Drawn tokens: in range, spread out, a function only of seed and minibatch. */
static void test_none(void **state)
{
    (void)state;
    struct job job = job_of(DATA_NONE, 97);
    struct data_source *source = open_good(&job);
    job.seed = 12;
    struct data_source *other = open_good(&job);
    assert_true(data_tokens(source) == 0);
    int32_t first[18], again[18], changed[18];
    int counts[97] = {0}, equal = 0;
    for (uint64_t minibatch = 0; minibatch < 2000; minibatch++) {
        read_batch(source, minibatch, first);
        read_batch(other, minibatch, changed);
        for (int i = 0; i < 18; i++) {
            assert_true(first[i] >= 0 && first[i] < 97);
            counts[first[i]]++;
            equal += first[i] == changed[i];
        }
    }
    /* 36000 draws of 97: 371 each, standard deviation 19 */
    for (int i = 0; i < 97; i++) assert_in_range(counts[i], 371 - 6 * 19, 371 + 6 * 19);
    assert_in_range(equal, 371 - 6 * 19, 371 + 6 * 19);
    read_batch(source, 7, first);
    read_batch(source, 8, again);
    assert_memory_not_equal(first, again, sizeof first);
    read_batch(source, 7, again);
    assert_memory_equal(first, again, sizeof first);
    data_close(source);
    data_close(other);
}

static int setup(void **state)
{
    (void)state;
    snprintf(path, sizeof path, "%s/test_exec_data-%ld.tmp", BINARY_DIR, (long)getpid());
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    remove(path);
    return 0;
}

/* --- words to guess --------------------------------------------------------------------------- */

static struct job masked_job(uint32_t format, uint64_t vocabulary)
{
    struct job job = job_of(format, vocabulary);
    job.network.family = NETWORK_BERT;
    job.network.positions = 90;
    job.network.token_types = 2;
    job.network.mask_token = 4;
    job.sequence = 70;
    job.microbatch = 6;
    return job;
}

/*
 * 300 minibatches of 420 tokens. Of 126 000, 15 % are chosen: 18 900, a standard deviation of 127; of
 * those 80 % masked, 10 % random (of which 1 in 250 is the token itself) and 10 % as they were: within
 * five standard deviations.
 */
static void test_masks(void **state)
{
    (void)state;
    enum { MINIBATCHES = 300, ROW = 3 * 70 };
    unsigned char text[2000];
    for (uint64_t i = 0; i < sizeof text; i++) text[i] = (unsigned char)token(i);
    write_file(text, sizeof text);
    struct job job = masked_job(DATA_TEXT, 300);
    struct data_source *source = open_good(&job), *again = open_good(&job);
    static int32_t batch[6 * ROW], other[6 * ROW];
    assert_true(job_batch_bytes(&job) == sizeof batch);
    uint64_t chosen = 0, masked = 0, kept = 0, random = 0;
    for (uint64_t minibatch = 0; minibatch < MINIBATCHES; minibatch++) {
        read_batch(source, minibatch, batch);
        read_batch(again, MINIBATCHES - 1 - minibatch, other); /* in any order ... */
        read_batch(again, minibatch, other);                   /* ... the same bits */
        assert_memory_equal(batch, other, sizeof batch);
        uint64_t chosen_before = chosen;
        for (uint64_t i = 0; i < 6 * 70; i++) {
            const int32_t *word = batch + i / 70 * ROW + i % 70;
            assert_int_equal(word[2 * 70], 300 + 90); /* token type 0 */
            if (word[70] < 0) {
                assert_int_equal(word[70], -1);
                assert_in_range(word[0], 0, 250);
                continue;
            }
            assert_in_range(word[70], 0, 250);
            chosen++;
            masked += word[0] == DATA_TEXT_MASK;
            kept += word[0] == word[70];
            random += word[0] != DATA_TEXT_MASK && word[0] != word[70];
            assert_in_range(word[0], 0, 256);
        }
        assert_true(chosen > chosen_before);
    }
    assert_in_range(chosen, 18900 - 5 * 127, 18900 + 5 * 127);
    assert_in_range(masked, chosen * 8 / 10 - 5 * 56, chosen * 8 / 10 + 5 * 56);
    assert_in_range(kept, chosen / 10 - 5 * 42, chosen / 10 + 5 * 42);
    assert_in_range(random, chosen / 10 - 5 * 42, chosen / 10 + 5 * 42);
    data_close(source);
    data_close(again);
}

/* The seed decides which word is guessed; a sample is a run of tokens; T tokens are enough. */
static void test_masks_of_numbers(void **state)
{
    (void)state;
    uint16_t tokens[70];
    for (uint64_t i = 0; i < 70; i++) tokens[i] = (uint16_t)(300 + i);
    write_file(tokens, sizeof tokens);
    struct job job = masked_job(DATA_NANOGPT, 400);
    static int32_t batch[6 * 3 * 70], other[6 * 3 * 70];
    struct data_source *source = open_good(&job);
    read_batch(source, 5, batch);
    bool mask_seen = false;
    for (uint64_t i = 0; i < 6 * 70; i++) {
        const int32_t *word = batch + i / 70 * 210 + i % 70;
        assert_int_equal(word[70] < 0 ? word[0] : word[70], 300 + (int32_t)(i % 70));
        mask_seen = mask_seen || word[0] == 4;
    }
    assert_true(mask_seen);
    data_close(source);
    job.seed++;
    source = open_good(&job);
    read_batch(source, 5, other);
    assert_memory_not_equal(batch, other, sizeof batch);
    data_close(source);
    job.sequence = 71;
    refuse(&job, STATUS_BAD_INPUT, "70 tokens (expected at least 71, one sample)");
}

/* However small a minibatch is, it has a word to guess. */
static void test_masks_are_never_missing(void **state)
{
    (void)state;
    struct job job = masked_job(DATA_NONE, 50);
    job.sequence = 2;
    job.microbatch = 1;
    struct data_source *source = open_good(&job);
    uint64_t both = 0;
    for (uint64_t minibatch = 0; minibatch < 400; minibatch++) {
        int32_t batch[6];
        read_batch(source, minibatch, batch);
        assert_true(batch[2] >= 0 || batch[3] >= 0);
        both += batch[2] >= 0 && batch[3] >= 0;
    }
    assert_in_range(both, 1, 30); /* 2.25 % */
    data_close(source);
}

/* --- images ----------------------------------------------------------------------------------- */

static struct job image_job(uint32_t format, uint64_t channels, uint64_t image, uint64_t classes)
{
    struct job job = job_of(format, 0);
    job.network.family = NETWORK_VIT;
    job.network.channels = channels;
    job.network.image = image;
    job.network.patch = 1;
    job.network.classes = classes;
    job.sequence = network_tokens(&job.network, 0);
    return job;
}

static const float *pixels_of(const struct job *job, const int32_t *batch)
{
    return (const float *)(const void *)(batch + job->microbatch);
}

/* Image i has label i mod 10 and bytes (i + 3 j) mod 256. */
static void test_cifar10(void **state)
{
    (void)state;
    enum { IMAGES = 30, PIXELS = 3072, RECORD = 1 + PIXELS };
    static unsigned char file[IMAGES * RECORD];
    static int32_t batch[3 * RECORD], again[3 * RECORD];
    for (int i = 0; i < IMAGES; i++)
        for (int j = -1; j < PIXELS; j++)
            file[i * RECORD + 1 + j] = (unsigned char)(j < 0 ? i % 10 : i + 3 * j);
    write_file(file, sizeof file);
    struct job job = image_job(DATA_CIFAR10, 3, 32, 10);
    assert_true(job_batch_bytes(&job) == sizeof batch);
    struct data_source *source = open_good(&job);
    int seen[IMAGES] = {0}, different = 0;
    for (uint64_t minibatch = 0; minibatch < 60; minibatch++) {
        read_batch(source, minibatch, batch);
        for (int b = 0; b < 3; b++) {
            const float *pixels = pixels_of(&job, batch) + b * PIXELS;
            int i = (int)lrintf((pixels[0] + 1) * 127.5f);
            assert_in_range(i, 0, IMAGES - 1);
            assert_int_equal(batch[b], i % 10);
            for (int j = 0; j < PIXELS; j++)
                assert_true(fabsf(pixels[j] - ((float)((i + 3 * j) % 256) / 127.5f - 1)) <= 1e-7f);
            different += seen[i]++ == 0;
        }
    }
    assert_true(different > 20);
    read_batch(source, 59, again);
    assert_memory_equal(batch, again, sizeof batch);
    data_close(source);

    job.network.classes = 9;
    refuse(&job, STATUS_BAD_INPUT, "image 9 has label 9 (expected less than the classes, 9)");
    write_file(file, RECORD + 1);
    refuse(&job, STATUS_BAD_INPUT,
           "3074 bytes (expected images of 3073: a label of 1 and 3 x 32 x 32 pixels)");
    write_file(file, 7);
    refuse(&job, STATUS_BAD_INPUT,
           "7 bytes (expected images of 3073: a label of 1 and 3 x 32 x 32 pixels)");
}

/* Two bytes of label, one channel of 2 x 2. */
static void test_images(void **state)
{
    (void)state;
    static const unsigned char file[] = {0x2c, 0x01, 0, 255, 51, 204, 7, 0, 1, 2, 3, 4};
    write_file(file, sizeof file);
    struct job job = image_job(DATA_IMAGES, 1, 2, 301);
    struct data_source *source = open_good(&job);
    int32_t batch[3 + 3 * 4];
    bool seen[2] = {false, false};
    for (uint64_t minibatch = 0; minibatch < 20; minibatch++) {
        read_batch(source, minibatch, batch);
        for (int b = 0; b < 3; b++) {
            const float *pixels = pixels_of(&job, batch) + 4 * b;
            assert_true(batch[b] == 300 || batch[b] == 7);
            seen[batch[b] == 7] = true;
            if (batch[b] == 7) continue;
            assert_true(pixels[0] == -1.0f && pixels[1] == 1.0f);
            assert_true(fabsf(pixels[2] + 0.6f) <= 1e-6f && fabsf(pixels[3] - 0.6f) <= 1e-6f);
        }
    }
    assert_true(seen[0] && seen[1]);
    data_close(source);
    job.network.classes = 300;
    refuse(&job, STATUS_BAD_INPUT, "image 0 has label 300 (expected less than the classes, 300)");
}

/* Drawn labels and pixels: in range, spread out, a function only of seed and minibatch. */
static void test_drawn_images(void **state)
{
    (void)state;
    struct job job = image_job(DATA_NONE, 2, 3, 5);
    struct data_source *source = open_good(&job);
    int32_t batch[3 + 3 * 18], other[3 + 3 * 18];
    int labels[5] = {0};
    double sum = 0, squares = 0;
    for (uint64_t minibatch = 0; minibatch < 1000; minibatch++) {
        read_batch(source, minibatch, batch);
        for (int b = 0; b < 3; b++) {
            assert_in_range(batch[b], 0, 4);
            labels[batch[b]]++;
        }
        for (int i = 0; i < 54; i++) {
            double pixel = (double)pixels_of(&job, batch)[i];
            assert_true(pixel >= -1 && pixel <= 1);
            sum += pixel;
            squares += pixel * pixel;
        }
    }
    /* 3000 of 5: 600 each, deviation 22; 54000 of mean 0 and variance 1/3: deviation 0.0025 */
    for (int i = 0; i < 5; i++) assert_in_range(labels[i], 600 - 6 * 22, 600 + 6 * 22);
    assert_true(fabs(sum / 54000) < 0.015 && fabs(squares / 54000 - 0.3359) < 0.01);
    read_batch(source, 3, other);
    read_batch(source, 999, batch);
    assert_memory_not_equal(batch, other, sizeof batch);
    data_close(source);
}

/* A change to the file while it is open is an error, not the end of the program. */
static void test_a_file_that_changes(void **state)
{
    (void)state;
    char text[64];
    memset(text, 'a', sizeof text);
    write_file(text, sizeof text);
    const struct job job = job_of(DATA_TEXT, 100);
    struct data_source *source = NULL;
    struct error err = {0};
    int32_t batch[3 * 6];
    if (data_open(&job, &source, &err) != STATUS_OK) fail_msg("%s", err.text);
    read_batch(source, 1, batch);
    memset(text, 'z', sizeof text); /* 122 is no word of 100 */
    write_file(text, sizeof text);
    assert_int_equal(data_batch(source, 1, batch, &err), STATUS_BAD_INPUT);
    assert_non_null(strstr(err.text, "has changed"));
    write_file(text, 3);
    err = (struct error){0};
    assert_int_equal(data_batch(source, 1, batch, &err), STATUS_IO);
    assert_non_null(strstr(err.text, "has become shorter"));
    data_close(source);
}

/* The last tenth is held out: the training never sees it, evaluations see all of it, evenly. */
static void test_held_out(void **state)
{
    (void)state;
    unsigned char text[400];
    for (uint64_t i = 0; i < sizeof text; i++)
        text[i] = (unsigned char)(i < 360 ? i % 100 : 100 + i - 360);
    write_file(text, sizeof text);
    struct job job = job_of(DATA_TEXT, 256);
    job.evaluation = (struct job_evaluation){.every = 1, .minibatches = 4, .data_format = DATA_NONE};
    struct data_source *training = open_good(&job), *held_out = NULL, *other = NULL;
    struct error err = {0};
    assert_int_equal(data_open_held_out(&job, &held_out, &err), STATUS_OK);
    assert_int_equal(data_tokens(training), 360);
    assert_int_equal(data_tokens(held_out), 40);
    int32_t batch[3 * 6], again[3 * 6];
    for (uint64_t minibatch = 0; minibatch < 100; minibatch++) {
        read_batch(training, minibatch, batch);
        for (int i = 0; i < 18; i++) assert_true(batch[i] < 100);
    }
    /* 12 samples of 5 + 1 tokens begin at i * 35 / 12 of 40 tokens */
    for (uint64_t minibatch = 0; minibatch < 4; minibatch++) {
        read_batch(held_out, minibatch, batch);
        for (uint64_t b = 0; b < 3; b++)
            for (uint64_t i = 0; i < 6; i++)
                assert_int_equal(batch[b * 6 + i], 100 + (minibatch * 3 + b) * 35 / 12 + i);
    }
    /* whatever the seed */
    job.seed = 99;
    assert_int_equal(data_open_held_out(&job, &other, &err), STATUS_OK);
    read_batch(other, 3, again);
    assert_memory_equal(batch, again, sizeof batch);
    data_close(training);
    data_close(held_out);
    data_close(other);

    write_file(text, 59);
    refuse(&job, STATUS_BAD_INPUT,
           "the last tenth, 5 tokens, is held out for evaluations (expected at least 6, one sample, or "
           "a file of its own as 'data' of 'evaluate')");
    /* a file of its own: the training has all of it */
    job.evaluation.data = path;
    job.evaluation.data_format = DATA_TEXT;
    training = open_good(&job);
    assert_int_equal(data_tokens(training), 59);
    assert_int_equal(data_open_held_out(&job, &held_out, &err), STATUS_OK);
    assert_int_equal(data_tokens(held_out), 59);
    data_close(training);
    data_close(held_out);
    job.evaluation.data = "/nonexistent/held-out";
    assert_int_equal(data_open_held_out(&job, &held_out, &err), STATUS_BAD_INPUT);
    assert_string_equal(err.text, "held-out data of job 'a': cannot open '/nonexistent/held-out': No "
                                  "such file or directory");
}

/* Random tokens: the held-out tokens differ from the training tokens, and are the same for all. */
static void test_held_out_none(void **state)
{
    (void)state;
    struct job job = job_of(DATA_NONE, 1000);
    job.evaluation = (struct job_evaluation){.every = 1, .minibatches = 2, .data_format = DATA_NONE};
    int32_t trained[3 * 6], held[3 * 6], other[3 * 6];
    struct data_source *training = open_good(&job), *held_out = NULL, *again = NULL;
    struct error err = {0};
    assert_int_equal(data_open_held_out(&job, &held_out, &err), STATUS_OK);
    job.seed = 5;
    assert_int_equal(data_open_held_out(&job, &again, &err), STATUS_OK);
    read_batch(training, 1, trained);
    read_batch(held_out, 1, held);
    read_batch(again, 1, other);
    assert_memory_not_equal(trained, held, sizeof held);
    assert_memory_equal(other, held, sizeof held);
    data_close(training);
    data_close(held_out);
    data_close(again);
}

/* Images: ten of them, the last one held out; the label is the number of the image. */
static void test_held_out_images(void **state)
{
    (void)state;
    unsigned char file[10 * 6];
    for (unsigned i = 0; i < sizeof file; i++)
        file[i] = (unsigned char)(i % 6 == 0 ? i / 6 : i % 6 == 1 ? 0 : 40 * (i / 6) % 200);
    write_file(file, sizeof file);
    struct job job = image_job(DATA_IMAGES, 1, 2, 10);
    job.evaluation = (struct job_evaluation){.every = 1, .minibatches = 2, .data_format = DATA_NONE};
    struct data_source *training = open_good(&job), *held_out = NULL;
    struct error err = {0};
    int32_t batch[3 + 3 * 4];
    assert_int_equal(data_open_held_out(&job, &held_out, &err), STATUS_OK);
    for (uint64_t minibatch = 0; minibatch < 40; minibatch++) {
        read_batch(training, minibatch, batch);
        for (int b = 0; b < 3; b++) assert_in_range(batch[b], 0, 8);
    }
    for (uint64_t minibatch = 0; minibatch < 2; minibatch++) {
        read_batch(held_out, minibatch, batch);
        for (int b = 0; b < 3; b++) {
            assert_int_equal(batch[b], 9);
            /* 40 * 9 mod 200 = 160 */
            assert_true(fabsf(pixels_of(&job, batch)[4 * b] - (160 / 127.5f - 1)) <= 1e-6f);
        }
    }
    data_close(training);
    data_close(held_out);

    /* all ten of a file of its own, in order, whatever the seed: 6 samples at i * 10 / 6 */
    job.evaluation.data = path;
    job.evaluation.data_format = DATA_IMAGES;
    assert_int_equal(data_open_held_out(&job, &held_out, &err), STATUS_OK);
    for (uint64_t minibatch = 0; minibatch < 2; minibatch++) {
        read_batch(held_out, minibatch, batch);
        for (uint64_t b = 0; b < 3; b++)
            assert_int_equal(batch[b], (minibatch * 3 + b) * 10 / 6);
    }
    data_close(held_out);
    job.evaluation.data = NULL;
    write_file(file, 9 * 6);
    refuse(&job, STATUS_BAD_INPUT,
           "of 9 images the last tenth is held out for evaluations (expected at least 10, or a file of "
           "its own as 'data' of 'evaluate')");
}

/* Words to guess are the same for all jobs. */
static void test_held_out_masks(void **state)
{
    (void)state;
    unsigned char text[2000];
    for (uint64_t i = 0; i < sizeof text; i++) text[i] = (unsigned char)token(i);
    write_file(text, sizeof text);
    struct job job = masked_job(DATA_TEXT, 300);
    job.evaluation = (struct job_evaluation){.every = 1, .minibatches = 2, .data_format = DATA_NONE};
    struct data_source *sources[2] = {0};
    struct error err = {0};
    int32_t *batches[2];
    for (uint64_t i = 0; i < 2; i++) {
        job.seed = 11 + i;
        assert_int_equal(data_open_held_out(&job, &sources[i], &err), STATUS_OK);
        batches[i] = calloc(1, job_batch_bytes(&job));
        assert_non_null(batches[i]);
        read_batch(sources[i], 1, batches[i]);
        data_close(sources[i]);
    }
    assert_memory_equal(batches[0], batches[1], job_batch_bytes(&job));
    free(batches[0]);
    free(batches[1]);
}

/* The parts of a minibatch are the whole: tokens, masks and, after their labels, images. */
static void test_parts(void **state)
{
    (void)state;
    enum { MICROBATCHES = 6 };
    struct job jobs[] = {job_of(DATA_NONE, 251), masked_job(DATA_NONE, 251), image_job(DATA_NONE, 3, 4, 10)};
    for (size_t j = 0; j < sizeof jobs / sizeof *jobs; j++) {
        struct job *job = &jobs[j];
        job->microbatches = MICROBATCHES;
        struct data_source *source = open_good(job);
        const uint64_t samples = job_samples(job), bytes = job_batch_bytes(job);
        int32_t *whole = calloc(1, bytes), *part = calloc(1, bytes);
        assert_true(whole && part);
        read_batch(source, 3, whole);
        for (uint32_t parts = 1; parts <= MICROBATCHES; parts = parts == 3 ? MICROBATCHES : parts + 1)
            for (uint32_t p = 0; p < parts; p++) {
                struct error err = {0};
                const uint64_t each = MICROBATCHES / parts;
                const struct parallel_microbatches range = {p * each, 1, each};
                if (data_batch_part(source, 3, &range, part, &err)) fail_msg("%s", err.text);
                const bool images = job->network.family == NETWORK_VIT;
                const uint64_t labels = images ? samples : bytes / sizeof *whole, rest = bytes / sizeof *whole - labels;
                assert_memory_equal(part, whole + p * labels / parts, labels / parts * sizeof *whole);
                assert_memory_equal(part + labels / parts, whole + labels + p * rest / parts,
                                    rest / parts * sizeof *whole);
            }
        for (uint64_t step = 2; step <= 4; step++) /* every step-th microbatch */
            for (uint64_t first = 0; first < step; first++) {
                struct error err = {0};
                const struct parallel_microbatches dealt = {first, step, (MICROBATCHES - first + step - 1) / step};
                if (data_batch_part(source, 3, &dealt, part, &err)) fail_msg("%s", err.text);
                const uint64_t words = bytes / sizeof *whole,
                    labels = job->network.family == NETWORK_VIT ? samples : words;
                const uint64_t of[] = {labels / MICROBATCHES, (words - labels) / MICROBATCHES}, begins[] = {0, labels};
                const int32_t *found = part;
                for (int section = 0; section < 2; section++)
                    for (uint64_t k = 0; k < dealt.count; k++, found += of[section])
                        assert_memory_equal(found, whole + begins[section] + (first + k * step) * of[section],
                                            of[section] * sizeof *whole);
            }
        free(whole);
        free(part);
        data_close(source);
    }
}

/* The number of a masked minibatch's targets is that of its labels, also where a microbatch has only the nearest
 * word. */
static void test_targets(void **state)
{
    (void)state;
    enum { MICROBATCHES = 5 };
    uint32_t unequal = 0;
    for (uint64_t sequence = 1; sequence <= 8; sequence++) {
        struct job job = masked_job(DATA_NONE, 251);
        job.microbatches = MICROBATCHES;
        job.sequence = sequence;
        struct data_source *source = open_good(&job);
        int32_t *batch = calloc(1, job_batch_bytes(&job));
        assert_non_null(batch);
        for (uint64_t minibatch = 0; minibatch < 20; minibatch++) {
            uint64_t targets = 0, of[MICROBATCHES] = {0};
            read_batch(source, minibatch, batch);
            for (uint64_t s = 0; s < job_samples(&job); s++)
                for (uint64_t i = 0; i < sequence; i++) {
                    const bool has = batch[(3 * s + 1) * sequence + i] >= 0;
                    targets += has;
                    of[s / job.microbatch] += has;
                }
            assert_int_equal(data_targets(source, minibatch), targets);
            for (uint32_t m = 0; m < MICROBATCHES; m++) {
                assert_true(of[m] > 0);
                unequal += of[m] != of[0];
            }
        }
        free(batch);
        data_close(source);
    }
    assert_true(unequal > 0);
    struct job others[] = {job_of(DATA_NONE, 251), image_job(DATA_NONE, 3, 4, 10)};
    for (size_t j = 0; j < sizeof others / sizeof *others; j++) {
        struct data_source *source = open_good(&others[j]);
        assert_int_equal(data_targets(source, 0), 0);
        data_close(source);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_targets),
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_nanogpt),
        cmocka_unit_test(test_known_files),
        cmocka_unit_test(test_llmc),         cmocka_unit_test(test_llmc_wide),
        cmocka_unit_test(test_llmc_refused), cmocka_unit_test(test_files_refused),
        cmocka_unit_test(test_one_sample),   cmocka_unit_test(test_none), cmocka_unit_test(test_masks),
        cmocka_unit_test(test_masks_of_numbers), cmocka_unit_test(test_masks_are_never_missing),
        cmocka_unit_test(test_cifar10), cmocka_unit_test(test_images),
        cmocka_unit_test(test_drawn_images),
        cmocka_unit_test(test_a_file_that_changes), cmocka_unit_test(test_held_out),
        cmocka_unit_test(test_held_out_none), cmocka_unit_test(test_held_out_images),
        cmocka_unit_test(test_held_out_masks), cmocka_unit_test(test_parts),
    };
    return cmocka_run_group_tests_name("exec/files/data.h", tests, setup, teardown);
}
