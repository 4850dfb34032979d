/*
 * Chains on any bytes: refused with a message, or one that writes itself as a text that reads back to
 * the same text, of which the first rule that fits makes a schedule that passes the checker and is no
 * better than the bound of prices.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "planner/chain/chain_bound.h"
#include "planner/chain/chain_certify.h"
#include "planner/chain/chain_io.h"
#include "tests/support/fuzz_reader.h"
#include "tests/support/solve/support_chain_json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void ask(const void *what)
{
    const struct chain *chain = what;
    struct chain_schedule schedule = {0};
    struct chain_certificate certificate;
    struct chain_bound bound = {0};
    struct error err = {0};
    const struct chain_certify_options options = {.limit_s = 0};
    enum status status = chain_certify(chain, &options, &schedule, &certificate, &err);
    if (!status) status = chain_bound_make(chain, NULL, 0, &bound, &err);
    assert(status == STATUS_OK);
    assert(chain_bound_ticks(chain, &bound) <= certificate.value);
    chain_bound_release(&bound);
    chain_schedule_release(&schedule);
}

static enum status parse(const struct json_input *in, void *out, struct error *err)
{
    return chain_parse(in, out, err);
}

static void write_what(const void *what, struct json_out *out)
{
    test_chain_write(what, out);
}

static void release(void *what) { chain_release(what); }

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct fuzz_reader reader = {sizeof(struct chain), parse, write_what, ask, release, "fuzz:"};
    fuzz_reader_run(&reader, data, size);
    return 0;
}
