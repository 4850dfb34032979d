/*
 * Only the first 4096 bytes are read, inflated if the file is gzip data, so that a user's file of a gigabyte is
 * recognised as quickly as a small one. One table has the key or signature of each kind.
 */
#include "base/files/file_kind.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/size.h"

enum { START_BYTES = 4096, KEY_BYTES = 40, GZIP_WINDOW = 15 + 16 };

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

/* Recognises llm.c's tokens: its magic number, little endian, of tokens of 16 or 32 bits. */
static bool is_tokens(const struct start *start)
{
    static const char *const magics[] = {"\x88\xd8\x34\x01\x01\0\0\0", "\xc1\xd9\x34\x01\x07\0\0\0", "SPILROWS"};
    for (size_t i = 0; i < ARRAY_COUNT(magics) && start->length >= 8; i++)
        if (memcmp(start->text, magics[i], 8) == 0) return true;
    return false;
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
    return start->length > 6 && start->text[1] == '\n' && isdigit((unsigned char)start->text[3]) &&
           start->text[4] == '.';
}

/* An object of lists under numbers. */
static bool is_process_groups(const struct start *start)
{
    if (!is_json(start)) return false;
    const char *c = strchr(start->text, '{') + 1;
    c += strspn(c, " \t\r\n");
    return c[0] == '"' && isdigit((unsigned char)c[1]);
}

static bool is_config(const struct start *start)
{
    return is_json(start) && has(start, "\"model_type\"");
}

/* Of a folder, which has no beginning. */
static bool is_nothing(const struct start *start)
{
    (void)start;
    return false;
}

static bool is_manifest(const struct start *start)
{
    return is_json(start) && has(start, "\"spillway-repro-manifest-");
}

/* --- the table -------------------------------------------------------------------------------- */

#define REPLACED_BY(kind) ((uint32_t)1 << FILE_KIND_##kind)

/*
 * A form is what a file is found to be. A file is of the first form whose key it has, or else of the first that is
 * recognised. Keyed forms come first, and among them last the keys that two kinds of files have. Where several forms
 * may be replaced by one kind of output, the first names that kind.
 */
static const struct form {
    struct file_reading reading;
    bool (*recognised)(const struct start *start); /* NULL: by its key only */
    uint32_t replaced_by;                          /* a sum of 1 << enum file_kind */
} forms[] = {
    {{"spillway_jobs", "a jobs file", "spillway plan %s -o plan.json", NULL}, NULL, REPLACED_BY(JOBS)},
    {{"spillway_hardware", "a hardware file", "spillway hardware check %s", NULL}, NULL, REPLACED_BY(HARDWARE)},
    {{"spillway_plan", "a plan", "spillway run %s", NULL}, NULL, REPLACED_BY(PLAN)},
    {{"spillway_trace", "a trace", "spillway trace show %s", NULL}, NULL, REPLACED_BY(TRACE)},
    {{"spillway_figure", "a figure of a paper", "spillway repro run %s", NULL}, NULL, 0},
    {{"spillway_instance", "an instance", "spillway solve %s", NULL}, NULL, REPLACED_BY(INSTANCE)},
    {{"spillway_spase", "a SPASE problem", "spillway solve %s", NULL}, NULL, REPLACED_BY(INSTANCE)},
    {{"spillway_chain", "a chain of layers", "spillway solve %s", NULL}, NULL, 0},
    {{"spillway_timetable", "a schedule of 'spillway solve'", NULL, NULL}, NULL, REPLACED_BY(SCHEDULE)},
    {{"spillway_chain_schedule", "a chain's schedule of 'spillway solve'", NULL, NULL}, NULL, REPLACED_BY(SCHEDULE)},
    {{"spillway_spase_schedule", "a SPASE schedule of 'spillway solve'", NULL, NULL}, NULL, REPLACED_BY(SCHEDULE)},
    {{"spillway_placement", "a placement", "spillway serve serving.json --placement %s", NULL},
     NULL, REPLACED_BY(PLACEMENT)},
    {{"spillway_swarm", "a swarm", "spillway swarm %s", NULL}, NULL, 0},
    {{"spillway_serving", "a serving file", "spillway serve %s", NULL}, NULL, 0},
    {{"spillway_failures", "a file of failures", "spillway simulate plan.json --failures %s", NULL}, NULL, 0},
    {{"spillway_template", "a template of messages", NULL, ", which 'spillway tokenize --template' reads"}, NULL, 0},
    {{"spillway_log", "a log", NULL, NULL}, NULL, REPLACED_BY(LOG)},
    {{"spillway_run", "a result", NULL, NULL}, NULL, REPLACED_BY(RESULT)},
    {{"spillway_check", "a result of a check", NULL, NULL}, NULL, REPLACED_BY(RESULT)},
    {{"spillway_checkpoints", "a list of checkpoints", NULL, NULL}, NULL, REPLACED_BY(RESULT)},
    {{"traceEvents", "a timeline", "spillway explain %s", NULL}, is_timeline, REPLACED_BY(TIMELINE)},
    {{"model_type", "a network's config.json", "spillway models show %s", NULL}, is_config, 0},

    {{NULL, "other JSON", NULL, NULL}, is_json, REPLACED_BY(RESULT)},
    {{NULL, "a SQLite database", "spillway history --file %s", NULL}, is_database, REPLACED_BY(DATABASE)},
    {{NULL, "a safetensors file", NULL, ", which jobs name under 'weights_in'"}, is_weights, REPLACED_BY(WEIGHTS)},
    {{NULL, "a file of tokens", NULL, ", which jobs name under 'data'"}, is_tokens, REPLACED_BY(TOKENS)},
    {{NULL, "a ZIP archive", NULL, NULL}, is_archive, 0},
    {{NULL, "a compiled program or library", NULL, NULL}, is_compiled, 0},
    {{NULL, "a picture", NULL, NULL}, is_picture, 0},
    {{NULL, "a web page", NULL, NULL}, is_web_page, 0},
    {{NULL, "damaged gzip data", NULL, NULL}, is_damaged, 0},
    {{NULL, "a text", NULL, NULL}, is_text, 0},

    /* special cases of forms above, which only outputs tell apart */
    {{NULL, "a network", NULL, NULL}, is_network, REPLACED_BY(NETWORK)},
    {{NULL, "a picture that spillway drew", NULL, NULL}, is_own_picture, REPLACED_BY(PICTURE)},
    {{NULL, "a page that spillway wrote", NULL, NULL}, is_page, REPLACED_BY(PAGE)},
    {{NULL, "a table that spillway wrote", NULL, NULL}, is_table, REPLACED_BY(TABLE)},
    {{NULL, "a table or database that spillway wrote", NULL, NULL}, is_points, REPLACED_BY(POINTS)},
    {{NULL, "an integer program", NULL, NULL}, is_program, REPLACED_BY(PROGRAM)},
    {{NULL, "a manifest", NULL, NULL}, is_manifest, REPLACED_BY(MANIFEST)},
    {{NULL, "an execution trace", NULL, NULL}, is_execution_trace, REPLACED_BY(EXECUTION_TRACE)},
    {{NULL, "a file of process groups", NULL, NULL}, is_process_groups, REPLACED_BY(PROCESS_GROUPS)},
    {{NULL, "a folder", NULL, NULL}, is_nothing, REPLACED_BY(FOLDER)},
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
        /* it is cut */
        plain.damaged = start->length < START_BYTES && plain.length < START_BYTES && code != Z_STREAM_END;
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

/* Writes the first key "spillway_KIND"; "" when there is none. */
static void find_key(const struct start *start, char key[KEY_BYTES])
{
    key[0] = '\0';
    if (!is_json(start)) return;
    const char *const at = strstr(start->text, "\"spillway_");
    if (!at) return;
    const char *const name = at + 1;
    const size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyz_");
    if (length == 0 || length >= KEY_BYTES || name[length] != '"') return;
    memcpy(key, name, length);
    key[length] = '\0';
}

/* Returns the form with this key; NULL when there is none. */
static const struct form *form_of_key(const char *key)
{
    for (size_t f = 0; f < ARRAY_COUNT(forms) && forms[f].reading.key; f++)
        if (strcmp(forms[f].reading.key, key) == 0) return &forms[f];
    return NULL;
}

/* Returns the form of a file without a key of ours; NULL when none is recognised. */
static const struct form *form_of_start(const struct start *start)
{
    for (size_t f = 0; f < ARRAY_COUNT(forms); f++)
        if (forms[f].recognised && forms[f].recognised(start)) return &forms[f];
    return NULL;
}

/* --- files that outputs replace ---------------------------------------------------------------- */

const char *file_kind_noun(enum file_kind kind)
{
    for (size_t f = 0; f < ARRAY_COUNT(forms); f++)
        if (forms[f].replaced_by >> kind & 1) return forms[f].reading.noun;
    return "a file";
}

bool file_kind_in_place(enum file_kind kind)
{
    return kind == FILE_KIND_LOG || kind == FILE_KIND_DATABASE;
}

static void describe(const struct start *start, char found[FILE_KIND_FOUND_BYTES])
{
    char key[KEY_BYTES];
    find_key(start, key);
    const struct form *const form = key[0] ? form_of_key(key) : form_of_start(start);
    if (!form && key[0]) snprintf(found, FILE_KIND_FOUND_BYTES, "a file with the key '%s'", key);
    else snprintf(found, FILE_KIND_FOUND_BYTES, "%s", form ? form->reading.noun : "a file of another kind");
}

bool file_kind_matches(const char *path, enum file_kind kind, char found[FILE_KIND_FOUND_BYTES])
{
    struct start start = {.length = 0};
    char key[KEY_BYTES];
    if (kind == FILE_KIND_NONE || !read_start(path, &start)) return true;
    find_key(&start, key);
    for (size_t f = 0; f < ARRAY_COUNT(forms); f++) {
        if (!(forms[f].replaced_by >> kind & 1)) continue;
        if (key[0] ? forms[f].reading.key && strcmp(forms[f].reading.key, key) == 0
                   : forms[f].recognised && forms[f].recognised(&start))
            return true;
    }
    describe(&start, found);
    return false;
}

bool file_kind_look(const char *path, struct file_look *out)
{
    struct start start = {.length = 0};
    if (!read_start(path, &start)) return false;
    *out = (struct file_look){.json = is_json(&start), .database = is_database(&start),
                              .gzip = start.gzip && !start.damaged, .compiled = is_compiled(&start)};
    out->text = is_text(&start) && !start.damaged && !out->json && !is_archive(&start) && !is_picture(&start) &&
                !is_web_page(&start);
    describe(&start, out->found);
    return true;
}

/* --- files that commands read ------------------------------------------------------------------ */

const struct file_reading *file_reading_at(size_t index)
{
    return index < ARRAY_COUNT(forms) && forms[index].reading.key ? &forms[index].reading : NULL;
}

const struct file_reading *file_reading_of_key(const char *key)
{
    const struct form *const form = form_of_key(key);
    return form ? &form->reading : NULL;
}

/* Returns true for a text that cannot be JSON: it begins with a letter. */
static bool is_prose(const struct start *start)
{
    return is_text(start) && isalpha((unsigned char)start->text[strspn(start->text, " \t\r\n")]);
}

const struct file_reading *file_reading_of_data(const char *data, size_t length)
{
    struct start start = {.length = length < START_BYTES ? length : START_BYTES};
    memcpy(start.text, data, start.length);
    const struct form *const form = form_of_start(&start);
    if (!form || is_json(&start)) return NULL;
    return form->recognised != is_text || is_prose(&start) ? &form->reading : NULL;
}

const char *file_reading_refusal(const struct file_reading *found, const char *name, const char *expected,
                                 char text[FILE_READING_BYTES])
{
    int used = snprintf(text, FILE_READING_BYTES, "%s%s (expected %s)", found->noun, found->remark ? found->remark : "",
                        expected);
    const bool begins_work = strstr(expected, "jobs") || strcmp(expected, "a plan") == 0; /* which needs a jobs file */
    const bool network = found->key && strcmp(found->key, "model_type") == 0;
    const char *const command = network && begins_work ? "spillway jobs new %s -o jobs.json" : found->command;
    const char *const gap = command ? strstr(command, "%s") : NULL;
    if (gap && used > 0 && used < FILE_READING_BYTES)
        snprintf(text + used, FILE_READING_BYTES - (size_t)used, ": try '%.*s%.200s%s'", (int)(gap - command),
                 command, name, gap + strlen("%s"));
    return text;
}

bool file_kind_is_stream(const char *path)
{
    struct stat info;
    if (strcmp(path, "-") == 0) return true;
    return stat(path, &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode);
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
    static const struct file_reading network = {"model_type", "a folder with a network's config.json",
                                                "spillway models show %s", NULL},
                                     folder = {NULL, "a folder without a config.json", NULL, NULL};
    struct start start = {.length = 0};
    struct stat info;
    char key[KEY_BYTES], found[FILE_KIND_FOUND_BYTES];
    if (stat(path, &info) == 0 && S_ISDIR(info.st_mode)) {
        file_reading_refusal(file_kind_is_network_folder(path) ? &network : &folder, path, expected, text);
        return true;
    }
    if (!read_start(path, &start)) return false;
    find_key(&start, key);
    const struct form *const form = key[0] ? form_of_key(key) : form_of_start(&start);
    if (!form) describe(&start, found);
    file_reading_refusal(form ? &form->reading : &(struct file_reading){NULL, found, NULL, NULL}, path, expected, text);
    return true;
}
