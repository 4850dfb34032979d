/*
 * A sample of T places, of packed rows a, b and c, whose tokens are a0 a1 a2 and so on, each learned but the first:
 *
 *     tokens   a0 a1 b0 b1 b2 c0  0  0
 *     labels   a1 a2 b1 b2 b3 c1 -1 -1
 *     begins    0  0  2  2  2  5  6  6      apart; the padding is as a row of its own
 *
 * Padding comes last: no token that is learned sees it.
 */
#include "exec/files/data_rows.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/try.h"
#include "exec/files/data_images.h"
#include "models/jobs/job_rows.h"

enum { NO_LABEL = -1 };

/* Copies what lies between header and tokens: unlike these it is not probed, and the file may become shorter. */
static enum status copy_tables(struct data_rows *rows, struct error *err)
{
    struct rows_file *const file = &rows->file;
    const uint64_t bytes = (uint64_t)(file->tokens - file->offsets);
    rows->tables = alloc_zeroed(bytes, 1);
    if (!rows->tables) return error_memory(err, "a table of rows", bytes);
    memcpy(rows->tables, file->offsets, bytes);
    file->learned = rows->tables + (file->learned - file->offsets);
    file->offsets = rows->tables;
    return STATUS_OK;
}

enum status data_rows_open(const struct job *job, const char *name, const struct mapped_file *file,
                           uint64_t held_out_samples, bool known, struct data_rows *out, struct error *err)
{
    const struct rows_choice choice = job_rows_choice(job);
    *out = (struct data_rows){.held_out_samples = held_out_samples, .seed = job->seed,
                              .vocabulary = job->network.vocabulary,
                              .sequence = job->sequence, .samples = job_samples(job), .microbatch = job->microbatch};
    TRY(rows_file_parse(name, file->data, file->bytes, &out->file, err));
    TRY(copy_tables(out, err));
    if (!known) TRY(rows_file_check_tokens(&out->file, out->vocabulary, err));
    return rows_set_make(&out->file, &choice, held_out_samples > 0 && choice.held_out > 0, &out->set, err);
}

void data_rows_close(struct data_rows *rows)
{
    rows_set_release(&rows->set);
    free(rows->tables);
    rows_file_close(&rows->file);
}

/* Returns the number of a minibatch's sample in the set. */
static uint64_t sample_at(const struct data_rows *rows, uint64_t s)
{
    if (rows->held_out_samples == 0) return rows_set_sample(&rows->set, rows->seed, s);
    return data_place(0, s, rows->set.samples, rows->held_out_samples);
}

uint64_t data_rows_sample(const struct data_rows *rows, uint64_t s) { return sample_at(rows, s); }

/* Finds a sample of a minibatch, counted over all minibatches; returns the set that has it. */
static const struct data_rows *find_sample(const struct data_rows *rows, uint64_t s, uint64_t *sample)
{
    const struct data_rows *const then = rows->then;
    *sample = rows->in_order ? s : sample_at(rows, s);
    if (*sample < rows->set.samples) return rows;
    const uint64_t later = *sample - rows->set.samples;
    const bool held_out = then && later < then->held_out_samples;
    *sample = held_out ? sample_at(then, later) : 0;
    return held_out ? then : rows;
}

static enum status copy_row(const struct data_rows *rows, uint64_t row, uint64_t at, int32_t *out, struct error *err)
{
    const struct rows_file *const file = &rows->file;
    const uint64_t begin = rows_file_begin(file, row), places = rows_set_places(&rows->set, row);
    int32_t *const labels = out + rows->sequence;
    if (rows->mapped)
        TRY(mapped_file_probe(rows->mapped, file->name, file->first_byte + begin * file->token_bytes,
                              (places + 1) * file->token_bytes, err));
    for (uint64_t i = 0; i <= places; i++) {
        const uint32_t token = rows_file_token(file, begin + i);
        if (token >= rows->vocabulary)
            return error_set(err, STATUS_BAD_INPUT,
                             "'%s' has changed: token %" PRIu64 " is %" PRIu32
                             " (expected less than the vocabulary, %" PRIu64 ")",
                             file->name, begin + i, token, rows->vocabulary);
        if (i < places) out[at + i] = (int32_t)token;
        if (i > 0) labels[at + i - 1] = rows_file_learns(file, begin + i) ? (int32_t)token : NO_LABEL;
    }
    return STATUS_OK;
}

static enum status copy_sample(const struct data_rows *rows, uint64_t sample, int32_t *out, struct error *err)
{
    uint32_t one;
    const uint32_t *list;
    const uint64_t count = rows_set_rows(&rows->set, sample, &one, &list), t = rows->sequence;
    uint64_t at = 0;
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t places = rows_set_places(&rows->set, list[i]);
        if (places > 0) TRY(copy_row(rows, list[i], at, out, err));
        at += places;
    }
    for (; at < t; at++) {
        out[at] = 0;
        out[t + at] = NO_LABEL;
    }
    return STATUS_OK;
}

static void find_begins(const struct data_rows *rows, uint64_t sample, int32_t *out)
{
    uint32_t one;
    const uint32_t *list;
    const uint64_t count = rows_set_rows(&rows->set, sample, &one, &list);
    uint64_t at = 0;
    for (uint64_t i = 0; i <= count; i++) {
        const uint64_t begin = at, end = i < count ? at + rows_set_places(&rows->set, list[i]) : rows->sequence;
        for (; at < end; at++) out[at] = (int32_t)begin;
    }
}

/* Returns sample b of some microbatches of a minibatch, counted over all minibatches. */
static uint64_t number_of(const struct data_rows *rows, uint64_t minibatch, const struct parallel_microbatches *part,
                          uint64_t b)
{
    const uint64_t microbatch = part->first + b / rows->microbatch * part->step;
    return minibatch * rows->samples + microbatch * rows->microbatch + b % rows->microbatch;
}

enum status data_rows_batch(const struct data_rows *rows, uint64_t minibatch,
                            const struct parallel_microbatches *part, int32_t *out, struct error *err)
{
    const uint64_t count = part->count * rows->microbatch;
    for (uint64_t b = 0; b < count; b++) {
        uint64_t sample;
        const struct data_rows *const of = find_sample(rows, number_of(rows, minibatch, part, b), &sample);
        TRY(copy_sample(of, sample, out + b * 2 * rows->sequence, err));
    }
    return STATUS_OK;
}

void data_rows_begins(const struct data_rows *rows, uint64_t minibatch, const struct parallel_microbatches *part,
                      int32_t *out)
{
    const uint64_t count = part->count * rows->microbatch;
    for (uint64_t b = 0; b < count; b++) {
        uint64_t sample;
        const struct data_rows *const of = find_sample(rows, number_of(rows, minibatch, part, b), &sample);
        find_begins(of, sample, out + b * rows->sequence);
    }
}

uint64_t data_rows_targets(const struct data_rows *rows, uint64_t minibatch)
{
    uint64_t targets = 0;
    for (uint64_t s = minibatch * rows->samples; s < (minibatch + 1) * rows->samples; s++)
        targets += rows_set_learned(&rows->set, sample_at(rows, s));
    return targets > 0 ? targets : 1; /* a sum of nothing is divided by 1 */
}
