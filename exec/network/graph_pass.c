/*
 * Networks of operations: passes over a shard's layers. A layer's calls depend only on the layer and the samples, so a
 * recomputation, and any cut, gives the same bits.
 *
 * An evaluation norms by the running means and changes nothing.
 */
#include "exec/network/graph_layer.h"

#include <assert.h>

/* --- passes ----------------------------------------------------------------------------------- */

static void forward(const struct graph_pass *pass, uint64_t end)
{
    for (uint64_t layer = pass->first; layer < end; layer++) graph_layer_forward(pass, layer);
}

static void back(const struct graph_pass *pass, bool fresh)
{
    for (uint64_t layer = pass->end; layer-- > pass->first;) {
        if (pass->hold == GRAPH_HOLDS_INPUTS && !fresh) graph_layer_forward(pass, layer);
        graph_layer_back(pass, layer);
        fresh = false;
    }
}

/* Returns a pass that recomputes, or a LOSS: in the workspace are all activations, or a layer's and inputs. */
static struct graph_pass again(const struct graph_pass *pass, void *inputs)
{
    const struct unit_arguments *const a = pass->unit->arguments;
    void *const made = pass_piece(a, pass_workspace(a), "activations");
    struct graph_pass out = *pass;
    out.hold = pass_holds_inputs(a) ? GRAPH_HOLDS_INPUTS : GRAPH_HOLDS_ALL;
    out.all = out.alone = made;
    out.inputs = inputs;
    return out;
}

static void compute_forward(struct graph_pass *pass)
{
    const struct unit_arguments *const a = pass->unit->arguments;
    pass->alone = pass_piece(a, pass_workspace(a), "keep");
    if (a->inputs_only && a->pass == PLAN_FORWARD && pass->end - pass->first > 1) {
        pass->hold = GRAPH_HOLDS_INPUTS;
        pass->inputs = a->activations;
    } else if (a->activations && !a->inputs_only) {
        pass->hold = GRAPH_HOLDS_ALL;
        pass->all = a->activations;
    }
    forward(pass, pass->end);
}

static void compute_loss(const struct graph_pass *pass)
{
    const struct unit_arguments *const a = pass->unit->arguments;
    const struct graph_pass own = again(pass, pass_piece(a, pass_workspace(a), "inputs"));
    forward(&own, own.end);
    if (!own.evaluates) back(&own, true);
}

static void compute_back(const struct graph_pass *pass)
{
    const struct unit_arguments *const a = pass->unit->arguments;
    struct graph_pass own = again(pass, a->activations);
    if (own.hold == GRAPH_HOLDS_ALL && a->activations) own.all = a->activations;
    else if (own.hold == GRAPH_HOLDS_ALL) forward(&own, own.end);
    back(&own, false);
}

static void compute(const struct transformer_unit *unit)
{
    const struct unit_arguments *const a = unit->arguments;
    struct graph_pass pass = {.unit = unit,
                              .graph = unit->network->graph,
                              .first = a->shard->first_layer,
                              .end = a->shard->first_layer + a->shard->layer_count,
                              .samples = (uint64_t)unit->b,
                              .hold = GRAPH_HOLDS_NOTHING,
                              .evaluates = a->pass == PLAN_EVALUATE};
    switch (a->pass) {
    case PLAN_FORWARD: compute_forward(&pass); break;
    case PLAN_LOSS: compute_loss(&pass); break;
    case PLAN_BACKWARD: compute_back(&pass); break;
    case PLAN_EVALUATE:
        if (pass_has_head(a)) compute_loss(&pass);
        else compute_forward(&pass);
        break;
    default: assert(!"a pass of operations");
    }
}

/* --- what is supported ------------------------------------------------------------------------- */

/* Returns a reason not to train an operation, or NULL. */
static const char *lacking(const struct network_graph *graph, uint32_t op)
{
    const struct graph_op *const o = &graph->ops[op];
    if (o->readers == 0 && o->kind != GRAPH_LOSS) return "networks with a result that is not read are only planned";
    if (o->kind == GRAPH_LOSS && op + 1 < graph->op_count) return "networks with several losses are only planned";
    if (o->kind == GRAPH_BATCH_NORM && o->channels > KERNEL_CHANNELS_MAX)
        return "batch norms of more than 65536 channels are only planned";
    for (uint32_t i = 0; i < graph_op_reads(o->kind); i++)
        if (o->from[i] == 0 && o->layer > 0) return "networks whose later layers read the images are only planned";
    return NULL;
}

static const char *unsupported(const struct job *job)
{
    const struct network_graph *const graph = job->network.graph;
    const char *reason = NULL;
    if (job->network.trained) return "networks of operations train as a whole, without 'freeze' and 'adapter'";
    for (uint32_t i = 1; i < graph->op_count && !reason; i++) reason = lacking(graph, i);
    return reason;
}

const struct transformer transformer_graph = {
    .pass = compute,
    .unsupported = unsupported,
};
