/*
 * Reads traces span by span, from a file (trace_file.h) or from memory.
 *
 * Nothing is trusted: the judge sees each span and level before a caller does, and the index is compared with the
 * blocks that are read. A whole trace is read in one go and its index proven on the way:
 *
 *     index     [ from 0, 0 to 2 s ][ from 4096, 1 to 3 s ]
 *     spans     | ... ends 2 s      | ... ends 3 s        |   each block begins where it should and has these bounds
 *
 * For a window only the blocks that overlap it are read. The judge then leaves totals out, because they need all spans.
 * The index has the level of each place at the start of a block, which replaces the levels before the window.
 */
#include "base/try.h"
#include "traces/trace_reader.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "traces/trace_file.h"
#include "traces/trace_judge.h"

/* The block that is read, as the spans or levels so far say. */
struct bounds {
    size_t block;  /* number of blocks begun */
    uint64_t left; /* elements to its end; only in a window */
    double from_s, to_s;
    uint32_t minibatch;
    uint64_t end;  /* offset after the last element */
};

struct trace_reader {
    struct trace_file file;
    const struct trace *memory; /* NULL: of a file */
    struct trace_part part;
    bool windowed, skips; /* only a part is wanted; the rest is not read */
    struct trace_judge judge;
    int array;      /* TRACE_SPANS or TRACE_LEVELS: that is being read */
    bool begun;     /* in the levels */
    uint64_t at;    /* of a trace in memory */
    struct bounds bounds;
    double last_s;  /* last end of the spans that were wanted */
    double to_s;    /* of levels */
    uint64_t given; /* levels */
    struct trace_held *held, *sorted; /* by place: the last level before the window; those, by element */
    uint32_t held_count, held_at;
    bool held_given, level_waits; /* a level of the window was read, and waits for the held ones to be given first */
    struct trace_level waiting;
};

/* --- opening -------------------------------------------------------------------------------- */

static const char *name_of(const struct trace_reader *s)
{
    return json_input_name(json_stream_head(s->file.json));
}

/* Adds the file name to the judge's error, which has no other position. */
static enum status judged(const struct trace_reader *s, enum status status, struct error *err)
{
    return status == STATUS_CHECK ? error_add(err, "%s", name_of(s)) : status;
}

static void choose_part(struct trace_reader *s, const struct trace_part *part)
{
    s->part = part ? *part : (struct trace_part){0};
    s->windowed = s->part.from_s > 0 || s->part.to_s > 0 || s->part.minibatches > 0;
    s->skips = s->windowed && s->file.indexed;
}

static enum status create(const struct trace_part *part, struct trace_reader **out, struct error *err)
{
    struct trace_reader *s = alloc_zeroed(1, sizeof *s);
    if (!s) return error_memory(err, "a trace", sizeof *s);
    choose_part(s, part);
    *out = s;
    return STATUS_OK;
}

/* The head has been read. */
static enum status prepare(struct trace_reader *s, struct error *err)
{
    const uint32_t places = s->file.head.place_count;
    s->skips = s->windowed && s->file.indexed;
    TRY(judged(s, trace_judge_begin(&s->judge, &s->file.head, err), err));
    s->held = alloc_zeroed(places, sizeof *s->held);
    s->sorted = alloc_zeroed(places, sizeof *s->sorted);
    if (!s->held || !s->sorted) return error_memory(err, "a trace", 2 * places * sizeof *s->held);
    return s->skips ? STATUS_OK : json_stream_begin(s->file.json, TRACE_SPANS, err);
}

enum status trace_reader_open(const char *path, const struct trace_part *part, struct trace_reader **out,
                              struct error *err)
{
    struct trace_reader *s = NULL;
    enum status status = create(part, &s, err);
    if (status == STATUS_OK) status = trace_file_open(&s->file, path, err);
    if (status == STATUS_OK) status = prepare(s, err);
    if (status == STATUS_OK) *out = s;
    else trace_reader_close(s);
    return status;
}

enum status trace_reader_of_text(const char *name, const char *text, size_t length, const struct trace_part *part,
                                 struct trace_reader **out, struct error *err)
{
    struct trace_reader *s = NULL;
    enum status status = create(part, &s, err);
    if (status == STATUS_OK) status = trace_file_of_text(&s->file, name, text, length, err);
    if (status == STATUS_OK) status = prepare(s, err);
    if (status == STATUS_OK) *out = s;
    else trace_reader_close(s);
    return status;
}

enum status trace_reader_of(const struct trace *trace, struct trace_reader **out, struct error *err)
{
    enum status status = create(NULL, out, err);
    if (status == STATUS_OK) (*out)->memory = trace;
    return status;
}

const struct trace *trace_reader_head(const struct trace_reader *reader)
{
    return reader->memory ? reader->memory : &reader->file.head;
}

void trace_reader_take_head(struct trace_reader *reader, struct trace *out)
{
    assert(!reader->memory);
    *out = reader->file.head;
    reader->file.head = (struct trace){0};
}

bool trace_reader_counts(const struct trace_reader *reader, uint64_t *spans, uint64_t *levels)
{
    bool known = reader->memory || reader->file.indexed;
    if (!known) return false;
    *spans = reader->memory ? reader->memory->span_count : reader->file.ends.arrays[TRACE_SPANS].count;
    *levels = reader->memory ? reader->memory->level_count : reader->file.ends.arrays[TRACE_LEVELS].count;
    return true;
}

enum status trace_reader_rewind(struct trace_reader *s, struct error *err)
{
    s->array = TRACE_SPANS;
    s->begun = s->held_given = s->level_waits = false;
    s->at = s->given = 0;
    s->held_count = s->held_at = 0;
    s->last_s = 0;
    s->bounds = (struct bounds){0};
    if (s->memory) return STATUS_OK;
    for (uint32_t p = 0; p < s->file.head.place_count; p++) s->held[p] = (struct trace_held){0};
    trace_judge_restart(&s->judge);
    return s->skips ? STATUS_OK : json_stream_begin(s->file.json, TRACE_SPANS, err);
}

enum status trace_reader_part(struct trace_reader *reader, const struct trace_part *part, struct error *err)
{
    choose_part(reader, part);
    return trace_reader_rewind(reader, err);
}

void trace_reader_close(struct trace_reader *reader)
{
    if (!reader) return;
    trace_judge_release(&reader->judge);
    trace_file_release(&reader->file);
    free(reader->held);
    free(reader->sorted);
    free(reader);
}

/* --- the index, proven ---------------------------------------------------------------------- */

static enum status fail_index(const struct trace_reader *s, const char *key, size_t block, struct error *err)
{
    return error_set(err, STATUS_CHECK, "%s: block %zu of '%s' differs from the trace (remove 'ends' to read it "
                     "without the index)", name_of(s), block, key);
}

/* Checks the bounds of a block of spans that has ended. */
static bool span_block_fits(const struct trace_reader *s)
{
    const struct bounds *bounds = &s->bounds;
    const struct trace_span_block *block = &s->file.span_blocks[bounds->block - 1];
    return block->minibatch == bounds->minibatch && !(block->from_s < bounds->from_s) &&
           !(block->from_s > bounds->from_s) && !(block->to_s < bounds->to_s) && !(block->to_s > bounds->to_s);
}

static void add_to_bounds(struct bounds *bounds, const struct trace_span *span, bool first)
{
    if (first || span->start_s < bounds->from_s) bounds->from_s = span->start_s;
    if (first || span->end_s > bounds->to_s) bounds->to_s = span->end_s;
    if (first || span->minibatch < bounds->minibatch) bounds->minibatch = span->minibatch;
}

/* Returns the place where the element before this one ended, or the array began. */
static uint64_t place_before(const struct trace_reader *s, const struct json_element *element, size_t array)
{
    return element->index == 0 ? json_stream_first(s->file.json, array) : s->bounds.end;
}

static enum status prove_span(struct trace_reader *s, const struct json_element *element, const struct trace_span *span,
                              struct error *err)
{
    struct bounds *bounds = &s->bounds;
    const struct trace_file *file = &s->file;
    bool first = bounds->block < file->span_block_count && file->span_blocks[bounds->block].first == element->index;
    if (first) {
        if (bounds->block > 0 && !span_block_fits(s)) return fail_index(s, "span_blocks", bounds->block - 1, err);
        if (file->span_blocks[bounds->block].at.text != place_before(s, element, TRACE_SPANS))
            return fail_index(s, "span_blocks", bounds->block, err);
        bounds->block++;
    }
    add_to_bounds(bounds, span, first);
    bounds->end = element->offset + element->length;
    return STATUS_OK;
}

/* After the last element of an array. */
static enum status prove_end(const struct trace_reader *s, int array, uint64_t count, const char *key,
                             size_t block_count, struct error *err)
{
    const struct trace_end *end = &s->file.ends.arrays[array];
    uint64_t at = count > 0 ? s->bounds.end : json_stream_first(s->file.json, (size_t)array);
    if (count == end->count && at == end->at.text && s->bounds.block == block_count) return STATUS_OK;
    return fail_index(s, key, s->bounds.block, err);
}

static enum status end_spans(struct trace_reader *s, struct error *err)
{
    enum status status = STATUS_OK;
    if (s->file.indexed && !s->skips) {
        if (s->bounds.block > 0 && !span_block_fits(s)) return fail_index(s, "span_blocks", s->bounds.block - 1, err);
        status = prove_end(s, TRACE_SPANS, s->judge.span_count, "span_blocks", s->file.span_block_count, err);
    }
    s->bounds = (struct bounds){0};
    s->array = TRACE_LEVELS;
    return status;
}

static enum status prove_level(struct trace_reader *s, const struct json_element *element,
                               const struct trace_level *level, struct error *err)
{
    struct bounds *bounds = &s->bounds;
    const struct trace_file *file = &s->file;
    const uint32_t places = file->head.place_count;
    if (bounds->block < file->level_block_count && file->level_blocks[bounds->block].first == element->index) {
        const struct trace_level_block *block = &file->level_blocks[bounds->block];
        const struct trace_held *held = file->held + bounds->block * places;
        bool fits = block->at.text == place_before(s, element, TRACE_LEVELS) && !(block->time_s < level->time_s) &&
                    !(block->time_s > level->time_s);
        for (uint32_t p = 0; p < places; p++)
            fits = fits && held[p].next == s->held[p].next && held[p].bytes == s->held[p].bytes &&
                   !(held[p].time_s < s->held[p].time_s) && !(held[p].time_s > s->held[p].time_s);
        if (!fits) return fail_index(s, "level_blocks", bounds->block, err);
        bounds->block++;
    }
    s->held[level->place] =
        (struct trace_held){.next = element->index + 1, .time_s = level->time_s, .bytes = level->bytes};
    bounds->end = element->offset + element->length;
    return STATUS_OK;
}

/* --- spans ---------------------------------------------------------------------------------- */

static bool span_wanted(const struct trace_part *part, const struct trace_span *span)
{
    if (part->minibatches > 0 && span->minibatch >= part->minibatches) return false;
    return span->end_s >= part->from_s && !(part->to_s > 0 && span->start_s > part->to_s);
}

static bool block_wanted(const struct trace_part *part, const struct trace_span_block *block)
{
    if (part->minibatches > 0 && block->minibatch >= part->minibatches) return false;
    return block->to_s >= part->from_s && !(part->to_s > 0 && block->from_s > part->to_s);
}

/* Goes to the next block that is wanted; *some is false without one. */
static enum status next_block(struct trace_reader *s, bool *some, struct error *err)
{
    const struct trace_file *file = &s->file;
    struct bounds *bounds = &s->bounds;
    const size_t before = bounds->block;
    size_t block = before;
    while (block < file->span_block_count && !block_wanted(&s->part, &file->span_blocks[block])) block++;
    *some = block < file->span_block_count;
    if (!*some) return STATUS_OK;
    const struct trace_span_block *wanted = &file->span_blocks[block];
    uint64_t end = block + 1 < file->span_block_count ? wanted[1].first : file->ends.arrays[TRACE_SPANS].count;
    bounds->left = end - wanted->first;
    bounds->block = block + 1;
    bool goes_on = before > 0 && block == before;
    return goes_on ? STATUS_OK : json_stream_go(file->json, TRACE_SPANS, &wanted->at, wanted->first, err);
}

static enum status check_in_block(const struct trace_reader *s, const struct trace_span *span, struct error *err)
{
    const struct trace_span_block *block = &s->file.span_blocks[s->bounds.block - 1];
    if (span->start_s >= block->from_s && span->end_s <= block->to_s && span->minibatch >= block->minibatch)
        return STATUS_OK;
    return fail_index(s, "span_blocks", s->bounds.block - 1, err);
}

static enum status next_in_blocks(struct trace_reader *s, struct trace_span *out, bool *more, struct error *err)
{
    struct json_element element;
    enum status status = STATUS_OK;
    if (s->bounds.left == 0) status = next_block(s, more, err);
    if (status != STATUS_OK || (s->bounds.left == 0 && !*more)) return status;
    TRY(json_stream_next(s->file.json, &element, more, err));
    if (!*more) return fail_index(s, "span_blocks", s->bounds.block - 1, err);
    s->bounds.left--;
    TRY(trace_file_span(&s->file, &element, out, err));
    TRY(judged(s, trace_judge_span(&s->judge, out, err), err));
    return check_in_block(s, out, err);
}

static enum status next_span(struct trace_reader *s, struct trace_span *out, bool *more, struct error *err)
{
    struct json_element element;
    enum status status = json_stream_next(s->file.json, &element, more, err);
    if (status != STATUS_OK || !*more) return status;
    status = trace_file_span(&s->file, &element, out, err);
    if (status == STATUS_OK) status = judged(s, trace_judge_span(&s->judge, out, err), err);
    return status == STATUS_OK && s->file.indexed ? prove_span(s, &element, out, err) : status;
}

static enum status span_of_memory(struct trace_reader *s, struct trace_span *out, bool *more)
{
    while (s->windowed && s->at < s->memory->span_count && !span_wanted(&s->part, &s->memory->spans[s->at])) s->at++;
    *more = s->at < s->memory->span_count;
    if (*more) {
        *out = s->memory->spans[s->at++];
    } else {
        s->at = 0;
        s->array = TRACE_LEVELS;
    }
    return STATUS_OK;
}

enum status trace_reader_span(struct trace_reader *s, struct trace_span *out, bool *more, struct error *err)
{
    assert(s->array == TRACE_SPANS);
    if (s->memory) return span_of_memory(s, out, more);
    for (;;) {
        struct trace_span span;
        *more = false;
        TRY(s->skips ? next_in_blocks(s, &span, more, err) : next_span(s, &span, more, err));
        if (!*more) return end_spans(s, err);
        if (s->windowed && !span_wanted(&s->part, &span)) continue;
        s->last_s = fmax(s->last_s, span.end_s);
        *out = span;
        return STATUS_OK;
    }
}

/* --- levels --------------------------------------------------------------------------------- */

/* Goes to the block with the first level that is not before the window and the end of the spans. */
static enum status go_to_levels(struct trace_reader *s, struct error *err)
{
    const struct trace_file *file = &s->file;
    const uint32_t places = file->head.place_count;
    size_t block = 0;
    if (file->level_block_count == 0) return json_stream_begin(file->json, TRACE_LEVELS, err);
    while (block + 1 < file->level_block_count && file->level_blocks[block + 1].time_s < s->part.from_s &&
           file->level_blocks[block + 1].time_s <= s->to_s)
        block++;
    for (uint32_t p = 0; p < places; p++) s->held[p] = file->held[block * places + p];
    const struct trace_level_block *begin = &file->level_blocks[block];
    s->judge.level_count = begin->first;
    return json_stream_go(file->json, TRACE_LEVELS, &begin->at, begin->first, err);
}

static enum status begin_levels(struct trace_reader *s, struct error *err)
{
    s->begun = true;
    s->to_s = s->part.to_s > 0 ? s->part.to_s : TRACE_TIME_MAX_S;
    if (s->part.minibatches > 0) s->to_s = fmin(s->to_s, s->last_s);
    return s->skips ? go_to_levels(s, err) : json_stream_begin(s->file.json, TRACE_LEVELS, err);
}

/* Reads the next level, with its element. */
static enum status next_level(struct trace_reader *s, struct json_element *element, struct trace_level *out, bool *more,
                              struct error *err)
{
    *more = false;
    enum status status = json_stream_next(s->file.json, element, more, err);
    if (status != STATUS_OK) return status;
    if (!*more) {
        if (s->skips) return STATUS_OK;
        status = judged(s, trace_judge_end(&s->judge, err), err);
        if (status != STATUS_OK || !s->file.indexed) return status;
        return prove_end(s, TRACE_LEVELS, s->judge.level_count, "level_blocks", s->file.level_block_count, err);
    }
    TRY(trace_file_level(&s->file, element, out, err));
    return judged(s, trace_judge_level(&s->judge, out, err), err);
}

static int by_element(const void *a, const void *b)
{
    const struct trace_held *x = a, *y = b;
    return (x->next > y->next) - (x->next < y->next);
}

/* Puts what places hold when the window begins in the order of the file; `sorted` has the place in `bytes`. */
static void sort_held(struct trace_reader *s)
{
    s->held_count = s->held_at = 0;
    for (uint32_t p = 0; p < s->file.head.place_count; p++)
        if (s->held[p].next > 0) s->sorted[s->held_count++] = (struct trace_held){.next = s->held[p].next, .bytes = p};
    qsort(s->sorted, s->held_count, sizeof *s->sorted, by_element);
    s->held_given = true;
}

static bool any_held(const struct trace_reader *s)
{
    for (uint32_t p = 0; p < s->file.head.place_count; p++)
        if (s->held[p].next > 0) return true;
    return false;
}

/* Reads up to the first level of the window, which is kept for the next call, or to the end. */
static enum status pass_to_window(struct trace_reader *s, struct error *err)
{
    bool some = s->skips && any_held(s);
    for (;;) {
        struct json_element element;
        bool more;
        enum status status = next_level(s, &element, &s->waiting, &more, err);
        if (status != STATUS_OK || !more) return status;
        if (s->waiting.time_s > s->to_s && some) {
            if (s->skips) return STATUS_OK;
            continue;
        }
        if (s->waiting.time_s >= s->part.from_s) {
            s->level_waits = true;
            return STATUS_OK;
        }
        some = true;
        s->held[s->waiting.place] = (struct trace_held){
            .next = element.index + 1, .time_s = s->waiting.time_s, .bytes = s->waiting.bytes};
    }
}

static enum status level_of_window(struct trace_reader *s, struct trace_level *out, bool *more, struct error *err)
{
    enum status status = STATUS_OK;
    if (!s->held_given) {
        TRY(pass_to_window(s, err));
        sort_held(s);
    }
    *more = true;
    if (s->held_at < s->held_count) {
        uint32_t place = (uint32_t)s->sorted[s->held_at++].bytes;
        *out = (struct trace_level){.time_s = s->held[place].time_s, .bytes = s->held[place].bytes, .place = place};
    } else if (s->level_waits) {
        s->level_waits = false;
        *out = s->waiting;
    } else {
        struct json_element element;
        do {
            status = next_level(s, &element, out, more, err);
            if (status == STATUS_OK && *more && out->time_s > s->to_s && s->skips) *more = false;
        } while (status == STATUS_OK && *more && out->time_s > s->to_s && s->given > 0);
    }
    s->given += *more;
    return status;
}

enum status trace_reader_level(struct trace_reader *s, struct trace_level *out, bool *more, struct error *err)
{
    assert(s->array == TRACE_LEVELS);
    *more = false;
    if (s->memory) {
        *more = s->at < s->memory->level_count;
        if (*more) *out = s->memory->levels[s->at++];
        return STATUS_OK;
    }
    TRY(s->begun ? STATUS_OK : begin_levels(s, err));
    if (s->windowed) return level_of_window(s, out, more, err);
    struct json_element element;
    struct trace_level level;
    enum status status = next_level(s, &element, &level, more, err);
    if (status != STATUS_OK || !*more) return status;
    *out = level;
    return s->file.indexed ? prove_level(s, &element, &level, err) : STATUS_OK;
}

enum status trace_reader_finish(struct trace_reader *s, uint64_t *span_count, struct error *err)
{
    struct trace_span span;
    struct trace_level level;
    bool more = s->array == TRACE_SPANS;
    enum status status = STATUS_OK;
    while (more && status == STATUS_OK) status = trace_reader_span(s, &span, &more, err);
    more = true;
    while (more && status == STATUS_OK) status = trace_reader_level(s, &level, &more, err);
    *span_count = s->memory ? s->memory->span_count : s->judge.span_count;
    return status;
}
