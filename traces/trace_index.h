/*
 * The index of a trace file: where blocks of its spans and levels begin, so that a window of a long trace is read in
 * the time and memory of the window.
 *
 *     "spans": [ block | block | block ],  "levels": [ block | block ],  operations, jobs, ...,
 *     "span_blocks": [...],  "level_blocks": [...],  "ends": [...]}
 *
 * A row of "span_blocks" is a block: its first element, the place before it (struct file_place), the first begin and
 * the last end of its spans and their lowest minibatch. A row of "level_blocks" has the time of the block's first
 * level, and for each place the level that holds when the block begins: its element plus one (0: none), its time and
 * its bytes.
 *
 * "ends" is the last key, in a line of its own. It has the number of spans, the place after them, the same for
 * levels, and the offset of this line. A file that was changed afterwards no longer has this line there; then
 * the index is not used.
 */
#ifndef SPILLWAY_TRACES_TRACE_INDEX_H
#define SPILLWAY_TRACES_TRACE_INDEX_H

#include "base/files/file_place.h"
#include "traces/trace.h"

struct file_in;
struct json_out;

enum { TRACE_SPANS, TRACE_LEVELS, TRACE_ARRAYS };

/* The end of an array. */
struct trace_end {
    uint64_t count;
    struct file_place at;
};

struct trace_ends {
    struct trace_end arrays[TRACE_ARRAYS];
};

struct trace_span_block {
    uint64_t first; /* element */
    struct file_place at;
    double from_s, to_s;
    uint32_t minibatch;
};

/* The level that holds at a place. */
struct trace_held {
    uint64_t next; /* its element plus one; 0: none */
    double time_s;
    uint64_t bytes;
};

struct trace_level_block {
    uint64_t first;
    struct file_place at;
    double time_s;
};

/* Writes the key, which must be the last one. */
void trace_ends_write(const struct trace_ends *ends, struct json_out *out);

/* Reads the last line of a file. *found is false without the line or when it is not where it says; the file
 * must be read from its beginning or a place afterwards. Errors: as file_in_end(). */
MUST_CHECK enum status trace_ends_read(struct file_in *file, struct trace_ends *out, bool *found, struct error *err);

#endif
