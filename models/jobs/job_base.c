/* Tensors are compared by name, shape and what trains: networks may differ in whatever their weights do not show. */
#include "models/jobs/job_base.h"

#include <stdio.h>
#include <string.h>

#include "base/random.h"

static bool same_file(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

/* Returns the next of the network's own tensors; NULL: there is none. */
static const struct tensor_spec *next_own(const struct tensor_spec *specs, uint32_t count, uint32_t *at)
{
    while (*at < count && specs[*at].adapter) ++*at;
    return *at < count ? &specs[(*at)++] : NULL;
}

/* Returns the first tensor of the layer in which the networks differ; NULL: none. */
static const char *layer_differs(const struct network *m, const struct network *n, uint64_t layer,
                                 char text[JOB_BASE_TEXT])
{
    struct tensor_spec a[LAYER_TENSORS_MAX], b[LAYER_TENSORS_MAX];
    const uint32_t a_count = network_layer_tensors(m, layer, a), b_count = network_layer_tensors(n, layer, b);
    for (uint32_t i = 0, j = 0;;) {
        const struct tensor_spec *const x = next_own(a, a_count, &i), *const y = next_own(b, b_count, &j);
        if (!x && !y) return NULL;
        const char *what = !x || !y || strcmp(x->name, y->name) != 0 ? "is not in both networks"
                           : x->elements != y->elements || x->matrix != y->matrix ? "has another shape"
                           : x->frozen != y->frozen ? "is trained by one of them" : NULL;
        if (!what) continue;
        snprintf(text, JOB_BASE_TEXT, "tensor '%.100s' %s", x ? x->name : y->name, what);
        return text;
    }
}

const char *job_base_differs(const struct job *a, const struct job *b, char text[JOB_BASE_TEXT])
{
    const struct network *const m = &a->network, *const n = &b->network;
    if (!job_has_base(a) || !job_has_base(b)) return "nothing of it is frozen ('freeze', 'adapter')";
    if (a->precision != b->precision) return "they have different precisions";
    if (!same_file(a->weights_in, b->weights_in)) return "they have different 'weights_in'";
    if (!a->weights_in && job_base_seed(a) != job_base_seed(b))
        return "their weights come from different seeds (expected 'weights_in', or one name in 'base')";
    if (m->family != n->family || m->layer_count != n->layer_count || network_is_listed(m) || network_is_listed(n))
        return "they have different networks";
    for (uint64_t layer = 0; layer < m->layer_count; layer++) {
        const char *const what = layer_differs(m, n, layer, text);
        if (what) return what;
    }
    return NULL;
}

static void mix(uint64_t *hash, uint64_t value) { *hash = random_mix(*hash ^ value); }

static void mix_text(uint64_t *hash, const char *text)
{
    for (; *text; text++) mix(hash, (unsigned char)*text);
    mix(hash, 0);
}

uint64_t job_base_seed(const struct job *job)
{
    uint64_t hash = 0;
    if (!job->base || job->weights_in) return job->seed;
    mix_text(&hash, job->base);
    return hash & JOB_SEED_MAX;
}

uint64_t job_base_fingerprint(const struct job *job)
{
    const struct network *const n = &job->network;
    struct tensor_spec specs[LAYER_TENSORS_MAX];
    if (!job_has_base(job)) return 0;
    uint64_t hash = n->family;
    mix(&hash, n->layer_count);
    mix(&hash, job->precision);
    mix_text(&hash, job->weights_in ? job->weights_in : "");
    if (!job->weights_in) mix(&hash, job_base_seed(job));
    for (uint64_t layer = 0; layer < n->layer_count; layer++) {
        const uint32_t count = network_layer_tensors(n, layer, specs);
        const struct tensor_spec *own;
        for (uint32_t i = 0; (own = next_own(specs, count, &i));) {
            mix_text(&hash, own->name);
            mix(&hash, own->elements);
            mix(&hash, (own->matrix ? 2u : 0u) + (own->frozen ? 1u : 0u));
        }
    }
    return hash > 0 ? hash : 1;
}

uint64_t job_base_bytes(const struct job *job, uint64_t first_layer, uint64_t layer_count)
{
    struct state_format format = job_state_format(job);
    if (!job->shares_base) return 0;
    format.apart = false;
    return memory_state(&job->network, first_layer, layer_count, format).parts[STATE_FROZEN].bytes;
}
