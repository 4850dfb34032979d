/* Texts of PipeDream's profiler on any bytes: refused with a message, or layers of a network that can be asked
 * anything. */
#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "models/job/memory.h"
#include "models/network/profile_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_network(const struct network *n, const struct profile_text *text)
{
    assert(n->layer_count == text->count);
    for (uint64_t layer = 0; layer < n->layer_count; layer++) {
        struct work_item items[LAYER_WORK_MAX];
        uint32_t count = network_layer_work(n, layer, PASS_BACKWARD, 1, 1, (struct state_format){0}, items);
        assert(count <= 1);
        assert(memory_activation_bytes(n, layer, 1, 1, 1, PRECISION_FP32) < UINT64_C(1) << 62);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena = {0};
    struct profile_text text = {0};
    struct network n = {0};
    struct error err = {0};
    char *copy = malloc(size + 1);
    if (!copy) abort();
    memcpy(copy, data, size);
    copy[size] = '\0';
    enum status status = profile_text_parse(&arena, "fuzz", copy, &text, &err);
    assert(status == STATUS_OK || strncmp(err.text, "fuzz", 4) == 0);
    for (uint32_t l = 0; status == STATUS_OK && l < text.count; l++) {
        assert(isfinite(text.layers[l].forward_s) && text.layers[l].forward_s >= 0);
        assert(isfinite(text.layers[l].backward_s) && text.layers[l].backward_s >= 0);
        assert(l + 1 < text.count || text.layers[l].cut_bytes == 0);
    }
    if (status == STATUS_OK) {
        if (profile_text_network(&arena, &text, &n, &err) == STATUS_OK) check_network(&n, &text);
        else assert(err.text[0]);
    }
    arena_release(&arena);
    free(copy);
    return 0;
}
