/*
 * Chains on any bytes: refused with a message, or one that writes itself as a text that reads back to
 * the same text, of which the first rule that fits makes a schedule that passes the checker and is no
 * better than the bound of prices.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_out.h"
#include "planner/chain_bound.h"
#include "planner/chain_certify.h"
#include "planner/chain_io.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static enum status parse(const char *text, size_t size, struct chain *out, struct error *err)
{
    struct json_input *in;
    enum status status = json_input_parse("fuzz", text, size, &in, err);
    if (status != STATUS_OK) return status;
    status = chain_parse(in, out, err);
    json_input_destroy(in);
    return status;
}

/* As a text; the caller frees it. */
static char *text_of(const struct chain *chain)
{
    size_t length;
    struct json_out *out = json_out_create(NULL);
    assert(out);
    chain_write_json(chain, out);
    assert(json_out_complete(out));
    char *copy = strdup(json_out_text(out, &length));
    assert(copy);
    json_out_destroy(out);
    return copy;
}

static void ask(const struct chain *chain)
{
    struct chain_schedule schedule = {0};
    struct chain_certificate certificate;
    struct chain_bound bound = {0};
    struct error err = {0};
    const struct chain_certify_options options = {.limit_s = 0};
    enum status status = chain_certify(chain, &options, &schedule, &certificate, &err);
    if (!status) status = chain_bound_make(chain, 0, &bound, &err);
    assert(status == STATUS_OK);
    assert(chain_bound_ticks(chain, &bound) <= certificate.value);
    chain_bound_release(&bound);
    chain_schedule_release(&schedule);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct chain chain = {0}, again = {0};
    struct error err = {0};
    if (parse((const char *)data, size, &chain, &err) == STATUS_OK) {
        char *first = text_of(&chain);
        enum status status = parse(first, strlen(first), &again, &err);
        assert(status == STATUS_OK);
        char *second = text_of(&again);
        assert(strcmp(first, second) == 0);
        free(first);
        free(second);
        ask(&chain);
    } else {
        assert(err.status != STATUS_OK && strncmp(err.text, "fuzz:", 5) == 0);
    }
    chain_release(&chain);
    chain_release(&again);
    return 0;
}
