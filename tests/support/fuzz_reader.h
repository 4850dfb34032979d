/*
 * Rules of every reader of a JSON file on any bytes: it refuses them with a message, or reads a structure that can be
 * queried and that is written as a text which reads back to the same text. Each fuzz target of a reader includes this.
 */
#ifndef SPILLWAY_TESTS_SUPPORT_FUZZ_READER_H
#define SPILLWAY_TESTS_SUPPORT_FUZZ_READER_H

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/json_in.h"
#include "base/json/json_out.h"

struct fuzz_reader {
    size_t bytes; /* size of the structure, which is zeroed before reading */
    enum status (*parse)(const struct json_input *in, void *out, struct error *err);
    void (*write)(const void *what, struct json_out *out);
    void (*ask)(const void *what); /* queries, before the structure is written */
    void (*release)(void *what);   /* also after an error */
    const char *prefix;            /* of every message */
};

static enum status fuzz_parse(const struct fuzz_reader *reader, const char *text, size_t size, void *out,
                              struct error *err)
{
    struct json_input *in;
    enum status status = json_input_parse("fuzz", text, size, &in, err);
    if (status != STATUS_OK) return status;
    status = reader->parse(in, out, err);
    json_input_destroy(in);
    return status;
}

/* Writes the structure as a text. The caller frees it. */
static char *fuzz_text(const struct fuzz_reader *reader, const void *what)
{
    size_t length;
    struct json_out *out = json_out_create(NULL);
    assert(out);
    reader->write(what, out);
    assert(json_out_complete(out));
    char *copy = strdup(json_out_text(out, &length));
    assert(copy);
    json_out_destroy(out);
    return copy;
}

static void fuzz_reader_run(const struct fuzz_reader *reader, const uint8_t *data, size_t size)
{
    void *what = calloc(1, reader->bytes), *again = calloc(1, reader->bytes);
    struct error err = {0};
    assert(what && again);
    if (fuzz_parse(reader, (const char *)data, size, what, &err) == STATUS_OK) {
        reader->ask(what);
        char *first = fuzz_text(reader, what);
        enum status status = fuzz_parse(reader, first, strlen(first), again, &err);
        assert(status == STATUS_OK);
        char *second = fuzz_text(reader, again);
        assert(strcmp(first, second) == 0);
        free(first);
        free(second);
    } else {
        assert(err.status != STATUS_OK && err.text[0] &&
               strncmp(err.text, reader->prefix, strlen(reader->prefix)) == 0);
    }
    reader->release(what);
    reader->release(again);
    free(what);
    free(again);
}

#endif
