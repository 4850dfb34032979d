#include "cli/run/cli_hosts_file.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/files/file.h"
#include "base/text/number.h"
#include "base/try.h"

enum { FILE_BYTES_MAX = 1 << 20 };

static const char blanks[] = " \t\r";
static const char name_letters[] =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:%@";

struct hosts_reader {
    const char *path;
    char *line; /* ends with a NUL */
    uint32_t number;
};

/* Returns the next word of the line, or NULL, and puts a NUL after it. *rest: where to go on. */
static char *next_word(char **rest)
{
    char *const word = *rest + strspn(*rest, blanks);
    char *const end = word + strcspn(word, blanks);
    if (word == end) return NULL;
    *rest = *end ? end + 1 : end;
    *end = '\0';
    return word;
}

static enum status fail(const struct hosts_reader *reader, const char *word, const char *expected, struct error *err)
{
    return error_set(err, STATUS_BAD_INPUT, "%s:%" PRIu32 ":%zu: found '%.80s', expected %s", reader->path,
                     reader->number, (size_t)(word - reader->line) + 1, word, expected);
}

static enum status read_slots(const struct hosts_reader *reader, const char *word, uint32_t *out, struct error *err)
{
    static const char key[] = "slots=";
    uint64_t slots = 0;
    if (strncmp(word, key, sizeof key - 1) != 0 || !number_read_u64(word + sizeof key - 1, &slots) || slots == 0 ||
        slots > CLI_HOSTS_RANKS_MAX)
        return fail(reader, word, "'slots=N' with N from 1 to 256", err);
    *out = (uint32_t)slots;
    return STATUS_OK;
}

/* Reads a line; adds nothing for a line without words. */
static enum status read_line(const struct hosts_reader *reader, struct cli_hosts *out, struct error *err)
{
    char *rest = reader->line;
    *strchrnul(rest, '#') = '\0';
    const char *const name = next_word(&rest);
    if (!name) return STATUS_OK;
    if (name[0] == '-' || strspn(name, name_letters) != strlen(name))
        return fail(reader, name, "the name or address of a host", err);
    struct cli_host *const host = &out->hosts[out->count];
    *host = (struct cli_host){.name = name, .slots = 1, .is_here = out->count == 0 || strcmp(name, "localhost") == 0};
    if (!host->is_here && strcmp(out->hosts[0].name, "localhost") == 0)
        return error_set(err, STATUS_BAD_INPUT,
                         "%s:%" PRIu32
                         ":%zu: found '%.80s', expected 'localhost' as in the first line (or in the first "
                         "line the name at which other hosts reach this machine)",
                         reader->path, reader->number, (size_t)(name - reader->line) + 1, name);
    const char *word = next_word(&rest);
    if (word) TRY(read_slots(reader, word, &host->slots, err));
    if (word && (word = next_word(&rest))) return fail(reader, word, "the end of the line", err);
    if (out->ranks + host->slots > CLI_HOSTS_RANKS_MAX)
        return fail(reader, name, "at most 256 ranks in all", err);
    out->ranks += host->slots;
    out->count++;
    return STATUS_OK;
}

enum status cli_hosts_read(const char *path, struct cli_hosts *out, struct error *err)
{
    char *text, *kept;
    size_t length, lines = 1;
    TRY(file_read(path, FILE_BYTES_MAX, &text, &length, err));
    for (size_t i = 0; i < length; i++) lines += text[i] == '\n';
    enum status status = ARENA_NEW(&out->arena, length + 1, kept, err);
    if (status == STATUS_OK) status = ARENA_NEW(&out->arena, lines, out->hosts, err);
    if (status == STATUS_OK) memcpy(kept, text, length);
    free(text);
    if (status != STATUS_OK) return status;
    struct hosts_reader reader = {.path = path};
    for (char *next = kept; next;) {
        char *const end = strchr(next, '\n');
        reader.line = next;
        reader.number++;
        next = end ? end + 1 : NULL;
        if (end) *end = '\0';
        TRY(read_line(&reader, out, err));
    }
    if (out->count > 0) return STATUS_OK;
    return error_set(err, STATUS_BAD_INPUT,
                     "%s:%" PRIu32 ":1: found no host, expected lines such as 'localhost slots=2'", path,
                     reader.number);
}

void cli_hosts_release(struct cli_hosts *hosts)
{
    arena_release(&hosts->arena);
    *hosts = (struct cli_hosts){0};
}

const struct cli_host *cli_host_of(const struct cli_hosts *hosts, uint32_t rank)
{
    const struct cli_host *host = hosts->hosts;
    while (rank >= host->slots) rank -= host++->slots;
    return host;
}
