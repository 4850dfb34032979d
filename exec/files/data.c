/*
 * Tokens by position.
 *
 *     text     a token is a byte
 *     llmc     llm.c's .bin: 256 x int32, of which magic, version and token count are used, then
 *              tokens of 16 bits (magic 20240520, version 1) or 32 bits (20240801, version 7)
 *     nanogpt  nanoGPT's .bin: only tokens of 16 bits
 *     rows     exec/files/data_rows.c
 *     none     token i of sample s is drawn from (seed, s (T+1) + i)
 *
 * All numbers are little-endian. Opening scans the mapped file once (some GB/s; the pages are then in the cache). A
 * batch's tokens are probed before they are accessed, so that a failing disk or a truncated file is an error of this
 * job only. A sample of a file is any T + 1 consecutive tokens, drawn with replacement by (seed, sample).
 *
 * Held-out samples of a file begin at equal distances: an evaluation covers all the data and always uses the same
 * part. Other random choices use a seed that all jobs share.
 *
 * Words to guess (bert). A token is chosen with probability 0.15, by a draw of (seed, place). 80 % of the chosen
 * tokens become the mask, 10 % a random token, 10 % do not change; all are labels. If none is chosen, the one with the
 * nearest draw is, so that there is always a loss. Source: Devlin et al., arXiv 1810.04805, appendix A.1.
 *
 * Sources: llm.c dev/data/data_common.py; nanoGPT data/openwebtext/prepare.py.
 */
#include "exec/files/data.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clones.h"
#include "base/files/mapped_file.h"
#include "base/little_endian.h"
#include "base/random.h"
#include "base/try.h"
#include "exec/files/data_images.h"
#include "exec/files/data_rows.h"

enum { LLMC_HEADER_BYTES = 256 * 4 };

/* Keys of the kinds of draws. */
#define KEY_POSITION UINT64_C(0x706f736974696f6e)
#define KEY_TOKEN UINT64_C(0x746f6b656e)
#define KEY_MASK UINT64_C(0x6d61736b)
#define KEY_KIND UINT64_C(0x6b696e64)
#define KEY_WORD UINT64_C(0x776f7264)

/* Jobs cannot have this seed (JOB_SEED_MAX). */
#define HELD_OUT_SEED UINT64_C(0x68656c642d6f7574)
static_assert(HELD_OUT_SEED > JOB_SEED_MAX, "no job's training is drawn from it");

/* Share of chosen tokens; draws up to which they are masked, and replaced. */
static const double CHOSEN = 0.15, MASKED = 0.8, REPLACED = 0.9;

struct data_source {
    const char *name;            /* borrowed; for messages */
    struct mapped_file file;     /* empty when the bytes are borrowed */
    const unsigned char *tokens; /* first token used, borrowed or in `file`; NULL: drawn from the seed */
    uint32_t token_bytes;
    uint64_t token_count;        /* 0 when drawn from the seed */
    uint64_t first_byte;         /* of the tokens, in the file */
    uint64_t held_out_samples;   /* of all held-out minibatches; 0: training */
    uint64_t seed, microbatch, microbatches, sequence, vocabulary;
    uint64_t sample_tokens;
    bool known;                  /* scanned before */
    bool masked;
    uint64_t mask, words;        /* mask token; random tokens are below `words` */
    uint64_t first_type_row;     /* row of token type 0 */
    bool reads_images;
    struct data_images images;   /* then this is all */
    bool reads_rows;
    struct data_rows rows;       /* likewise */
};

static uint32_t token_at(const struct data_source *source, uint64_t i)
{
    const unsigned char *p = source->tokens + i * source->token_bytes;
    switch (source->token_bytes) {
    case 1: return *p;
    case 2: return little_u16(p);
    default: return little_u32(p);
    }
}

/* --- opening ---------------------------------------------------------------------------------- */

struct llmc_kind {
    uint32_t magic, version, token_bytes;
};
static const struct llmc_kind llmc_kinds[] = {{20240520, 1, 2}, {20240801, 7, 4}};

static enum status open_llmc(struct data_source *source, const char *path,
                             const struct mapped_file *file, struct error *err)
{
    if (file->bytes < LLMC_HEADER_BYTES)
        return error_set(err, STATUS_BAD_INPUT,
                         "%s: %" PRIu64 " bytes are too few (an llm.c file has a header of %d)",
                         path, file->bytes, (int)LLMC_HEADER_BYTES);
    uint32_t magic = little_u32(file->data), version = little_u32(file->data + 4);
    uint64_t count = little_u32(file->data + 8);
    const struct llmc_kind *kind = NULL;
    for (size_t i = 0; i < sizeof llmc_kinds / sizeof *llmc_kinds; i++)
        if (llmc_kinds[i].magic == magic) kind = &llmc_kinds[i];
    if (!kind)
        return error_set(err, STATUS_BAD_INPUT,
                         "%s: bad magic number %" PRIu32 " (expected %" PRIu32 " or %" PRIu32 ")",
                         path, magic, llmc_kinds[0].magic, llmc_kinds[1].magic);
    if (version != kind->version)
        return error_set(err, STATUS_BAD_INPUT,
                         "%s: unknown version %" PRIu32 " (expected %" PRIu32 ")", path, version,
                         kind->version);
    uint64_t expected = LLMC_HEADER_BYTES + count * kind->token_bytes;
    if (file->bytes != expected)
        return error_set(err, STATUS_BAD_INPUT,
                         "%s: %" PRIu64 " bytes (expected %" PRIu64
                         ": the header announces %" PRIu64 " tokens of %" PRIu32 " bytes)",
                         path, file->bytes, expected, count, kind->token_bytes);
    source->tokens = file->data + LLMC_HEADER_BYTES;
    source->token_bytes = kind->token_bytes;
    source->token_count = count;
    return STATUS_OK;
}

static enum status open_nanogpt(struct data_source *source, const char *path,
                                const struct mapped_file *file, struct error *err)
{
    if (file->bytes % 2 != 0)
        return error_set(err, STATUS_BAD_INPUT,
                         "%s: %" PRIu64 " bytes (expected tokens of 2 bytes)", path, file->bytes);
    source->tokens = file->data;
    source->token_bytes = 2;
    source->token_count = file->bytes / 2;
    return STATUS_OK;
}

static enum status open_text(struct data_source *source, const char *path,
                             const struct mapped_file *file, struct error *err)
{
    (void)path;
    (void)err;
    source->tokens = file->data;
    source->token_bytes = 1;
    source->token_count = file->bytes;
    return STATUS_OK;
}

typedef enum status (*open_function)(struct data_source *source, const char *path,
                                     const struct mapped_file *file, struct error *err);
static const open_function open_functions[DATA_FORMAT_COUNT] = {
    [DATA_TEXT] = open_text, [DATA_LLMC] = open_llmc, [DATA_NANOGPT] = open_nanogpt};

/* Returns true when one of at most CHUNK tokens is too large. */
enum { CHUNK = 1024 };
CLONES static bool chunk_exceeds(const struct data_source *source, uint64_t first, uint64_t count)
{
    static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "tokens are copied as they are");
    const unsigned char *p = source->tokens + first * source->token_bytes;
    uint32_t largest = 0;
    if (source->token_bytes == 2) {
        uint16_t tokens[CHUNK] = {0}, largest16 = 0;
        memcpy(tokens, p, count * sizeof *tokens);
        for (int i = 0; i < CHUNK; i++) largest16 = tokens[i] > largest16 ? tokens[i] : largest16;
        largest = largest16;
    } else if (source->token_bytes == 4) {
        uint32_t tokens[CHUNK] = {0};
        memcpy(tokens, p, count * sizeof *tokens);
        for (int i = 0; i < CHUNK; i++) largest = tokens[i] > largest ? tokens[i] : largest;
    } else {
        for (uint64_t i = 0; i < count; i++) largest = p[i] > largest ? p[i] : largest;
    }
    return largest >= source->vocabulary;
}

static enum status check_tokens(const struct data_source *source, const char *path,
                                struct error *err)
{
    if (source->token_count < source->sample_tokens)
        return error_set(err, STATUS_BAD_INPUT,
                         "%s: %" PRIu64 " tokens (expected at least %" PRIu64 ", one sample%s)",
                         path, source->token_count, source->sample_tokens,
                         source->masked ? "" : " and the next token");
    if (source->known || source->vocabulary > (UINT64_C(1) << 8 * source->token_bytes) - 1) return STATUS_OK;
    for (uint64_t first = 0; first < source->token_count; first += CHUNK) {
        uint64_t rest = source->token_count - first, i = first;
        if (!chunk_exceeds(source, first, rest < CHUNK ? rest : CHUNK)) continue;
        while (token_at(source, i) < source->vocabulary) i++;
        return error_set(err, STATUS_BAD_INPUT,
                         "%s: token %" PRIu64 " is %" PRIu32
                         " (expected less than the vocabulary, %" PRIu64 ")",
                         path, i, token_at(source, i), source->vocabulary);
    }
    return STATUS_OK;
}

static void describe_text(struct data_source *source, const struct job *job)
{
    const struct network *n = &job->network;
    bool text = job->data_format == DATA_TEXT;
    source->sequence = job->sequence;
    source->vocabulary = n->vocabulary;
    source->masked = n->family == NETWORK_BERT;
    source->sample_tokens = job->sequence + (source->masked ? 0 : 1);
    source->mask = text ? DATA_TEXT_MASK : n->mask_token;
    source->words = text ? DATA_TEXT_MASK : n->vocabulary;
    source->first_type_row = n->vocabulary + n->positions;
    assert(source->vocabulary > 0 && source->vocabulary <= INT32_MAX);
}

/* Returns true when evaluations use a part of the training file. */
static bool shares_file(const struct job *job)
{
    return job->evaluation.every > 0 && !job->evaluation.data;
}

static enum status select_part(struct data_source *source, const char *name, struct error *err)
{
    uint64_t held_out = data_held_out(source->token_count);
    uint64_t training = source->token_count - held_out;
    if (held_out < source->sample_tokens)
        return error_set(err, STATUS_BAD_INPUT,
                         "%s: the last tenth, %" PRIu64 " tokens, is held out for evaluations "
                         "(expected at least %" PRIu64 ", one sample, or a file of its own as 'data' "
                         "of 'evaluate')",
                         name, held_out, source->sample_tokens);
    if (source->held_out_samples > 0) {
        source->tokens += training * source->token_bytes;
        source->first_byte += training * source->token_bytes;
    }
    source->token_count = source->held_out_samples > 0 ? held_out : training;
    return STATUS_OK;
}

/* Opens a text; `file` NULL: tokens are drawn from the seed. */
static enum status open_text_data(struct data_source *source, const struct job *job,
                                  const char *name, const struct mapped_file *file,
                                  struct error *err)
{
    describe_text(source, job);
    if (!file) return STATUS_OK;
    assert(job->data_format < DATA_FORMAT_COUNT && open_functions[job->data_format]);
    enum status status = open_functions[job->data_format](source, name, file, err);
    if (status == STATUS_OK) source->first_byte = (uint64_t)(source->tokens - file->data);
    if (status == STATUS_OK) status = check_tokens(source, name, err);
    return status == STATUS_OK && shares_file(job) ? select_part(source, name, err) : status;
}

/* Takes `mapped` over, also on failure: `file`, or empty for borrowed bytes. */
static enum status create(const struct job *job, const char *name, uint64_t held_out_samples, bool known,
                          const struct mapped_file *file, struct mapped_file mapped,
                          struct data_source **out, struct error *err)
{
    struct data_source *source = alloc_zeroed(1, sizeof *source);
    if (!source) {
        mapped_file_close(&mapped);
        return error_memory(err, "a data source", sizeof *source);
    }
    source->file = mapped;
    source->known = known;
    source->name = name;
    source->seed = job->seed;
    source->microbatch = job->microbatch;
    source->microbatches = job->microbatches;
    source->held_out_samples = held_out_samples;
    source->reads_images = job_unit(job) == JOB_IMAGES;
    source->reads_rows = job->data_format == DATA_ROWS;
    bool has_file = job->data_format != DATA_NONE, is_folder = job->data_format == DATA_FOLDER;
    enum status status = STATUS_OK;
    if (source->reads_rows)
        status = data_rows_open(job, name, file, held_out_samples, known, &source->rows, err);
    else if (source->reads_images)
        status = data_images_open(job,
                                  &(struct data_images_from){.name = has_file ? name : NULL,
                                                             .file = has_file && !is_folder ? file : NULL,
                                                             .shared = shares_file(job),
                                                             .known = known,
                                                             .held_out_samples = held_out_samples},
                                  &source->images, err);
    else
        status = open_text_data(source, job, name, has_file ? file : NULL, err);
    if (status != STATUS_OK) {
        data_close(source);
        return error_add(err, "%sdata of job '%s'", held_out_samples > 0 ? "held-out " : "",
                         job->name);
    }
    if (source->reads_images && has_file && !is_folder) {
        source->images.file = &source->file;
        source->images.name = name;
    }
    source->rows.mapped = &source->file;
    *out = source;
    return STATUS_OK;
}

enum status data_parse(const struct job *job, const char *name, const void *data, uint64_t bytes,
                       struct data_source **out, struct error *err)
{
    assert(job->data_format != DATA_NONE);
    struct mapped_file borrowed = {.data = data, .bytes = bytes}, none = {0};
    return create(job, name, 0, false, &borrowed, none, out, err);
}

static enum status open_data(const struct job *job, uint64_t held_out_samples, bool known,
                             struct data_source **out, struct error *err)
{
    struct mapped_file mapped = {0};
    if (job->data_format != DATA_NONE && job->data_format != DATA_FOLDER) {
        assert(job->data);
        if (mapped_file_open(job->data, &mapped, err) != STATUS_OK)
            return error_add(err, "%sdata of job '%s'", held_out_samples > 0 ? "held-out " : "",
                             job->name);
    }
    return create(job, job->data, held_out_samples, known, &mapped, mapped, out, err);
}

enum status data_open(const struct job *job, struct data_source **out, struct error *err)
{
    return open_data(job, 0, false, out, err);
}

enum status data_open_known(const struct job *job, struct data_source **out, struct error *err)
{
    return open_data(job, 0, true, out, err);
}

static enum status open_held_out(const struct job *job, bool known, struct data_source **out, struct error *err)
{
    assert(job->evaluation.every > 0);
    struct job view = *job; /* as a job whose training is on these data */
    view.seed = HELD_OUT_SEED;
    if (job->evaluation.data) {
        view.data = job->evaluation.data;
        view.data_format = job->evaluation.data_format;
        view.evaluation.every = 0; /* all of it is used */
    }
    return open_data(&view, job->evaluation.minibatches * job_samples(job), known, out, err);
}

enum status data_open_held_out(const struct job *job, struct data_source **out, struct error *err)
{
    return open_held_out(job, false, out, err);
}

enum status data_open_held_out_known(const struct job *job, struct data_source **out, struct error *err)
{
    return open_held_out(job, true, out, err);
}

void data_close(struct data_source *source)
{
    if (!source) return;
    data_rows_close(&source->rows);
    data_images_close(&source->images);
    mapped_file_close(&source->file);
    free(source);
}

/* --- reading ---------------------------------------------------------------------------------- */

uint64_t data_tokens(const struct data_source *source)
{
    return source->reads_rows ? source->rows.file.token_count : source->token_count;
}

uint64_t data_samples(const struct data_source *source)
{
    assert(source->reads_rows);
    return source->rows.set.samples;
}

uint64_t data_sample(const struct data_source *source, uint64_t s)
{
    assert(source->reads_rows);
    return data_rows_sample(&source->rows, s);
}

void data_put_in_order(struct data_source *source, const struct data_source *held_out)
{
    assert(source->reads_rows && (!held_out || held_out->reads_rows));
    source->rows.in_order = true;
    source->rows.then = held_out ? &held_out->rows : NULL;
}

/* Samples are counted over all minibatches. */
static enum status read_sample(const struct data_source *source, uint64_t sample, int32_t *out,
                               struct error *err)
{
    uint64_t length = source->sample_tokens, start = 0;
    if (source->tokens)
        start = data_place(source->seed ^ KEY_POSITION, sample, source->token_count - length + 1,
                           source->held_out_samples);
    const enum status status =
        mapped_file_probe(&source->file, source->name, source->first_byte + start * source->token_bytes,
                          length * source->token_bytes, err);
    for (uint64_t i = 0; i < length && status == STATUS_OK; i++) {
        uint64_t token = source->tokens ? token_at(source, start + i)
                                        : random_below(source->seed ^ KEY_TOKEN,
                                                       sample * length + i, source->vocabulary);
        if (token >= source->vocabulary)
            return error_set(err, STATUS_BAD_INPUT,
                             "'%s' has changed: token %" PRIu64 " is %" PRIu64
                             " (expected less than the vocabulary, %" PRIu64 ")",
                             source->name, start + i, token, source->vocabulary);
        out[i] = (int32_t)token;
    }
    return status;
}

static int32_t disguise(const struct data_source *source, uint64_t place, int32_t token)
{
    double kind = random_unit(source->seed ^ KEY_KIND, place);
    if (kind < MASKED) return (int32_t)source->mask;
    if (kind >= REPLACED) return token;
    return (int32_t)random_below(source->seed ^ KEY_WORD, place, source->words);
}

/* Fills (3, T) for one sample, with tokens in the first row. `nearest`: a place that is chosen in any case. */
static void choose_words(const struct data_source *source, uint64_t sample, uint64_t nearest,
                         int32_t *out)
{
    uint64_t t = source->sequence;
    int32_t *labels = out + t, *types = labels + t;
    for (uint64_t i = 0; i < t; i++) {
        uint64_t place = sample * t + i;
        bool chosen =
            place == nearest || random_unit(source->seed ^ KEY_MASK, place) < CHOSEN;
        labels[i] = chosen ? out[i] : -1;
        types[i] = (int32_t)source->first_type_row;
        if (chosen) out[i] = disguise(source, place, out[i]);
    }
}

/* Returns the place with the smallest draw in a microbatch, counted over all. */
static uint64_t nearest_word(const struct data_source *source, uint64_t microbatch)
{
    uint64_t count = source->microbatch * source->sequence, first = microbatch * count;
    uint64_t nearest = first;
    double least = 1;
    for (uint64_t place = first; place < first + count; place++) {
        double draw = random_unit(source->seed ^ KEY_MASK, place);
        if (draw >= least) continue;
        least = draw;
        nearest = place;
    }
    return nearest;
}

void data_begins(const struct data_source *source, uint64_t minibatch, const struct parallel_microbatches *part,
                 int32_t *out)
{
    assert(source->reads_rows);
    data_rows_begins(&source->rows, minibatch, part, out);
}

uint64_t data_targets(const struct data_source *source, uint64_t minibatch)
{
    const uint64_t count = source->microbatch * source->sequence;
    uint64_t targets = 0;
    if (source->reads_rows) return data_rows_targets(&source->rows, minibatch);
    for (uint64_t m = 0; source->masked && m < source->microbatches; m++) {
        const uint64_t first = (minibatch * source->microbatches + m) * count;
        uint64_t chosen = 0;
        for (uint64_t place = first; place < first + count; place++)
            chosen += random_unit(source->seed ^ KEY_MASK, place) < CHOSEN;
        targets += chosen > 0 ? chosen : 1; /* else the nearest word */
    }
    return targets;
}

enum status data_batch(const struct data_source *source, uint64_t minibatch, int32_t *out,
                       struct error *err)
{
    const struct parallel_microbatches all = {0, 1, source->microbatches};
    return data_batch_part(source, minibatch, &all, out, err);
}

enum status data_batch_part(const struct data_source *source, uint64_t minibatch,
                            const struct parallel_microbatches *part, int32_t *out, struct error *err)
{
    assert(part->count == 0 || part->first + (part->count - 1) * part->step < source->microbatches);
    if (source->reads_rows) return data_rows_batch(&source->rows, minibatch, part, out, err);
    if (source->reads_images) return data_images_batch(&source->images, minibatch, part, out, err);
    uint64_t row = source->masked ? 3 * source->sequence : source->sample_tokens, nearest = 0;
    uint64_t count = part->count * source->microbatch;
    for (uint64_t b = 0; b < count; b++) {
        uint64_t microbatch = minibatch * source->microbatches + part->first + b / source->microbatch * part->step;
        uint64_t sample = microbatch * source->microbatch + b % source->microbatch;
        if (source->masked && b % source->microbatch == 0)
            nearest = nearest_word(source, sample / source->microbatch);
        TRY(read_sample(source, sample, out + b * row, err));
        if (source->masked) choose_words(source, sample, nearest, out + b * row);
    }
    return STATUS_OK;
}
