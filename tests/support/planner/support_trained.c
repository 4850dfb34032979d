#include "tests/support/planner/support_trained.h"

#include <stdio.h>
#include <stdlib.h>

void support_train_only(struct job *job, struct arena *arena)
{
    struct error err = {0};
    const struct network_adapters adapters = {.rank = job->adapter.rank,
                                              .scale = job_adapter_scale(&job->adapter),
                                              .targets = job->adapter.targets,
                                              .target_count = job->adapter.target_count};
    job->network.trained = NULL;
    if (network_train_only(&job->network, &job->freeze, &adapters, arena, &job->network.trained, &err) == STATUS_OK)
        return;
    fprintf(stderr, "%s\n", err.text);
    abort();
}
