#include "tests/support/exec/support_batch.h"

#include <string.h>

#include "base/random.h"

void support_batch_fill(const struct job *job, int32_t *batch, uint64_t minibatch)
{
    const struct network *n = &job->network;
    const uint64_t words = job_batch_bytes(job) / sizeof *batch, samples = job_samples(job);
    for (uint64_t i = 0; i < words; i++) {
        const uint64_t random = random_u64(99 + minibatch, i);
        const uint64_t part = i / job->sequence % 3; /* bert: tokens, labels, types */
        if (n->family == NETWORK_VIT && i >= samples) {
            const float pixel = (float)random_unit(99 + minibatch, i) - 0.5f;
            memcpy(&batch[i], &pixel, sizeof pixel);
        } else if (n->family == NETWORK_VIT) {
            batch[i] = (int32_t)(random % n->classes);
        } else if (n->family == NETWORK_BERT && part == 1) {
            batch[i] = random % 3 == 0 ? (int32_t)(random / 3 % n->vocabulary) : -1;
        } else if (n->family == NETWORK_BERT && part == 2) {
            batch[i] = (int32_t)(n->vocabulary + n->positions + random % 2);
        } else {
            batch[i] = (int32_t)(random % n->vocabulary);
        }
    }
}
