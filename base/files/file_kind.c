/*
 * Only the first 4096 bytes are read, inflated if the file is gzip data, so that a user's file of a gigabyte is
 * recognised as quickly as a small one. A table has the key or signature of each kind.
 */
#include "base/files/file_kind.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/size.h"

enum { START_BYTES = 4096, KEY_BYTES = 32, KEYS_MAX = 4, GZIP_WINDOW = 15 + 16 };

struct start {
    char text[START_BYTES + 1]; /* a NUL follows */
    size_t length;
    bool gzip, damaged; /* damaged: gzip data that cannot be inflated */
};

/* --- recognising formats ---------------------------------------------------------------------- */

static bool has(const struct start *start, const char *text)
{
    return memmem(start->text, start->length, text, strlen(text)) != NULL;
}

static bool begins(const struct start *start, const char *text)
{
    return start->length >= strlen(text) && strncasecmp(start->text, text, strlen(text)) == 0;
}

static bool is_text(const struct start *start)
{
    return memchr(start->text, '\0', start->length) == NULL;
}

static bool is_damaged(const struct start *start)
{
    return start->damaged;
}

static bool is_archive(const struct start *start)
{
    return begins(start, "PK\x03\x04") || begins(start, "PK\x05\x06");
}

static bool is_compiled(const struct start *start)
{
    return begins(start, "\x7f" "ELF");
}

static bool is_json(const struct start *start)
{
    return is_text(start) && start->text[strspn(start->text, " \t\r\n")] == '{';
}

static bool is_picture(const struct start *start)
{
    return begins(start, "\x89PNG") || begins(start, "%PDF") || begins(start, "%!PS") ||
           (is_text(start) && has(start, "<svg"));
}

static bool is_web_page(const struct start *start)
{
    return begins(start, "<!doctype html") || begins(start, "<html");
}

/* A page that we wrote: all begin with a mark, or with the title of a verb's report. */
static bool is_page(const struct start *start)
{
    if (is_web_page(start)) return has(start, "<meta name=\"generator\" content=\"spillway ");
    return is_text(start) && (begins(start, FILE_KIND_PAGE_MARK) || begins(start, "# spillway "));
}

/* A picture that gnuplot drew; PNG and PDF carry no mark. */
static bool is_own_picture(const struct start *start)
{
    return is_picture(start) && (!has(start, "<svg") || strcasestr(start->text, "gnuplot"));
}

/* A table that we wrote: of a sweep, of policies, of a paper's figure. */
static bool is_table(const struct start *start)
{
    struct start line = {.length = strcspn(start->text, "\r\n")};
    if (!is_text(start)) return false;
    memcpy(line.text, start->text, line.length);
    const bool sweep = has(&line, "outcome,") && has(&line, ",reason"), figure = has(&line, "series,published,");
    return sweep || figure || begins(&line, "workload,seed,policy,");
}

static bool is_database(const struct start *start)
{
    return start->length >= 16 && memcmp(start->text, "SQLite format 3", 16) == 0;
}

static bool is_points(const struct start *start)
{
    return is_table(start) || is_database(start);
}

/* Recognises safetensors: the header's length in 8 bytes, little endian, and then JSON. */
static bool is_weights(const struct start *start)
{
    return start->length > 8 && start->text[8] == '{' && memcmp(start->text + 5, "\0\0\0", 3) == 0;
}

static bool is_timeline(const struct start *start)
{
    return is_json(start) && has(start, "\"traceEvents\"");
}

static bool is_network(const struct start *start)
{
    return is_json(start) && (has(start, "\"model_type\"") || has(start, "\"layers\""));
}

/* Recognises programs: GLPK begins LP files with a comment, MPS files with a comment or their NAME. */
static bool is_program(const struct start *start)
{
    return is_text(start) && (begins(start, "\\*") || begins(start, "*") || begins(start, "NAME"));
}

/* A length of one byte, then the version, "1.0.0", as field 1. */
static bool is_execution_trace(const struct start *start)
{
    return start->length > 6 && start->text[1] == '\n' && isdigit((unsigned char)start->text[3]) && start->text[4] == '.';
}

/* An object of lists under numbers. */
static bool is_process_groups(const struct start *start)
{
    if (!is_json(start)) return false;
    const char *c = strchr(start->text, '{') + 1;
    c += strspn(c, " \t\r\n");
    return c[0] == '"' && isdigit((unsigned char)c[1]);
}

static bool is_manifest(const struct start *start)
{
    return is_json(start) && has(start, "\"spillway-repro-manifest-");
}

static const struct kind {
    const char *noun;
    const char *keys[KEYS_MAX];                   /* any of our keys; NULL after the last */
    bool (*recognised)(const struct start *start); /* NULL: by keys only */
    bool in_place;
} kinds[FILE_KIND_COUNT] = {
    [FILE_KIND_NONE] = {.noun = "a file"},
    [FILE_KIND_JOBS] = {.noun = "a jobs file", .keys = {"jobs"}},
    [FILE_KIND_PLAN] = {.noun = "a plan", .keys = {"plan"}},
    [FILE_KIND_TRACE] = {.noun = "a trace", .keys = {"trace"}},
    [FILE_KIND_HARDWARE] = {.noun = "a hardware file", .keys = {"hardware"}},
    [FILE_KIND_INSTANCE] = {.noun = "an instance", .keys = {"instance", "spase"}},
    [FILE_KIND_SCHEDULE] = {.noun = "a schedule", .keys = {"timetable", "chain_schedule", "spase_schedule"}},
    [FILE_KIND_PLACEMENT] = {.noun = "a placement", .keys = {"placement"}},
    [FILE_KIND_NETWORK] = {.noun = "a network", .recognised = is_network},
    [FILE_KIND_LOG] = {.noun = "a log", .keys = {"log"}, .in_place = true},
    [FILE_KIND_RESULT] = {.noun = "a result", .keys = {"run", "check", "checkpoints"}, .recognised = is_json},
    [FILE_KIND_TIMELINE] = {.noun = "a timeline", .recognised = is_timeline},
    [FILE_KIND_PICTURE] = {.noun = "a picture that spillway drew", .recognised = is_own_picture},
    [FILE_KIND_PAGE] = {.noun = "a page that spillway wrote", .recognised = is_page},
    [FILE_KIND_TABLE] = {.noun = "a table that spillway wrote", .recognised = is_table},
    [FILE_KIND_POINTS] = {.noun = "a table or database that spillway wrote", .recognised = is_points},
    [FILE_KIND_DATABASE] = {.noun = "a database", .recognised = is_database, .in_place = true},
    [FILE_KIND_WEIGHTS] = {.noun = "a safetensors file", .recognised = is_weights},
    [FILE_KIND_MANIFEST] = {.noun = "a manifest", .recognised = is_manifest},
    [FILE_KIND_EXECUTION_TRACE] = {.noun = "an execution trace", .recognised = is_execution_trace},
    [FILE_KIND_PROCESS_GROUPS] = {.noun = "a file of process groups", .recognised = is_process_groups},
    [FILE_KIND_FOLDER] = {.noun = "a folder"},
    [FILE_KIND_PROGRAM] = {.noun = "an integer program", .recognised = is_program},
};

/* --- reading the beginning -------------------------------------------------------------------- */

static void inflate_start(struct start *start)
{
    struct start plain = {.gzip = true};
    z_stream z = {.next_in = (Bytef *)start->text, .avail_in = (uInt)start->length,
                  .next_out = (Bytef *)plain.text, .avail_out = START_BYTES};
    start->gzip = start->damaged = true;
    if (inflateInit2(&z, GZIP_WINDOW) != Z_OK) return;
    const int code = inflate(&z, Z_SYNC_FLUSH);
    if (code == Z_OK || code == Z_STREAM_END || code == Z_BUF_ERROR) {
        plain.length = START_BYTES - z.avail_out;
        plain.damaged = start->length < START_BYTES && plain.length < START_BYTES && code != Z_STREAM_END; /* it is cut */
        *start = plain;
    }
    inflateEnd(&z);
}

/* Returns false if there is nothing to read. */
static bool read_start(const char *path, struct start *start)
{
    struct stat info;
    const int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC); /* a pipe must not hold us up */
    if (fd < 0) return false;
    const bool regular = fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
    const ssize_t got = regular ? pread(fd, start->text, START_BYTES, 0) : 0;
    close(fd);
    if (got <= 0) return false;
    start->length = (size_t)got;
    start->gzip = start->damaged = false;
    start->text[got] = '\0';
    if (got > 2 && memcmp(start->text, "\x1f\x8b", 2) == 0) inflate_start(start);
    start->text[start->length] = '\0';
    return true;
}

/* Writes the KIND of the first key "spillway_KIND"; "" when there is none. */
static void find_key(const struct start *start, char key[KEY_BYTES])
{
    static const char mark[] = "\"spillway_";
    key[0] = '\0';
    if (!is_json(start)) return;
    const char *const at = strstr(start->text, mark);
    if (!at) return;
    const char *const name = at + strlen(mark);
    const size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyz_");
    if (length == 0 || length >= KEY_BYTES || name[length] != '"') return;
    memcpy(key, name, length);
    key[length] = '\0';
}

/* --- public ----------------------------------------------------------------------------------- */

const char *file_kind_noun(enum file_kind kind)
{
    return kinds[kind].noun;
}

bool file_kind_in_place(enum file_kind kind)
{
    return kinds[kind].in_place;
}

static void describe(const struct start *start, const char *key, char found[FILE_KIND_FOUND_BYTES])
{
    static const struct {
        bool (*recognised)(const struct start *start);
        const char *noun;
    } formats[] = {{is_archive, "a ZIP archive"}, {is_compiled, "a compiled program or library"},
                   {is_timeline, "a timeline"}, {is_json, "other JSON"}, {is_picture, "a picture"},
                   {is_web_page, "a web page"}, {is_database, "a database"}, {is_weights, "a safetensors file"},
                   {is_damaged, "damaged gzip data"}, {is_text, "a text"}};
    if (key[0]) {
        snprintf(found, FILE_KIND_FOUND_BYTES, "%s %s file", strchr("aeiou", key[0]) ? "an" : "a", key);
        return;
    }
    for (size_t f = 0; f < ARRAY_COUNT(formats); f++) {
        if (!formats[f].recognised(start)) continue;
        snprintf(found, FILE_KIND_FOUND_BYTES, "%s", formats[f].noun);
        return;
    }
    snprintf(found, FILE_KIND_FOUND_BYTES, "a file of another kind");
}

bool file_kind_matches(const char *path, enum file_kind kind, char found[FILE_KIND_FOUND_BYTES])
{
    struct start start = {.length = 0};
    char key[KEY_BYTES];
    if (kind == FILE_KIND_NONE || !read_start(path, &start)) return true;
    find_key(&start, key);
    const struct kind *const expected = &kinds[kind];
    if (!key[0] && expected->recognised && expected->recognised(&start)) return true;
    for (size_t k = 0; k < KEYS_MAX && expected->keys[k]; k++)
        if (strcmp(expected->keys[k], key) == 0) return true;
    describe(&start, key, found);
    return false;
}

bool file_kind_look(const char *path, struct file_look *out)
{
    struct start start = {.length = 0};
    char key[KEY_BYTES];
    if (!read_start(path, &start)) return false;
    find_key(&start, key);
    *out = (struct file_look){.json = is_json(&start), .database = is_database(&start),
                              .gzip = start.gzip && !start.damaged, .compiled = is_compiled(&start)};
    out->text = is_text(&start) && !start.damaged && !out->json && !is_archive(&start) && !is_picture(&start) && !is_web_page(&start);
    describe(&start, key, out->found);
    return true;
}

/* --- files that commands read ------------------------------------------------------------------ */

/* Keys that two kinds of files have come last. */
static const struct file_reading readings[] = {
    {"spillway_jobs", "a jobs file", "spillway plan %s -o plan.json"},
    {"spillway_hardware", "a hardware file", "spillway hardware check %s"},
    {"spillway_plan", "a plan", "spillway run %s"},
    {"spillway_trace", "a trace", "spillway trace show %s"},
    {"spillway_figure", "a figure of a paper", "spillway repro run %s"},
    {"spillway_instance", "an instance", "spillway solve %s"},
    {"spillway_spase", "a SPASE problem", "spillway solve %s"},
    {"spillway_chain", "a chain of layers", "spillway solve %s"},
    {"spillway_timetable", "a schedule of 'spillway solve'", NULL},
    {"spillway_placement", "a placement", "spillway serve serving.json --placement %s"},
    {"spillway_swarm", "a swarm", "spillway swarm %s"},
    {"spillway_serving", "a serving file", "spillway serve %s"},
    {"spillway_failures", "a file of failures", "spillway simulate plan.json --failures %s"},
    {"traceEvents", "a timeline", "spillway explain %s"},
    {"model_type", "a network's config.json", "spillway models show %s"},
};

const struct file_reading *file_reading_at(size_t index)
{
    return index < ARRAY_COUNT(readings) ? &readings[index] : NULL;
}

const struct file_reading *file_reading_of_key(const char *key)
{
    for (size_t i = 0; i < ARRAY_COUNT(readings); i++)
        if (strcmp(readings[i].key, key) == 0) return &readings[i];
    return NULL;
}

/* Returns true for a text that cannot be JSON: it begins with a letter. */
static bool is_prose(const struct start *start)
{
    return is_text(start) && isalpha((unsigned char)start->text[strspn(start->text, " \t\r\n")]);
}

const struct file_reading *file_reading_of_data(const char *data, size_t length)
{
    static const struct {
        bool (*recognised)(const struct start *start);
        struct file_reading reading;
    } formats[] = {
        {is_database, {NULL, "a SQLite database", "spillway history --file %s"}},
        {is_weights, {NULL, "a safetensors file, which jobs name under 'weights_in'", NULL}},
        {is_picture, {NULL, "a picture", NULL}},
        {is_web_page, {NULL, "a web page", NULL}},
        {is_archive, {NULL, "a ZIP archive", NULL}},
        {is_compiled, {NULL, "a compiled program or library", NULL}},
        {is_prose, {NULL, "a text", NULL}},
    };
    struct start start = {.length = length < START_BYTES ? length : START_BYTES};
    memcpy(start.text, data, start.length);
    for (size_t f = 0; f < ARRAY_COUNT(formats); f++)
        if (formats[f].recognised(&start)) return &formats[f].reading;
    return NULL;
}

const char *file_reading_refusal(const struct file_reading *found, const char *name, const char *expected,
                                 char text[FILE_READING_BYTES])
{
    int used = snprintf(text, FILE_READING_BYTES, "%s (expected %s)", found->noun, expected);
    const bool begins_work = strstr(expected, "jobs") || strcmp(expected, "a plan") == 0; /* which needs a jobs file */
    const bool network = found->key && strcmp(found->key, "model_type") == 0;
    const char *const command = network && begins_work ? "spillway jobs new %s -o jobs.json" : found->command;
    const char *const gap = command ? strstr(command, "%s") : NULL;
    if (gap && used > 0 && used < FILE_READING_BYTES)
        snprintf(text + used, FILE_READING_BYTES - (size_t)used, ": try '%.*s%.200s%s'", (int)(gap - command),
                 command, name, gap + strlen("%s"));
    return text;
}

/* Finds the kind of a file; NULL for a text and for unknown formats. */
static const struct file_reading *reading_of_start(const struct start *start)
{
    char key[KEY_BYTES], full[KEY_BYTES + sizeof "spillway_"];
    find_key(start, key);
    snprintf(full, sizeof full, "spillway_%s", key);
    if (key[0]) return file_reading_of_key(full);
    if (is_timeline(start)) return file_reading_of_key("traceEvents");
    if (is_json(start)) return has(start, "\"model_type\"") ? file_reading_of_key("model_type") : NULL;
    return start->damaged ? NULL : file_reading_of_data(start->text, start->length);
}

bool file_kind_is_network_folder(const char *path)
{
    char inside[4096];
    struct stat info;
    const int length = snprintf(inside, sizeof inside, "%s/config.json", path);
    return length > 0 && (size_t)length < sizeof inside && stat(inside, &info) == 0 && S_ISREG(info.st_mode);
}

bool file_reading_refusal_at(const char *path, const char *expected, char text[FILE_READING_BYTES])
{
    static const struct file_reading network = {"model_type", "a folder with a network's config.json", "spillway models show %s"},
                                     folder = {NULL, "a folder without a config.json", NULL};
    struct start start = {.length = 0};
    struct stat info;
    char found[FILE_KIND_FOUND_BYTES];
    if (stat(path, &info) == 0 && S_ISDIR(info.st_mode)) {
        file_reading_refusal(file_kind_is_network_folder(path) ? &network : &folder, path, expected, text);
        return true;
    }
    if (!read_start(path, &start)) return false;
    const struct file_reading *const reading = reading_of_start(&start);
    if (!reading) describe(&start, "", found);
    file_reading_refusal(reading ? reading : &(struct file_reading){NULL, found, NULL}, path, expected, text);
    return true;
}
