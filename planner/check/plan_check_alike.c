/*
 * A pipeline has a unit for each combination of variants, tens of thousands for a step of a trillion parameters. The
 * check of a unit by itself (form, bytes, claims) does not depend on variants of activations, boundaries and their
 * gradients, but on which accesses are to one buffer. Two units are alike if all operations are the same, field by
 * field, buffers differ at most in such a variant, and accesses to one buffer in either unit are to one buffer in the
 * other:
 *
 *     forward    reads boundary 3/v0, makes activations 3/v7     changes boundary 4/v1     known
 *     forward    reads boundary 3/v1, makes activations 3/v2     changes boundary 4/v0     alike
 *     forward    reads boundary 3/v1, makes activations 4/v2     ...                       another shard: not alike
 *
 * The check in plan order still covers each task (plan_check_run.c).
 */
#include "planner/check/plan_check_alike.h"

enum { PAIRS_MAX = 24 }; /* a pass has about ten buffers; larger units are never alike */

/* Buffers of both units that stand for each other. */
struct pairs {
    uint32_t own[PAIRS_MAX], known[PAIRS_MAX];
    uint32_t count;
};

static bool has_variants(uint32_t kind)
{
    return kind == BUFFER_ACTIVATIONS || kind == BUFFER_BOUNDARY || kind == BUFFER_BOUNDARY_GRADIENT;
}

static bool buffers_alike(const struct plan_buffer *a, const struct plan_buffer *b)
{
    return a->kind == b->kind && a->job == b->job && a->shard == b->shard && a->on_device == b->on_device &&
           a->bytes == b->bytes && (a->variant == b->variant || has_variants(a->kind));
}

/* Pairs buffers one to one. */
static bool pair(const struct plan *plan, struct pairs *pairs, uint32_t own, uint32_t known)
{
    for (uint32_t i = 0; i < pairs->count; i++)
        if (pairs->own[i] == own || pairs->known[i] == known)
            return pairs->own[i] == own && pairs->known[i] == known;
    if (pairs->count == PAIRS_MAX || !buffers_alike(&plan->buffers[own], &plan->buffers[known])) return false;
    pairs->own[pairs->count] = own;
    pairs->known[pairs->count++] = known;
    return true;
}

static bool ops_alike(const struct plan *plan, const struct plan_op *a, const struct plan_op *b, struct pairs *pairs)
{
    if (a->kind != b->kind || a->stream != b->stream || a->pass != b->pass || a->collective != b->collective ||
        a->axes != b->axes || a->rounds != b->rounds || a->work != b->work || a->slice != b->slice ||
        a->bytes != b->bytes || a->first_row != b->first_row || a->row_count != b->row_count || a->after_count != 0 ||
        b->after_count != 0 || a->access_count != b->access_count ||
        !check_in_table(a->first_after, 0, plan->after_count) ||
        !check_in_table(a->first_access, a->access_count, plan->access_count))
        return false;
    for (uint32_t i = 0; i < a->access_count; i++) {
        const struct plan_access *own = &plan->accesses[a->first_access + i];
        const struct plan_access *known = &plan->accesses[b->first_access + i];
        if (own->flags != known->flags || own->offset_bytes != known->offset_bytes ||
            own->buffer >= plan->buffer_count || !pair(plan, pairs, own->buffer, known->buffer))
            return false;
    }
    return true;
}

bool check_is_alike(const struct plan *plan, const struct plan_unit *unit, const struct plan_unit *known)
{
    struct pairs pairs = {.count = 0};
    if (unit->job != known->job || unit->shard != known->shard || unit->pass != known->pass ||
        unit->op_count != known->op_count || unit->acquire_count != known->acquire_count ||
        unit->ends_minibatch != known->ends_minibatch)
        return false;
    for (uint32_t o = 0; o < unit->op_count; o++)
        if (!ops_alike(plan, &plan->ops[unit->first_op + o], &plan->ops[known->first_op + o], &pairs)) return false;
    return true;
}
