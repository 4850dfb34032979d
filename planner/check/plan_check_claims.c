/*
 * The contents that a computation finds and leaves.
 *
 * The kinds of its buffers identify operands: in a backward pass of shard 2, "boundary of shard 2" is its input,
 * "boundary gradient of shard 3" its output's gradient. Each pass uses each operand as follows:
 *
 *                        FORWARD   LOSS   BACKWARD   UPDATE  NORM
 *     state                 r       rw       rw        rw           (or parameters, but for an update; of a frozen
 *                                                                    shard only read)
 *     parameters            r        r        r
 *     their gradient                 w        w        r      r     (with parameters; else state)
 *     base                  r        r        r                     (where it shares one)
 *     norms                                            r      w     (all; its shard's)
 *     table                          r                        (or the embedding's, if resident here)
 *     table gradient                 w        r               (embedding of a tied head)
 *     batch                 r        r        r               (the first shard and loss)
 *     loss                           w
 *     boundary s            r        r        r               (not the first shard)
 *     boundary s + 1        w
 *     gradient s + 1                          r
 *     gradient s                     w        w               (not the first shard)
 *     activations           w        w      r or w            (r: kept; else scratch)
 *     workspace             w        w        w
 *
 * An EVALUATE has the operands of a FORWARD; on the last shard also table, batch and loss. Except the state, all that
 * it finds belongs to a held-out minibatch. The claims (plan_checker.h) follow from this and the operands' bytes. Where
 * a job clips, its embedding's backward pass needs no parameters and leaves a gradient. A slice of an embedding claims
 * its rows in each part of the state:
 *
 *     variant 1 + slice     [ p rows | m rows | v rows ]                 memory_state_rows()
 *                              |         |        |
 *     state of shard 0      [ .p rows. . | .m rows. . | .v rows. . ]     memory_state()
 *
 * A forward pass's slices build up the boundary in turn: an unfinished boundary is a thing of its own, which knows the
 * next row.
 *
 * Cost: each unit once, a few claims per computation.
 */
#include <inttypes.h>
#include <stdio.h>

#include "base/try.h"
#include "models/job/memory.h"
#include "planner/check/plan_checker.h"
#include "planner/plan_work.h"

enum check_operand {
    CHECK_OPERAND_STATE,
    CHECK_OPERAND_PARAMETERS,
    CHECK_OPERAND_GRADIENT,
    CHECK_OPERAND_NORMS,
    CHECK_OPERAND_BASE,
    CHECK_OPERAND_TABLE,
    CHECK_OPERAND_TABLE_GRADIENT,
    CHECK_OPERAND_BATCH,
    CHECK_OPERAND_LOSS,
    CHECK_OPERAND_INPUT,
    CHECK_OPERAND_OUTPUT,
    CHECK_OPERAND_OUTPUT_GRADIENT,
    CHECK_OPERAND_INPUT_GRADIENT,
    CHECK_OPERAND_ACTIVATIONS,
    CHECK_OPERAND_WORKSPACE,
    CHECK_OPERAND_COUNT
};

#define R ACCESS_READ
#define W ACCESS_WRITE
static const uint32_t operand_flags[CHECK_OPERAND_COUNT][PLAN_EVALUATE + 1] = {
    [CHECK_OPERAND_STATE] = {[PLAN_FORWARD] = R,
                             [PLAN_LOSS] = R | W,
                             [PLAN_BACKWARD] = R | W,
                             [PLAN_UPDATE] = R | W,
                             [PLAN_EVALUATE] = R},
    [CHECK_OPERAND_PARAMETERS] = {[PLAN_FORWARD] = R,
                                  [PLAN_LOSS] = R,
                                  [PLAN_BACKWARD] = R,
                                  [PLAN_EVALUATE] = R},
    [CHECK_OPERAND_GRADIENT] = {[PLAN_LOSS] = W,
                                [PLAN_BACKWARD] = W,
                                [PLAN_UPDATE] = R,
                                [PLAN_NORM] = R},
    [CHECK_OPERAND_NORMS] = {[PLAN_UPDATE] = R, [PLAN_NORM] = W},
    [CHECK_OPERAND_BASE] = {[PLAN_FORWARD] = R,
                            [PLAN_LOSS] = R,
                            [PLAN_BACKWARD] = R,
                            [PLAN_EVALUATE] = R},
    [CHECK_OPERAND_TABLE] = {[PLAN_LOSS] = R, [PLAN_EVALUATE] = R},
    [CHECK_OPERAND_TABLE_GRADIENT] = {[PLAN_LOSS] = W, [PLAN_BACKWARD] = R},
    [CHECK_OPERAND_BATCH] = {[PLAN_FORWARD] = R,
                             [PLAN_LOSS] = R,
                             [PLAN_BACKWARD] = R,
                             [PLAN_EVALUATE] = R},
    [CHECK_OPERAND_LOSS] = {[PLAN_LOSS] = W, [PLAN_EVALUATE] = W},
    [CHECK_OPERAND_INPUT] = {[PLAN_FORWARD] = R,
                             [PLAN_LOSS] = R,
                             [PLAN_BACKWARD] = R,
                             [PLAN_EVALUATE] = R},
    [CHECK_OPERAND_OUTPUT] = {[PLAN_FORWARD] = W, [PLAN_EVALUATE] = W},
    [CHECK_OPERAND_OUTPUT_GRADIENT] = {[PLAN_BACKWARD] = R},
    [CHECK_OPERAND_INPUT_GRADIENT] = {[PLAN_LOSS] = W, [PLAN_BACKWARD] = W},
    [CHECK_OPERAND_ACTIVATIONS] = {[PLAN_FORWARD] = W, [PLAN_LOSS] = W, [PLAN_BACKWARD] = R},
    [CHECK_OPERAND_WORKSPACE] = {[PLAN_FORWARD] = W,
                                 [PLAN_LOSS] = W,
                                 [PLAN_BACKWARD] = W,
                                 [PLAN_EVALUATE] = W},
};
#undef R
#undef W

struct plan_check_claims_view {
    const struct plan_unit *unit;
    const struct plan_op *op;
    const struct job *job;
    const struct check_job_facts *job_facts;
    const struct check_shard_facts *shard_facts;
    uint32_t shard, global;    /* within the job; in the plan */
    bool last, embedding;
    bool makes_outputs;        /* the shard's output is kept */
    bool kept;                 /* activations outlive the forward pass */
    bool inputs;               /* of them, only the inputs of layers */
    bool gradients_out;        /* the gradients of the parameters outlive the backward pass */
    uint64_t first_row, row_count;                           /* of a slice; 0, 0: not sliced */
    struct state_layout rows;  /* the state of a slice */
    const struct plan_access *operands[CHECK_OPERAND_COUNT]; /* NULL: not accessed */
};

/* --- claims --------------------------------------------------------------------------------- */

enum status check_add_claim(struct checker *c, const struct plan_access *access,
                            struct check_claim claim)
{
    if (claim.bytes == 0) return STATUS_OK;
    TRY(array_reserve(&c->claims, &c->claim_capacity, c->claim_count, sizeof *c->claims,
                      UINT32_MAX, "claims of computations", c->err));
    claim.access = (uint32_t)(access - (c->plan->accesses + c->op->first_access));
    c->claims[c->claim_count++] = claim;
    return STATUS_OK;
}

static bool is_held_out(const struct plan_check_claims_view *v)
{
    return v->op->pass == PLAN_EVALUATE;
}

static enum status claim_whole(struct checker *c, const struct plan_check_claims_view *v, enum check_operand operand,
                               uint32_t thing, uint64_t bytes, bool makes)
{
    const struct plan_access *access = v->operands[operand];
    if (!access) return STATUS_OK;
    return check_add_claim(c, access,
                           (struct check_claim){.thing = thing,
                                                .makes = makes,
                                                .held_out = is_held_out(v),
                                                .bytes = bytes});
}

/* Claims the data that passes read, or the whole state; for a slice its rows, which begin the buffer as PARAMETERS.
 * Padding belongs to no claim. */
static enum status claim_state(struct checker *c, const struct plan_check_claims_view *v,
                               const struct plan_access *access, bool whole, bool makes)
{
    const struct check_shard_facts *f = v->shard_facts;
    bool sliced = v->row_count > 0;
    for (uint32_t part = makes ? STATE_WEIGHTS : STATE_FROZEN; part < (whole ? STATE_PARTS : STATE_WEIGHTS + 1);
         part++) {
        uint64_t before = v->first_row * f->state.parts[part].row_bytes;
        uint64_t in_slice = whole ? v->rows.parts[part].offset_bytes : 0;
        struct check_claim claim = {
            .thing = check_shard_thing(v->global, CHECK_THING_STATE),
            .makes = makes,
            .frozen = part == STATE_FROZEN,
            .version_delta = makes || is_held_out(v) ? 1 : 0,
            .offset_bytes = sliced ? in_slice : f->state.parts[part].offset_bytes,
            .bytes = sliced ? v->rows.parts[part].bytes : f->used_bytes[part],
            .thing_offset = f->state.parts[part].offset_bytes + before,
        };
        TRY(check_add_claim(c, access, claim));
    }
    return STATUS_OK;
}

/* An embedding's first slice makes an unfinished boundary, its last one finishes it. */
static enum status claim_output(struct checker *c, const struct plan_check_claims_view *v)
{
    const struct plan_access *access = v->operands[CHECK_OPERAND_OUTPUT];
    uint32_t boundary = v->makes_outputs ? check_job_thing(c, v->unit->job, CHECK_THING_OUTPUTS)
                                         : check_shard_thing(v->global + 1, CHECK_THING_BOUNDARY);
    uint64_t bytes = v->shard_facts->output_bytes;
    if (!access) return STATUS_OK;
    if (v->row_count == 0) return claim_whole(c, v, CHECK_OPERAND_OUTPUT, boundary, bytes, true);

    uint64_t next_row = v->op->first_row + v->op->row_count;
    struct check_claim partial = {.thing = check_shard_thing(v->global + 1, CHECK_THING_PARTIAL),
                                  .held_out = is_held_out(v),
                                  .bytes = bytes,
                                  .thing_offset = v->op->first_row};
    if (v->op->first_row > 0) TRY(check_add_claim(c, access, partial));
    if (next_row == v->job_facts->rows)
        return claim_whole(c, v, CHECK_OPERAND_OUTPUT, boundary, bytes, true);
    partial.thing_offset = next_row;
    partial.makes = true;
    return check_add_claim(c, access, partial);
}

/* Returns the bytes of the rows before the slice. */
static uint64_t gradient_bytes_before(const struct plan_check_claims_view *v)
{
    return v->first_row * v->job_facts->gradient_row_bytes;
}

static uint64_t table_gradient_bytes(const struct plan_check_claims_view *v)
{
    uint64_t table = v->job_facts->table_gradient_bytes;
    if (v->row_count == 0) return table;
    uint64_t before = gradient_bytes_before(v);
    uint64_t own = v->row_count * v->job_facts->gradient_row_bytes;
    if (before >= table) return 0;
    return own < table - before ? own : table - before;
}

/* Returns the thing that a shard's base is, in the buffers of its owner. */
static uint32_t base_thing(const struct checker *c, const struct plan_check_claims_view *v, uint32_t shard)
{
    return check_shard_thing(c->jobs[v->job_facts->base_owner].first_shard + shard, CHECK_THING_BASE);
}

static enum status claim_base(struct checker *c, const struct plan_check_claims_view *v)
{
    if (!v->operands[CHECK_OPERAND_BASE]) return STATUS_OK;
    return check_add_claim(c, v->operands[CHECK_OPERAND_BASE],
                           (struct check_claim){.thing = base_thing(c, v, v->shard),
                                                .frozen = true,
                                                .bytes = v->shard_facts->base_used_bytes});
}

static enum status claim_table(struct checker *c, const struct plan_check_claims_view *v)
{
    if (!v->operands[CHECK_OPERAND_TABLE]) return STATUS_OK;
    if (c->shards[v->job_facts->first_shard].base_bytes > 0)
        return check_add_claim(c, v->operands[CHECK_OPERAND_TABLE],
                               (struct check_claim){.thing = base_thing(c, v, 0), .frozen = true,
                                                    .bytes = v->job_facts->table_bytes});
    struct check_claim claim = {.thing = check_shard_thing(v->job_facts->first_shard, CHECK_THING_STATE),
                                .frozen = v->job_facts->frozen > 0,
                                .version_delta = is_held_out(v) ? 1 : 0,
                                .bytes = v->job_facts->table_bytes};
    return check_add_claim(c, v->operands[CHECK_OPERAND_TABLE], claim);
}

/* A NORM makes its shard's norms for this minibatch; an UPDATE finds all shards' norms. */
static enum status claim_norms(struct checker *c, const struct plan_check_claims_view *v)
{
    bool makes = v->op->pass == PLAN_NORM;
    if (!v->operands[CHECK_OPERAND_NORMS]) return STATUS_OK;
    struct check_claim claim = {.thing = check_job_thing(c, v->unit->job, CHECK_THING_NORMS),
                                .makes = makes,
                                .bytes = v->job_facts->norm_bytes};
    if (makes) {
        claim.bytes = v->shard_facts->norm_bytes;
        claim.offset_bytes = claim.thing_offset = v->shard_facts->norm_offset;
    }
    return check_add_claim(c, v->operands[CHECK_OPERAND_NORMS], claim);
}

static enum status claim_all(struct checker *c, const struct plan_check_claims_view *v)
{
    uint32_t pass = v->op->pass, job = v->unit->job;
    bool back = pass == PLAN_LOSS || pass == PLAN_BACKWARD;
    bool updates = (pass == PLAN_UPDATE || (back && !v->gradients_out)) && v->shard_facts->trains;
    const struct plan_access *state = v->operands[CHECK_OPERAND_STATE];
    const struct plan_access *parameters = v->operands[CHECK_OPERAND_PARAMETERS];
    if (state) TRY(claim_state(c, v, state, updates, false));
    if (state && updates) TRY(claim_state(c, v, state, true, true));
    if (parameters) TRY(claim_state(c, v, parameters, false, false));
    TRY(claim_whole(c, v, CHECK_OPERAND_GRADIENT,
                    check_shard_thing(v->global, CHECK_THING_PARAMETER_GRADIENT),
                    v->shard_facts->gradient_used_bytes, back));
    TRY(claim_norms(c, v));
    TRY(claim_base(c, v));
    TRY(claim_table(c, v));
    if (v->operands[CHECK_OPERAND_TABLE_GRADIENT]) {
        struct check_claim claim = {.thing = check_job_thing(c, job, CHECK_THING_TABLE_GRADIENT),
                                    .makes = pass == PLAN_LOSS,
                                    .bytes = table_gradient_bytes(v),
                                    .thing_offset = gradient_bytes_before(v)};
        TRY(check_add_claim(c, v->operands[CHECK_OPERAND_TABLE_GRADIENT], claim));
    }
    TRY(claim_whole(c, v, CHECK_OPERAND_BATCH, check_job_thing(c, job, CHECK_THING_BATCH),
                    v->job_facts->batch_bytes, false));
    TRY(claim_whole(c, v, CHECK_OPERAND_LOSS, check_job_thing(c, job, CHECK_THING_LOSS), sizeof(double),
                    true));
    TRY(claim_whole(c, v, CHECK_OPERAND_INPUT, check_shard_thing(v->global, CHECK_THING_BOUNDARY),
                    v->shard_facts->input_bytes, false));
    TRY(claim_output(c, v));
    TRY(claim_whole(c, v, CHECK_OPERAND_OUTPUT_GRADIENT,
                    check_shard_thing(v->global + 1, CHECK_THING_GRADIENT),
                    v->shard_facts->output_bytes, false));
    TRY(claim_whole(c, v, CHECK_OPERAND_INPUT_GRADIENT, check_shard_thing(v->global, CHECK_THING_GRADIENT),
                    v->shard_facts->input_bytes, true));
    const struct plan_access *activations = v->operands[CHECK_OPERAND_ACTIVATIONS];
    bool scratch = activations && pass != PLAN_FORWARD && !(activations->flags & ACCESS_READ);
    if (scratch) return STATUS_OK;
    return claim_whole(c, v, CHECK_OPERAND_ACTIVATIONS, check_shard_thing(v->global, CHECK_THING_ACTIVATIONS),
                       v->shard_facts->activation_bytes, pass == PLAN_FORWARD);
}

static bool with_loss(const struct plan_check_claims_view *v)
{
    return v->op->pass == PLAN_LOSS || (v->op->pass == PLAN_EVALUATE && v->last);
}

/* --- operands ------------------------------------------------------------------------------- */

/* Returns the computation's operand in this buffer; CHECK_OPERAND_COUNT: none. */
static enum check_operand operand_of(const struct plan_check_claims_view *v, const struct plan_buffer *b)
{
    bool own = b->shard == v->shard, next = b->shard == v->shard + 1;
    switch (b->kind) {
    case BUFFER_STATE:
        if (own) return CHECK_OPERAND_STATE;
        /* a resident job's head reads the embedding's own table */
        return b->shard == 0 && with_loss(v) ? CHECK_OPERAND_TABLE : CHECK_OPERAND_COUNT;
    case BUFFER_STAGED: return own ? CHECK_OPERAND_STATE : CHECK_OPERAND_COUNT;
    case BUFFER_PARAMETERS: return own ? CHECK_OPERAND_PARAMETERS : CHECK_OPERAND_COUNT;
    case BUFFER_GRADIENT: return own || !b->on_device ? CHECK_OPERAND_GRADIENT : CHECK_OPERAND_COUNT;
    case BUFFER_NORMS: return CHECK_OPERAND_NORMS;
    case BUFFER_BASE: return own ? CHECK_OPERAND_BASE : CHECK_OPERAND_COUNT;
    case BUFFER_TABLE: return CHECK_OPERAND_TABLE;
    case BUFFER_TABLE_GRADIENT: return CHECK_OPERAND_TABLE_GRADIENT;
    case BUFFER_BATCH: return CHECK_OPERAND_BATCH;
    case BUFFER_LOSS: return CHECK_OPERAND_LOSS;
    case BUFFER_BOUNDARY: return own                       ? CHECK_OPERAND_INPUT
                                : next && !v->makes_outputs ? CHECK_OPERAND_OUTPUT
                                                            : CHECK_OPERAND_COUNT;
    case BUFFER_BOUNDARY_GRADIENT:
        return own ? CHECK_OPERAND_INPUT_GRADIENT : next ? CHECK_OPERAND_OUTPUT_GRADIENT : CHECK_OPERAND_COUNT;
    case BUFFER_OUTPUTS: return v->makes_outputs ? CHECK_OPERAND_OUTPUT : CHECK_OPERAND_COUNT;
    case BUFFER_ACTIVATIONS: return own ? CHECK_OPERAND_ACTIVATIONS : CHECK_OPERAND_COUNT;
    case BUFFER_WORKSPACE: return own ? CHECK_OPERAND_WORKSPACE : CHECK_OPERAND_COUNT;
    default: return CHECK_OPERAND_COUNT;
    }
}

static uint32_t way_of(const struct plan_check_claims_view *v)
{
    return (v->kept ? UNIT_KEEP : 0) | (v->inputs ? UNIT_INPUTS : 0) |
           (v->gradients_out ? UNIT_GRADIENTS_OUT : 0);
}

static uint64_t workspace_bytes(const struct checker *c, const struct plan_check_claims_view *v)
{
    static const enum unit_pass passes[] = {[PLAN_FORWARD] = UNIT_FORWARD,
                                            [PLAN_LOSS] = UNIT_LOSS,
                                            [PLAN_BACKWARD] = UNIT_BACKWARD,
                                            [PLAN_EVALUATE] = UNIT_FORWARD};
    const struct plan_shard *shard = &c->plan->shards[v->global];
    bool held_out_loss = v->op->pass == PLAN_EVALUATE && v->last; /* like the loss of a LOSS, without gradients */
    return memory_workspace_bytes(&v->job->network, shard->first_layer, shard->layer_count,
                                  held_out_loss ? UNIT_LOSS : passes[v->op->pass],
                                  way_of(v) | (held_out_loss ? UNIT_GRADIENTS_OUT : 0) |
                                      job_pass_way(v->job, shard->first_layer),
                                  job_pass_samples(v->job, shard->first_layer), v->job->sequence);
}

/* Returns an operand's bytes; 0: not needed. */
static uint64_t needed_bytes(const struct checker *c, const struct plan_check_claims_view *v,
                             enum check_operand operand)
{
    const struct check_shard_facts *f = v->shard_facts;
    uint32_t pass = v->op->pass;
    bool sliced = v->row_count > 0, back = pass == PLAN_LOSS || pass == PLAN_BACKWARD;
    bool forward = pass == PLAN_FORWARD || pass == PLAN_EVALUATE;
    bool steps = pass == PLAN_UPDATE || pass == PLAN_NORM;
    if (steps && operand > CHECK_OPERAND_NORMS) return 0;
    switch (operand) {
    case CHECK_OPERAND_STATE:
        if (forward && !v->operands[CHECK_OPERAND_STATE]) return 0;
        if (v->gradients_out || pass == PLAN_NORM) return 0;
        if (!f->trains && !v->operands[CHECK_OPERAND_STATE]) return 0;
        return sliced ? v->rows.bytes : f->state.bytes;
    case CHECK_OPERAND_PARAMETERS:
        if (v->operands[CHECK_OPERAND_STATE] || !(forward || v->gradients_out || !f->trains)) return 0;
        if (v->embedding && back) return 0;
        return state_weight_bytes(sliced ? &v->rows : &f->state);
    case CHECK_OPERAND_GRADIENT:
        return v->gradients_out || steps ? f->gradient_bytes : 0;
    case CHECK_OPERAND_NORMS: return steps ? v->job_facts->norm_bytes : 0;
    case CHECK_OPERAND_BASE: return forward || back ? f->base_bytes : 0;
    case CHECK_OPERAND_TABLE: return with_loss(v) ? v->job_facts->table_bytes : 0;
    case CHECK_OPERAND_TABLE_GRADIENT:
        if (pass == PLAN_LOSS) return v->job_facts->table_gradient_bytes;
        return pass == PLAN_BACKWARD && v->embedding ? table_gradient_bytes(v) : 0;
    case CHECK_OPERAND_BATCH:
        return v->shard == 0 || with_loss(v) ? v->job_facts->batch_bytes : 0;
    case CHECK_OPERAND_LOSS: return with_loss(v) && v->job_facts->text ? sizeof(double) : 0;
    case CHECK_OPERAND_INPUT: return f->input_bytes;
    case CHECK_OPERAND_OUTPUT: return forward ? f->output_bytes : 0;
    case CHECK_OPERAND_OUTPUT_GRADIENT: return pass == PLAN_BACKWARD ? f->output_bytes : 0;
    case CHECK_OPERAND_INPUT_GRADIENT: return back ? f->input_bytes : 0;
    case CHECK_OPERAND_ACTIVATIONS: return v->operands[CHECK_OPERAND_ACTIVATIONS] ? f->activation_bytes : 0;
    case CHECK_OPERAND_WORKSPACE: return workspace_bytes(c, v);
    case CHECK_OPERAND_COUNT: break;
    }
    return 0;
}

static const char *operand_text(enum check_operand operand)
{
    static const char *const names[CHECK_OPERAND_COUNT] = {
        "its state",    "its parameters", "the gradient of its parameters", "the norms", "its base",
        "the token table",                "the table gradient",
        "the batch",    "the loss",       "its boundary",            "the next boundary",
        "the gradient of its output",     "the gradient of its input", "its activations",
        "a workspace",
    };
    return names[operand];
}

static enum status check_operand_flags(struct checker *c, const struct plan_check_claims_view *v,
                                       enum check_operand operand)
{
    const struct plan_access *access = v->operands[operand];
    char text[PLAN_TEXT_BYTES];
    uint32_t found = access->flags & (ACCESS_READ | ACCESS_WRITE);
    uint32_t expected = operand_flags[operand][v->op->pass];
    if (operand == CHECK_OPERAND_STATE && v->gradients_out) expected = 0;
    if (operand == CHECK_OPERAND_STATE && !v->shard_facts->trains) expected &= ACCESS_READ;
    if (operand == CHECK_OPERAND_NORMS && !job_clips(v->job)) expected = 0;
    if ((operand == CHECK_OPERAND_TABLE || operand == CHECK_OPERAND_LOSS) && !with_loss(v)) expected = 0;
    if (operand == CHECK_OPERAND_OUTPUT && v->row_count > 0 && v->op->first_row > 0)
        expected = ACCESS_READ | ACCESS_WRITE; /* a slice adds to what others left */
    if (operand == CHECK_OPERAND_ACTIVATIONS && v->op->pass == PLAN_BACKWARD && found == ACCESS_WRITE)
        expected = ACCESS_WRITE;
    if (expected == 0)
        return check_fail(c, CHECK_RULE_FORM, "accesses the %s, which it has no use for",
                          check_access_text(c, access, text));
    if (found == expected) return STATUS_OK;
    static const char *const words[] = {"nothing", "reads", "writes", "changes"};
    return check_fail(c, CHECK_RULE_FORM, "%s the %s (expected: %s it)", words[found],
                      check_access_text(c, access, text), words[expected]);
}

static enum status check_operands(struct checker *c, const struct plan_check_claims_view *v)
{
    char text[PLAN_TEXT_BYTES];
    for (enum check_operand operand = 0; operand < CHECK_OPERAND_COUNT; operand++) {
        const struct plan_access *access = v->operands[operand];
        if (access) TRY(check_operand_flags(c, v, operand));
        uint64_t needed = needed_bytes(c, v, operand);
        if (!access && needed > 0)
            return check_fail(c, CHECK_RULE_TRAINING, "does not access %s (%" PRIu64 " bytes)",
                              operand_text(operand), needed);
        if (access && check_buffer_of(c, access)->bytes < needed)
            return check_fail(c, CHECK_RULE_MEMORY,
                              "the %s has %" PRIu64 " bytes (expected %" PRIu64 ")",
                              check_access_text(c, access, text),
                              check_buffer_of(c, access)->bytes, needed);
    }
    return STATUS_OK;
}

static enum status find_operands(struct checker *c, struct plan_check_claims_view *v)
{
    char text[PLAN_TEXT_BYTES];
    uint32_t sliced_variant = v->row_count > 0 ? 1 + v->op->slice : 0;
    for (uint32_t a = 0; a < v->op->access_count; a++) {
        const struct plan_access *access = &c->plan->accesses[v->op->first_access + a];
        const struct plan_buffer *b = check_buffer_of(c, access);
        enum check_operand operand = operand_of(v, b);
        if (operand == CHECK_OPERAND_COUNT)
            return check_fail(c, CHECK_RULE_FORM, "accesses the %s, which it has no use for",
                              check_access_text(c, access, text));
        if (v->operands[operand])
            return check_fail(c, CHECK_RULE_FORM, "accesses two buffers for %s", operand_text(operand));
        bool by_rows = operand == CHECK_OPERAND_STATE || operand == CHECK_OPERAND_PARAMETERS ||
                       (operand == CHECK_OPERAND_TABLE_GRADIENT && v->embedding);
        if (by_rows && b->variant != sliced_variant)
            return check_fail(c, CHECK_RULE_FORM, "accesses the %s (expected variant %u)",
                              check_access_text(c, access, text), sliced_variant);
        v->operands[operand] = access;
    }
    return STATUS_OK;
}

/* --- work ----------------------------------------------------------------------------------- */

enum { WORK_TEXT_BYTES = 128 };

static const char *work_text(const struct work_item *item, char text[WORK_TEXT_BYTES])
{
    snprintf(text, WORK_TEXT_BYTES, "%u x %s(%" PRIu64 ", %" PRIu64 ", %" PRIu64 ")", item->count,
             kernel_names[item->kernel], item->m, item->n, item->k);
    return text;
}

static enum status check_work(struct checker *c, const struct plan_check_claims_view *v)
{
    const struct plan *plan = c->plan;
    const struct plan_shard *shard = &plan->shards[v->global];
    struct work_item expected[PLAN_WORK_ITEMS_MAX];
    uint32_t count = plan_work_items(v->job, shard->first_layer, shard->layer_count,
                                     (enum plan_pass)v->op->pass, way_of(v), v->op->first_row,
                                     v->op->row_count, expected);
    const struct work_item *found = NULL;
    uint32_t found_count = 0;
    if (v->op->work != PLAN_NONE) {
        found = plan->items + plan->works[v->op->work].first_item;
        found_count = plan->works[v->op->work].item_count;
    }
    if (found_count != count)
        return check_fail(c, CHECK_RULE_WORK, "%u kinds of kernels (expected %u)", found_count, count);
    for (uint32_t i = 0; i < count; i++) {
        const struct work_item *f = &found[i], *e = &expected[i];
        if (f->kernel == e->kernel && f->count == e->count && f->m == e->m && f->n == e->n &&
            f->k == e->k)
            continue;
        char found_text[WORK_TEXT_BYTES], expected_text[WORK_TEXT_BYTES];
        return check_fail(c, CHECK_RULE_WORK, "%s (expected %s)", work_text(f, found_text),
                          work_text(e, expected_text));
    }
    return STATUS_OK;
}

/* --- computations --------------------------------------------------------------------------- */

static enum status check_slice(struct checker *c, struct plan_check_claims_view *v)
{
    const struct plan_op *op = v->op;
    if (op->row_count == 0) {
        if (op->first_row != 0 || op->slice != 0)
            return check_fail(c, CHECK_RULE_FORM, "slice %u from row %" PRIu64 " without rows",
                              op->slice, op->first_row);
        return STATUS_OK;
    }
    uint64_t rows = v->job_facts->rows;
    if (!v->embedding || rows == 0)
        return check_fail(c, CHECK_RULE_FORM, "a slice of something that is not cut by rows");
    if (op->first_row >= rows || op->row_count > rows - op->first_row || op->slice == UINT32_MAX)
        return check_fail(c, CHECK_RULE_FORM,
                          "rows %" PRIu64 " to %" PRIu64 " (its embedding has %" PRIu64 ")",
                          op->first_row, op->first_row + op->row_count, rows);
    v->first_row = op->first_row;
    v->row_count = op->row_count;
    v->rows = memory_state_rows(&v->job->network, op->row_count, job_state_format(v->job));
    return STATUS_OK;
}

/* Returns true if a backward pass leaves its parameters' gradient; an embedding does only if its update waits for a
 * norm. */
static bool leaves_gradient(const struct checker *c, const struct plan_check_claims_view *v)
{
    if (v->op->pass == PLAN_UPDATE || v->op->pass == PLAN_NORM) return false;
    if (v->embedding && !job_clips(v->job)) return false;
    for (uint32_t a = 0; a < v->op->access_count; a++)
        if (check_buffer_of(c, &c->plan->accesses[v->op->first_access + a])->kind ==
            BUFFER_GRADIENT)
            return true;
    return false;
}

static bool activations_read(const struct checker *c, const struct plan_op *op)
{
    for (uint32_t a = 0; a < op->access_count; a++) {
        const struct plan_access *access = &c->plan->accesses[op->first_access + a];
        if (check_buffer_of(c, access)->kind == BUFFER_ACTIVATIONS)
            return op->pass == PLAN_FORWARD || (access->flags & ACCESS_READ);
    }
    return false;
}

enum status check_training_op(struct checker *c)
{
    struct plan_check_claims_view v = {.unit = c->unit, .op = c->op};
    v.job = &c->plan->jobs.jobs[v.unit->job];
    v.job_facts = &c->jobs[v.unit->job];
    v.shard = v.unit->shard;
    v.global = v.job_facts->first_shard + v.shard;
    v.shard_facts = &c->shards[v.global];
    v.makes_outputs = v.shard + 1 == v.job_facts->shard_count && job_makes_outputs(v.job);
    v.last = v.shard + 1 == v.job_facts->shard_count && !v.makes_outputs;
    v.embedding = v.shard == 0 && v.job_facts->embedding;
    bool trains = v.op->pass == PLAN_FORWARD || v.op->pass == PLAN_LOSS || v.op->pass == PLAN_BACKWARD;
    if (trains && v.last != (v.op->pass == PLAN_LOSS))
        return check_fail(c, CHECK_RULE_TRAINING, "only the last shard computes the loss");
    if (v.shard == 0 && job_takes_outputs(v.job) && v.op->pass != PLAN_UPDATE && v.op->pass != PLAN_NORM)
        return check_fail(c, CHECK_RULE_TRAINING, "passes over layers whose outputs the job takes");
    TRY(check_slice(c, &v));
    uint32_t activations = c->plan->job_activations[v.unit->job];
    v.inputs = c->plan->shards[v.global].inputs_only && (trains || v.last);
    /* Without activations, the job's treatment of activations decides. */
    v.kept = v.op->pass != PLAN_LOSS &&
             (v.embedding || activations_read(c, v.op) ||
              (v.shard_facts->activation_bytes == 0 && trains && v.shard >= v.job_facts->frozen &&
               activations != ACTIVATIONS_RECOMPUTE));
    v.gradients_out = leaves_gradient(c, &v);
    bool back = v.op->pass == PLAN_LOSS || v.op->pass == PLAN_BACKWARD;
    if (back && v.shard < v.job_facts->frozen)
        return check_fail(c, CHECK_RULE_TRAINING, "goes back over frozen layers");
    if (back && job_clips(v.job) && !v.gradients_out && v.shard_facts->trains)
        return check_fail(c, CHECK_RULE_TRAINING, "makes a step before the norm of all gradients is known");
    TRY(find_operands(c, &v));
    TRY(check_operands(c, &v));
    TRY(check_work(c, &v));
    return claim_all(c, &v);
}
