/*
 * Which family carries a computation out, and the tables it needs.
 *
 * A family brings a function that computes a pass over any run of its layers and one that says which
 * of its networks it cannot do; both are entered in the table below.
 */
#include "exec/unit.h"

#include <assert.h>
#include <stdio.h>

#include "exec/gpt2.h"

struct family {
    void (*compute)(const struct kernels *kernels, const struct unit_arguments *arguments);
    const char *(*unsupported)(const struct job *job);
};

static const struct family families[NETWORK_FAMILY_COUNT] = {
    [NETWORK_GPT2] = {gpt2_compute, gpt2_unsupported},
};

enum status unit_tables_init(const struct job *job, const struct plan_shard *shard,
                             struct arena *arena, struct unit_tables *out, struct error *err)
{
    const struct network *network = &job->network;
    struct unit_tables tables = {0};
    enum status status = memory_parameters(network, shard->first_layer, shard->layer_count, arena,
                                           &tables.parameters, err);
    if (status != STATUS_OK) return status;
    status = memory_activations(network, shard->first_layer, shard->layer_count, job->microbatch,
                                job->sequence, arena, &tables.activations, err);
    if (status != STATUS_OK) return status;
    for (uint32_t pass = UNIT_FORWARD; pass <= UNIT_LOSS; pass++)
        for (uint32_t how = 0; how < UNIT_WAYS; how++) {
            status = memory_workspace(network, shard->first_layer, shard->layer_count,
                                      (enum unit_pass)pass, how, job->microbatch, job->sequence,
                                      arena, &tables.workspace[pass][how], err);
            if (status != STATUS_OK) return status;
        }
    *out = tables;
    return STATUS_OK;
}

void unit_compute(const struct kernels *kernels, const struct unit_arguments *arguments)
{
    const struct family *family = &families[arguments->job->network.family];
    assert(family->compute);
    family->compute(kernels, arguments);
}

const char *unit_unsupported(const struct job *job)
{
    const struct family *family = &families[job->network.family];
    if (family->compute) return family->unsupported(job);
    static _Thread_local char text[96];
    snprintf(text, sizeof text, "networks of family '%s' can be planned and simulated only",
             network_family_names[job->network.family]);
    return text;
}
