/*
 * config.json on any bytes: refused with a message, or a network whose every figure can be asked
 * for, which writes itself as a text that reads back to the same text.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/json_out.h"
#include "models/job/memory.h"

static const struct state_format adamw = {.optimizer = OPTIMIZER_ADAMW};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void ask(const struct network *n)
{
    const uint64_t sane = UINT64_C(1) << 62;
    uint64_t layers[] = {0, n->layer_count / 2, n->layer_count - 1};
    assert(n->layer_count > 0 && n->layer_count <= NETWORK_LAYERS_MAX);
    assert(network_parameters(n) <= UINT64_C(1) << 62);
    for (size_t i = 0; i < 3; i++) {
        struct tensor_spec tensors[LAYER_TENSORS_MAX];
        struct work_item items[LAYER_WORK_MAX];
        uint32_t count = network_layer_tensors(n, layers[i], tensors);
        uint64_t elements = 0;
        for (uint32_t t = 0; t < count; t++) elements += tensors[t].running ? 0 : tensors[t].elements;
        assert(elements == network_layer_parameters(n, layers[i]));
        for (uint32_t pass = 0; pass < PASS_COUNT; pass++) {
            count = network_layer_work(n, layers[i], (enum network_pass)pass, 2, 3, adamw, items);
            assert(work_flops(items, count) >= 0);
        }
        assert(memory_activation_bytes(n, layers[i], 1, 2, 3, PRECISION_FP32) < sane);
        assert(memory_workspace_bytes(n, layers[i], 1, UNIT_LOSS, false, 2, 3) < sane);
    }
}

static enum status parse(const char *text, size_t size, struct arena *arena, struct network *out,
                         struct error *err)
{
    struct json_input *in;
    enum status status = json_input_parse("fuzz", text, size, &in, err);
    if (status != STATUS_OK) return status;
    status = network_parse(in, json_input_root(in), "fuzz", arena, out, err);
    json_input_destroy(in);
    return status;
}

/* Returns the network as a text; the caller frees it. */
static char *text_of(const struct network *network)
{
    size_t length;
    struct json_out *out = json_out_create(NULL);
    assert(out);
    network_write(network, out, NULL);
    assert(json_out_complete(out));
    char *copy = strdup(json_out_text(out, &length));
    assert(copy);
    json_out_destroy(out);
    return copy;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena = {0};
    struct network n = {0}, again = {0};
    struct error err = {0};
    if (parse((const char *)data, size, &arena, &n, &err) == STATUS_OK) {
        ask(&n);
        char *first = text_of(&n);
        enum status status = parse(first, strlen(first), &arena, &again, &err);
        assert(status == STATUS_OK);
        char *second = text_of(&again);
        assert(strcmp(first, second) == 0);
        free(first);
        free(second);
    } else {
        assert(err.status != STATUS_OK && strncmp(err.text, "fuzz:", 5) == 0);
    }
    arena_release(&arena);
    return 0;
}
