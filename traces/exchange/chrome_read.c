/*
 * Events are collected, sorted by track and time, reduced to outermost events, and classified by kind and name. The
 * file is read as a stream: an event is 48 bytes then, and its name is kept once for all events of that name.
 */
#include "traces/exchange/chrome_read.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/files/file_in.h"
#include "base/json/json_stream.h"
#include "base/text.h"
#include "base/try.h"
#include "planner/plan.h"

enum { TRACKS_MAX = 4096, NAME_BYTES = 64, EVENTS_MAX = 1 << 24 };

static const double microsecond_s = 1e-6;

struct track {
    char process[40], thread[40]; /* "1", "stream 7", as the events have them */
    const char *process_name, *thread_name; /* NULL: not said */
};

struct event {
    const char *name;
    double start_us, end_us;
    uint32_t track, kind; /* enum plan_stream_kind */
    uint32_t stream, job;
    bool of_device;
};

/* The name of a process or thread, which belongs to all tracks of the trace. */
struct naming {
    char process[40], thread[40];
    const char *name;
    bool of_process;
};

/* The different names. Open addressing; a cell is NULL when it is free. */
struct names {
    char **cells;
    size_t count, cell_count; /* cell_count is 0 or a power of two, at least twice the count */
};

struct chrome_read_reading {
    struct arena *arena;  /* of the trace */
    struct arena scratch;
    const struct json_input *input; /* the event that is read */
    struct names names;
    struct track *tracks;
    uint32_t track_count;
    struct event *list;
    size_t count, capacity;
    struct naming *namings;
    size_t naming_count, naming_capacity;
};

/* --- names ------------------------------------------------------------------------------------ */

/* Finds the cell of a name, or the free cell for it. */
static char **find_cell(const struct names *names, const char *name)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
    for (const char *c = name; *c; c++) hash = (hash ^ (unsigned char)*c) * UINT64_C(0x100000001b3);
    size_t at = hash & (names->cell_count - 1);
    while (names->cells[at] && strcmp(names->cells[at], name) != 0) at = (at + 1) & (names->cell_count - 1);
    return &names->cells[at];
}

static enum status grow_names(struct names *names, struct error *err)
{
    struct names larger = {.count = names->count, .cell_count = names->cell_count ? 2 * names->cell_count : 1024};
    larger.cells = alloc_zeroed(larger.cell_count, sizeof *larger.cells);
    if (!larger.cells) return error_memory(err, "names of events", larger.cell_count * sizeof *larger.cells);
    for (size_t i = 0; i < names->cell_count; i++)
        if (names->cells[i]) *find_cell(&larger, names->cells[i]) = names->cells[i];
    free(names->cells);
    *names = larger;
    return STATUS_OK;
}

/* Gets a copy of the name, which equal names share. */
static enum status keep_name(struct chrome_read_reading *r, const char *name, const char **out, struct error *err)
{
    struct names *names = &r->names;
    if (2 * (names->count + 1) > names->cell_count) TRY(grow_names(names, err));
    char **cell = find_cell(names, name);
    if (!*cell) {
        const size_t length = strlen(name);
        char *copy;
        TRY(ARENA_NEW(&r->scratch, length + 1, copy, err));
        memcpy(copy, name, length + 1);
        *cell = copy;
        names->count++;
    }
    *out = *cell;
    return STATUS_OK;
}

/* Makes each name text on one line, when all are known: before, equal names are found by their bytes. */
static void clean_names(struct names *names)
{
    for (size_t i = 0; i < names->cell_count; i++)
        if (names->cells[i]) text_clean(names->cells[i], strlen(names->cells[i]), "");
}

/* --- events ----------------------------------------------------------------------------------- */

/* Numbers and strings both number processes and threads. */
static void id_text(const json_t *event, const char *key, char text[40])
{
    const json_t *value = json_object_get(event, key);
    if (json_is_integer(value)) snprintf(text, 40, "%lld", (long long)json_integer_value(value));
    else if (json_is_real(value)) snprintf(text, 40, "%.0f", json_real_value(value));
    else snprintf(text, 40, "%.39s", json_is_string(value) ? json_string_value(value) : "0");
    text_clean(text, strlen(text), "");
}

static enum status find_track(struct chrome_read_reading *r, const json_t *event, uint32_t *out, struct error *err)
{
    char process[40], thread[40];
    id_text(event, "pid", process);
    id_text(event, "tid", thread);
    for (uint32_t t = r->track_count; t-- > 0;) {
        if (strcmp(r->tracks[t].thread, thread) != 0 || strcmp(r->tracks[t].process, process) != 0) continue;
        *out = t;
        return STATUS_OK;
    }
    if (r->track_count == TRACKS_MAX) return error_set(err, STATUS_LIMIT, "too many tracks (limit is %d)", TRACKS_MAX);
    struct track *track = &r->tracks[*out = r->track_count++];
    memcpy(track->process, process, sizeof process);
    memcpy(track->thread, thread, sizeof thread);
    return STATUS_OK;
}

static const char *text_of(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    return json_is_string(value) ? json_string_value(value) : "";
}

static bool is_of_device(const char *category)
{
    return strcmp(category, "kernel") == 0 || strcmp(category, "gpu_memcpy") == 0 ||
           strcmp(category, "gpu_memset") == 0;
}

static uint32_t kind_of(const char *name)
{
    if (strstr(name, "HtoD")) return STREAM_H2D;
    if (strstr(name, "DtoH")) return STREAM_D2H;
    if (strstr(name, "PtoP")) return STREAM_P2P;
    if (strncmp(name, "nccl", 4) == 0) return STREAM_DATA;
    return STREAM_COMPUTE;
}

static enum status read_time(const struct chrome_read_reading *r, const json_t *event, const char *key, double *out,
                             struct error *err)
{
    const json_t *value = json_object_get(event, key);
    *out = json_is_number(value) ? json_number_value(value) : NAN;
    if (isfinite(*out) && fabs(*out) < TRACE_TIME_MAX_S / microsecond_s) return STATUS_OK;
    return json_fail_key(r->input, event, value ? key : NULL, err, "an event's '%s' is %s (expected microseconds)", key,
                         value ? "no number" : "missing");
}

static enum status read_event(struct chrome_read_reading *r, const json_t *event, struct error *err)
{
    double start_us, length_us;
    TRY(read_time(r, event, "ts", &start_us, err));
    TRY(read_time(r, event, "dur", &length_us, err));
    if (length_us < 0)
        return json_fail_key(r->input, event, "dur", err, "an event lasts %g microseconds (expected 0 or more)",
                             length_us);
    TRY(array_reserve(&r->list, &r->capacity, r->count, sizeof *r->list, EVENTS_MAX, "events", err));
    struct event *e = &r->list[r->count];
    *e = (struct event){.start_us = start_us, .end_us = start_us + length_us,
                        .of_device = is_of_device(text_of(event, "cat"))};
    TRY(keep_name(r, text_of(event, "name"), &e->name, err));
    e->kind = kind_of(e->name);
    TRY(find_track(r, event, &e->track, err));
    r->count++;
    return STATUS_OK;
}

/* Keeps the name of a process or thread until all tracks are known. */
static enum status read_naming(struct chrome_read_reading *r, const json_t *event, struct error *err)
{
    const char *what = text_of(event, "name"), *name = text_of(json_object_get(event, "args"), "name");
    bool of_process = strcmp(what, "process_name") == 0;
    if ((!of_process && strcmp(what, "thread_name") != 0) || !*name) return STATUS_OK;
    TRY(array_reserve(&r->namings, &r->naming_capacity, r->naming_count, sizeof *r->namings, EVENTS_MAX, "names", err));
    struct naming *naming = &r->namings[r->naming_count];
    *naming = (struct naming){.of_process = of_process};
    TRY(keep_name(r, name, &naming->name, err));
    id_text(event, "pid", naming->process);
    id_text(event, "tid", naming->thread);
    r->naming_count++;
    return STATUS_OK;
}

static void name_tracks(struct chrome_read_reading *r)
{
    for (size_t i = 0; i < r->naming_count; i++) {
        const struct naming *naming = &r->namings[i];
        for (uint32_t t = 0; t < r->track_count; t++) {
            struct track *track = &r->tracks[t];
            if (strcmp(track->process, naming->process) != 0) continue;
            if (naming->of_process) track->process_name = naming->name;
            else if (strcmp(track->thread, naming->thread) == 0) track->thread_name = naming->name;
        }
    }
}

static enum status read_element(struct chrome_read_reading *r, const struct json_stream *file,
                                const struct json_element *element, struct error *err)
{
    struct json_input *input;
    TRY(json_stream_parse(file, element, &input, err));
    const json_t *event = json_input_root(input);
    enum status status = STATUS_OK;
    r->input = input;
    if (!json_is_object(event))
        status = error_set(err, STATUS_BAD_INPUT, "%s:%zu:%zu: no event (expected an object)", json_input_name(input),
                           element->line, element->column);
    else if (strcmp(text_of(event, "ph"), "X") == 0)
        status = read_event(r, event, err);
    else if (strcmp(text_of(event, "ph"), "M") == 0)
        status = read_naming(r, event, err);
    json_input_destroy(input);
    return status;
}

enum { OF_OBJECT, OF_ROOT };
static const char *const long_arrays[] = {[OF_OBJECT] = "traceEvents", [OF_ROOT] = "", NULL};

/* Finds which of the arrays has the events. */
static enum status find_events(const struct json_stream *file, size_t *out, struct error *err)
{
    const struct json_input *head = json_stream_head(file);
    const json_t *root = json_input_root(head);
    const json_t *events = json_is_object(root) ? json_object_get(root, long_arrays[OF_OBJECT]) : root;
    *out = json_is_object(root) ? OF_OBJECT : OF_ROOT;
    if (!json_is_array(events))
        return json_fail_key(head, root, NULL, err, "no events (expected an array, or an object with 'traceEvents')");
    if (json_array_size(events) == 0) return STATUS_OK;
    return json_fail_key(head, root, long_arrays[OF_OBJECT], err, "the key 'traceEvents' is written with escapes");
}

static enum status read_events(struct chrome_read_reading *r, struct json_stream *file, struct error *err)
{
    size_t events = 0;
    TRY(find_events(file, &events, err));
    TRY(ARENA_NEW(&r->scratch, TRACKS_MAX, r->tracks, err));
    TRY(json_stream_begin(file, events, err));
    for (;;) {
        struct json_element element;
        bool more;
        TRY(json_stream_next(file, &element, &more, err));
        if (!more) break;
        TRY(read_element(r, file, &element, err));
    }
    clean_names(&r->names);
    name_tracks(r);
    return STATUS_OK;
}

/* --- which of them ------------------------------------------------------------------------------ */

static int by_track_and_time(const void *left, const void *right)
{
    const struct event *a = left, *b = right;
    if (a->track != b->track) return a->track < b->track ? -1 : 1;
    if (a->start_us < b->start_us || a->start_us > b->start_us) return a->start_us < b->start_us ? -1 : 1;
    if (a->end_us < b->end_us || a->end_us > b->end_us) return a->end_us > b->end_us ? -1 : 1;
    return strcmp(a->name, b->name);
}

static int by_time(const void *left, const void *right)
{
    const struct event *a = left, *b = right;
    if (a->start_us < b->start_us || a->start_us > b->start_us) return a->start_us < b->start_us ? -1 : 1;
    return by_track_and_time(left, right);
}

/* Keeps the work of devices, or else outermost events; removes overlaps on a track. */
static void thin(struct chrome_read_reading *r)
{
    bool some = false;
    size_t kept = 0;
    for (size_t i = 0; i < r->count; i++) some |= r->list[i].of_device;
    for (size_t i = 0; i < r->count; i++)
        if (!some || r->list[i].of_device) r->list[kept++] = r->list[i];
    r->count = kept;
    if (kept == 0) return;
    qsort(r->list, r->count, sizeof *r->list, by_track_and_time);
    kept = 0;
    for (size_t i = 0; i < r->count; i++) {
        struct event *e = &r->list[i], *before = kept > 0 ? &r->list[kept - 1] : NULL;
        if (before && before->track == e->track && before->end_us > e->start_us) {
            if (e->end_us <= before->end_us) continue;
            e->start_us = before->end_us;
        }
        r->list[kept++] = *e;
    }
    r->count = kept;
    qsort(r->list, r->count, sizeof *r->list, by_time);
}

/* --- streams and jobs --------------------------------------------------------------------------- */

/* Bytes of a name that is shown: NAME_BYTES at most, and whole characters. */
static int shown_bytes(const char *name)
{
    size_t length = strnlen(name, NAME_BYTES + 1);
    if (length <= NAME_BYTES) return (int)length;
    for (length = NAME_BYTES; length > 0 && ((unsigned char)name[length] & 0xc0) == 0x80;) length--;
    return (int)length;
}

/* Names a stream "GPU 0, stream 7", or "GPU 0, stream 7 h2d" if the track also has other work. */
static enum status name_stream(struct chrome_read_reading *r, const struct event *e, const char **out,
                               struct error *err)
{
    const struct track *track = &r->tracks[e->track];
    const char *process = track->process_name ? track->process_name : track->process;
    const char *thread = track->thread_name ? track->thread_name : track->thread;
    char text[2 * NAME_BYTES + 24];
    snprintf(text, sizeof text, "%.*s, %.*s%s%s", shown_bytes(process), process, shown_bytes(thread), thread,
             e->kind == STREAM_COMPUTE ? "" : " ", e->kind == STREAM_COMPUTE ? "" : plan_stream_names[e->kind]);
    return arena_string(r->arena, text, out, err);
}

/* Returns the device of a track; all streams of a process belong to one device. */
static uint32_t device_of(const struct chrome_read_reading *r, uint32_t track)
{
    uint32_t device = 0;
    for (uint32_t t = 0; t < track; t++) {
        if (strcmp(r->tracks[t].process, r->tracks[track].process) == 0) break;
        device++;
    }
    return device;
}

static enum status make_streams(struct chrome_read_reading *r, struct trace *trace, struct error *err)
{
    size_t most = (size_t)r->track_count * STREAM_KIND_COUNT;
    TRY(ARENA_NEW(r->arena, most, trace->streams, err));
    uint32_t *number; /* of a stream, from 1 */
    TRY(ARENA_NEW(&r->scratch, most, number, err));
    for (size_t i = 0; i < r->count; i++) {
        struct event *e = &r->list[i];
        uint32_t *known = &number[e->track * STREAM_KIND_COUNT + e->kind];
        if (*known == 0) {
            struct trace_stream *stream = &trace->streams[trace->stream_count];
            *stream = (struct trace_stream){.device = device_of(r, e->track), .kind = e->kind};
            TRY(name_stream(r, e, &stream->name, err));
            *known = ++trace->stream_count;
        }
        e->stream = *known - 1;
    }
    return STATUS_OK;
}

struct named {
    const char *name;
    double seconds;
    size_t first, count; /* of the events by name */
};

static int by_name(const void *left, const void *right)
{
    struct event *const *a = left, *const *b = right;
    return strcmp((*a)->name, (*b)->name);
}

static int by_seconds(const void *left, const void *right)
{
    const struct named *a = left, *b = right;
    if (a->seconds < b->seconds || a->seconds > b->seconds) return a->seconds > b->seconds ? -1 : 1;
    return strcmp(a->name, b->name);
}

static enum status make_jobs(struct chrome_read_reading *r, struct trace *trace, struct error *err)
{
    struct event **sorted;
    TRY(ARENA_NEW(&r->scratch, r->count, sorted, err));
    struct named *named;
    TRY(ARENA_NEW(&r->scratch, r->names.count, named, err));
    size_t count = 0;
    for (size_t i = 0; i < r->count; i++) sorted[i] = &r->list[i];
    qsort(sorted, r->count, sizeof *sorted, by_name);
    for (size_t i = 0; i < r->count; i++) {
        if (i == 0 || strcmp(sorted[i]->name, sorted[i - 1]->name) != 0)
            named[count++] = (struct named){.name = sorted[i]->name, .first = i};
        named[count - 1].count++;
        named[count - 1].seconds += (sorted[i]->end_us - sorted[i]->start_us) * microsecond_s;
    }
    qsort(named, count, sizeof *named, by_seconds);
    TRY(ARENA_NEW(r->arena, count, trace->jobs, err));
    for (size_t j = 0; j < count; j++) {
        char text[NAME_BYTES + 4];
        int shown = shown_bytes(named[j].name);
        snprintf(text, sizeof text, "%.*s%s", shown, named[j].name, named[j].name[shown] ? "..." : "");
        TRY(arena_string(r->arena, text, &trace->jobs[j].name, err));
        for (size_t i = 0; i < named[j].count; i++) sorted[named[j].first + i]->job = (uint32_t)j;
    }
    trace->job_count = (uint32_t)count;
    return STATUS_OK;
}

static enum status make_spans(struct chrome_read_reading *r, struct trace *trace, struct error *err)
{
    TRY(ARENA_NEW(r->arena, r->count, trace->spans, err));
    for (size_t i = 0; i < r->count; i++) {
        const struct event *e = &r->list[i];
        bool copy = e->kind == STREAM_H2D || e->kind == STREAM_D2H || e->kind == STREAM_P2P;
        double start_s = (e->start_us - r->list[0].start_us) * microsecond_s;
        double end_s = (e->end_us - r->list[0].start_us) * microsecond_s;
        trace->spans[i] = (struct trace_span){.start_s = start_s, .end_s = end_s, .number = i, .stream = e->stream,
                                              .job = e->job, .kind = copy ? OP_COPY : OP_COMPUTE};
        trace->makespan_s = fmax(trace->makespan_s, end_s);
    }
    trace->span_count = r->count;
    return STATUS_OK;
}

/* --- all --------------------------------------------------------------------------------------- */

/* Returns true when the key of the events is in the text. */
static bool has_key(const char *text, size_t length)
{
    static const char key[] = "\"traceEvents\"";
    return memmem(text, length, key, sizeof key - 1) != NULL;
}

enum status chrome_recognise(struct file_in *file, bool *out, struct error *err)
{
    enum { CHUNK_BYTES = 1 << 16, OVERLAP_BYTES = 16 }; /* the key may be cut by the end of a chunk */
    char *chunk = alloc_zeroed(1, OVERLAP_BYTES + CHUNK_BYTES);
    if (!chunk) return error_memory(err, "a file", CHUNK_BYTES);
    size_t kept = 0, got = 1;
    bool begun = false;
    enum status status = STATUS_OK;
    *out = false;
    while (!*out && got > 0 && (status = file_in_read(file, chunk + kept, CHUNK_BYTES, &got, err)) == STATUS_OK) {
        size_t at = kept, length = kept + got;
        while (!begun && at < length && memchr(" \t\r\n", chunk[at], 4)) at++;
        *out = (!begun && at < length && chunk[at] == '[') || has_key(chunk, length);
        begun |= at < length;
        kept = length < OVERLAP_BYTES ? length : OVERLAP_BYTES;
        memmove(chunk, chunk + length - kept, kept);
    }
    free(chunk);
    return status;
}

static enum status read_stream(struct chrome_read_reading *r, struct json_stream *file, struct trace *out,
                               struct error *err)
{
    out->source = TRACE_MEASURED;
    out->hardware = out->policy = "not known";
    TRY(read_events(r, file, err));
    thin(r);
    if (r->count == 0)
        return error_set(err, STATUS_BAD_INPUT, "%s: no event has a duration (expected events of phase 'X')",
                         json_input_name(json_stream_head(file)));
    TRY(make_streams(r, out, err));
    TRY(make_jobs(r, out, err));
    return make_spans(r, out, err);
}

/* Takes `file` over. */
static enum status read_and_close(struct json_stream *file, struct trace *out, struct error *err)
{
    struct chrome_read_reading r = {.arena = &out->arena};
    enum status status = read_stream(&r, file, out, err);
    free(r.list);
    free(r.namings);
    free(r.names.cells);
    arena_release(&r.scratch);
    json_stream_close(file);
    return status;
}

enum status chrome_read(const char *path, struct trace *out, struct error *err)
{
    struct json_stream *file;
    TRY(json_stream_open(path, long_arrays, &file, err));
    return read_and_close(file, out, err);
}

enum status chrome_parse(const char *name, const char *text, size_t length, struct trace *out, struct error *err)
{
    struct json_stream *file;
    TRY(json_stream_of_text(name, text, length, long_arrays, &file, err));
    return read_and_close(file, out, err);
}
