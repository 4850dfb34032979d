#include "planner/saturn/saturn_configs.h"

#include <string.h>

#include "models/hardware/hardware.h"

enum { EACH_UP_TO = 8, CHUNKS_MOST = 16 };

const char *const saturn_way_names[SATURN_WAYS] = {
    [SATURN_ONE_DEVICE] = "one-device", [SATURN_DATA] = "data",         [SATURN_FSDP] = "fsdp",
    [SATURN_PIPELINE] = "pipeline",     [SATURN_TENSOR] = "tensor",     [SATURN_SPILLED] = "spilled",
    [SATURN_AS_GIVEN] = "as-given",
};

/* Returns the number of runs whose gradients replicas exchange one at a time. */
static uint32_t chunks_of(const struct job *job)
{
    uint64_t blocks = network_is_listed(&job->network) ? job->network.layer_count : job->network.blocks;
    return blocks < 1 ? 1 : blocks < CHUNKS_MOST ? (uint32_t)blocks : CHUNKS_MOST;
}

/* Returns true if the machine's devices are the host's and carry the job out. */
static bool is_carried_out(const struct job *job, const struct parallel *p, const struct hardware *hardware)
{
    struct job own = *job;
    own.parallel = *p;
    return hardware && hardware->backend && strcmp(hardware->backend, "host") == 0 &&
           !parallel_only_simulated(hardware, &own);
}

static struct saturn_config config_of(const struct job *job, enum saturn_way way, uint32_t devices)
{
    struct saturn_config config = {
        .way = way, .devices = devices,
        .parallel = {.tensor = 1, .pipeline = 1, .data = 1, .chunks = 1, .schedule = PIPELINE_1F1B, .prefetch = 1}};
    struct parallel *p = &config.parallel;
    switch (way) {
    case SATURN_FSDP: p->zero = ZERO_WEIGHTS; /* fall through */
    case SATURN_DATA:
        p->data = devices;
        p->chunks = chunks_of(job);
        break;
    case SATURN_PIPELINE: p->pipeline = devices; break;
    case SATURN_TENSOR:
        p->tensor = devices;
        p->sequence = parallel_divides_tokens(job, devices);
        break;
    case SATURN_SPILLED: *p = (struct parallel){0}; break;
    default: break;
    }
    return config;
}

static bool is_possible(const struct job *job, const struct saturn_config *config)
{
    struct job own = *job;
    struct error ignored = {0};
    own.parallel = config->parallel;
    return parallel_check(&own, &ignored) == STATUS_OK;
}

/* Adds, after configuration `at`, a tensor group that does not cut rows, if the machine carries it out: it exchanges
 * less often, and keeps more. Returns the number of configurations. */
static uint32_t count_with_whole_rows(const struct job *job, const struct hardware *hardware, struct saturn_config *out,
                                      uint32_t at)
{
    struct saturn_config whole = out[at];
    whole.parallel.sequence = false;
    if (!out[at].parallel.sequence || at + 1 >= SATURN_CONFIGS_MAX) return at + 1;
    if (!is_carried_out(job, &whole.parallel, hardware)) return at + 1;
    out[at + 1] = whole;
    return at + 2;
}

static bool is_offered(uint32_t count, uint32_t devices)
{
    return count <= EACH_UP_TO || devices % count == 0 || (count & (count - 1)) == 0;
}

uint32_t saturn_configs(const struct job *job, uint32_t devices, const struct hardware *hardware,
                        struct saturn_config *out)
{
    uint32_t count = 0;
    if (parallel_is_set(&job->parallel)) {
        uint64_t needed = parallel_devices(&job->parallel);
        if (needed > devices) return 0;
        out[0] = (struct saturn_config){SATURN_AS_GIVEN, (uint32_t)needed, job->parallel};
        return 1;
    }
    for (uint32_t k = 1; k <= devices; k++) {
        if (!is_offered(k, devices)) continue;
        for (enum saturn_way way = 0; way < SATURN_AS_GIVEN && count < SATURN_CONFIGS_MAX; way++) {
            bool single = way == SATURN_ONE_DEVICE || way == SATURN_SPILLED;
            if (single != (k == 1)) continue;
            out[count] = config_of(job, way, k);
            if (!is_possible(job, &out[count])) continue;
            count = count_with_whole_rows(job, hardware, out, count);
        }
    }
    return count;
}

bool saturn_config_keep_less(struct saturn_config *config)
{
    bool less = config->way < SATURN_SPILLED && config->parallel.recompute < RECOMPUTE_FULL;
    if (less) config->parallel.recompute = RECOMPUTE_FULL;
    return less;
}
