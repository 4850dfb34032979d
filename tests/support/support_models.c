#include "tests/support/support_models.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/json_out.h"
#include "models/hardware/collective_rate.h"
#include "models/jobs/jobs_file.h"

enum status support_network(const char *text, struct arena *arena, struct network *out,
                            struct error *err)
{
    struct json_input *in;
    enum status status = json_input_parse("test", text, strlen(text), &in, err);
    if (status != STATUS_OK) return status;
    status = network_parse(in, json_input_root(in), "test", arena, out, err);
    json_input_destroy(in);
    return status;
}

enum status support_jobs(const char *text, const char *folder, struct job_set *out,
                         struct error *err)
{
    struct json_input *in;
    enum status status = json_input_parse("test", text, strlen(text), &in, err);
    if (status != STATUS_OK) return status;
    status = job_set_parse(in, json_input_root(in), folder, out, err);
    json_input_destroy(in);
    return status;
}

enum status support_hardware(const char *text, struct hardware *out, struct error *err)
{
    struct json_input *in;
    enum status status = json_input_parse("test", text, strlen(text), &in, err);
    if (status != STATUS_OK) return status;
    status = hardware_parse(in, json_input_root(in), out, err);
    json_input_destroy(in);
    return status;
}

void support_machine(const char *name, struct hardware *out)
{
    struct error err = {0};
    *out = (struct hardware){0};
    if (hardware_find(name, out, &err) != STATUS_OK) fail_msg("%s", err.text);
}

void support_network_refused(const char *text, const char *message)
{
    struct arena arena = {0};
    struct network network = {.width = 99};
    struct error err = {0};
    assert_int_equal(support_network(text, &arena, &network, &err), STATUS_BAD_INPUT);
    assert_string_equal(err.text, message);
    assert_int_equal(network.width, 99);
    arena_release(&arena);
}

static char *text_of(struct json_out *out)
{
    size_t length;
    char *copy = NULL;
    if (json_out_complete(out)) copy = strdup(json_out_text(out, &length));
    json_out_destroy(out);
    return copy;
}

char *support_network_text(const struct network *network)
{
    struct json_out *out = json_out_create(NULL);
    if (!out) return NULL;
    network_write(network, out, NULL);
    return text_of(out);
}

char *support_jobs_text(const struct job_set *set)
{
    struct json_out *out = json_out_create(NULL);
    if (!out) return NULL;
    job_set_write(set->jobs, set->count, NULL, out, NULL);
    return text_of(out);
}

char *support_hardware_text(const struct hardware *hardware)
{
    struct json_out *out = json_out_create(NULL);
    if (!out) return NULL;
    hardware_write(hardware, out, NULL);
    return text_of(out);
}

const struct collective_rate *support_collective_rate(const struct device_type *type, uint32_t kind, uint32_t members,
                                                      uint32_t computing)
{
    const struct collective_rate wanted = {.kind = kind, .members = members, .computing = computing};
    for (uint32_t i = 0; i < type->collective_count; i++)
        if (collective_rate_alike(&type->collectives[i], &wanted)) return &type->collectives[i];
    return NULL;
}
