#include "exec/network/chunk.h"

#include <assert.h>
#include <string.h>

#include "base/try.h"
#include "exec/network/sum_tree.h"
#include "exec/network/transformer.h"
#include "models/job/memory_layout.h"
#include "models/job/parallel_memory.h"
#include "models/network/network_trained.h"
#include "models/network/tensor_share.h"

/* Returns the entries of a piece's layers. */
static struct memory_table part_of(const struct memory_table *whole, struct parallel_layers piece)
{
    struct memory_table part = {.entries = whole->entries, .bytes = whole->bytes};
    for (uint32_t i = 0; i < whole->count; i++) {
        if (whole->entries[i].layer < piece.first) part.entries = &whole->entries[i + 1];
        else if (whole->entries[i].layer < piece.first + piece.count) part.count++;
    }
    return part;
}

/* Returns the job, or a copy with the network's slice. */
static enum status share_of(const struct job *whole, struct arena *arena, const struct job **out, struct error *err)
{
    struct job *share;
    *out = whole;
    if (!parallel_has_slices(&whole->parallel)) return STATUS_OK;
    TRY(ARENA_NEW(arena, 1, share, err));
    *out = parallel_share_in(whole, share);
    return STATUS_OK;
}

static enum status make_tables(const struct job *whole, uint32_t job_index, struct parallel_layers layers,
                               struct arena *arena, struct chunk_tables *out, struct error *err)
{
    struct chunk_tables tables = {.memory = chunk_memory(whole, layers)};
    TRY(share_of(whole, arena, &tables.job, err));
    const struct job *const job = tables.job;
    TRY(memory_parameters(&job->network, layers.first, layers.count, arena, &tables.parameters, err));
    TRY(memory_state_tables(&job->network, layers.first, layers.count, job_state_format(job), arena, &tables.state,
                            err));
    for (uint32_t i = 0; i < tables.memory.piece_count; i++) {
        const struct parallel_layers piece = tables.memory.pieces[i];
        struct unit_tables *unit = &tables.units[i];
        tables.shards[i] = (struct plan_shard){.job = job_index, .first_layer = piece.first, .layer_count = piece.count,
                                               .inputs_only = piece.first > 0 && tables.memory.inputs_only};
        TRY(unit_tables_init_alone(job, &tables.shards[i], arena, unit, err));
        unit->parameters = part_of(&tables.parameters, piece);
        unit->state.layout = tables.state.layout;
        for (uint32_t part = 0; part < STATE_PARTS; part++)
            unit->state.parts[part] = part_of(&tables.state.parts[part], piece);
    }
    if (tables.memory.kept_code != COMPRESSION_PLAIN) {
        const struct parallel_layers last = tables.memory.pieces[tables.memory.piece_count - 1];
        TRY(memory_coded(&job->network, last.first, last.count, tables.memory.inputs_only ? UNIT_INPUTS : 0,
                         job->microbatch, job->sequence, tables.memory.kept_code, arena, &tables.coded, err));
    }
    if (tables.memory.splits_states) {
        struct chunk_share *shares;
        TRY(ARENA_NEW(arena, whole->parallel.data, shares, err));
        for (uint32_t rank = 0; rank < whole->parallel.data; rank++)
            shares[rank] = chunk_share(job, layers, &tables.memory, rank % tables.memory.ranks);
        tables.shares = shares;
    }
    *out = tables;
    return STATUS_OK;
}

/* Makes the tables of passes over the slices of tokens, if there are any. */
static enum status make_slices(const struct job *whole, uint32_t job_index, struct parallel_layers layers,
                               struct arena *arena, struct chunk_tables *out, struct error *err)
{
    const uint32_t count = parallel_slices(&whole->parallel);
    struct chunk_tables *slices;
    struct job *jobs;
    if (count <= 1) return STATUS_OK;
    TRY(ARENA_NEW(arena, count, slices, err));
    TRY(ARENA_NEW(arena, count, jobs, err));
    for (uint32_t i = 0; i < count; i++) {
        jobs[i] = parallel_slice(whole, i);
        TRY(make_tables(&jobs[i], job_index, layers, arena, &slices[i], err));
    }
    out->slices = slices;
    return STATUS_OK;
}

enum status chunk_tables_init(const struct job *whole, uint32_t job_index, struct parallel_layers layers,
                              struct arena *arena, struct chunk_tables *out, struct error *err)
{
    TRY(make_tables(whole, job_index, layers, arena, out, err));
    return make_slices(whole, job_index, layers, arena, out, err);
}

void chunk_fill_table(const struct chunk_tables *tables, void *state, const struct chunk_tables *first,
                      const void *first_state)
{
    const struct chunk_memory *m = &tables->memory;
    if (!m->copies_table || !m->has_head) return;
    for (uint32_t part = 0; part < STATE_PARTS; part++) {
        const uint64_t from = first->state.layout.parts[part].offset_bytes,
                       to = m->table_rows_layout.parts[part].offset_bytes;
        memcpy(transformer_at(state, m->table_state_offset + to), (const char *)first_state + from,
               m->table_rows_layout.parts[part].bytes);
    }
}

static bool is_half(const struct chunk_arguments *a)
{
    return a->pass == PLAN_BACKWARD_INPUT || a->pass == PLAN_BACKWARD_WEIGHT;
}

/* Returns the embedding's output, where the other layers of its chunk read it. */
static kernel_number *between(const struct chunk_arguments *a)
{
    if (a->activations) return a->activations;
    return is_half(a) ? a->handover : a->workspace;
}

/* Returns its gradient. */
static kernel_number *d_between(const struct chunk_arguments *a)
{
    const struct chunk_memory *m = &a->tables->memory;
    return is_half(a) ? transformer_at(a->handover, m->handed_d_between_offset)
                      : transformer_at(a->workspace, m->d_between_offset);
}

static bool holds_embedding(const struct chunk_memory *m, uint32_t piece)
{
    return m->has_embedding && piece == 0;
}

/* Returns the tied table as the head reads it; NULL: there is none. */
static const void *table_of(const struct chunk_arguments *a)
{
    const struct chunk_memory *m = &a->tables->memory;
    if (m->table_rows == 0 || !a->state) return NULL;
    if (m->copies_table || m->gathers_table) return transformer_at(a->state, m->table_weights_offset);
    return (const char *)a->table + m->table_offset;
}

/* Returns the arguments of a pass over a piece, without the boundaries to other pieces. */
static struct unit_arguments unit_of(const struct chunk_arguments *a, uint32_t i)
{
    const struct chunk_memory *m = &a->tables->memory;
    const bool embedding = holds_embedding(m, i), head = m->has_head && i + 1 == m->piece_count;
    const bool sliced = a->handover && m->context_bytes > 0;
    return (struct unit_arguments){
        .job = a->tables->job,
        .split = a->split,
        .shard = &a->tables->shards[i],
        .tables = &a->tables->units[i],
        .pass = a->pass,
        .minibatch = a->minibatch,
        .round = a->round,
        .microbatch = a->microbatch,
        .state = a->state,
        .gradient = a->gradient,
        .carry = a->carry,
        .norms = a->norms,
        .table = head ? table_of(a) : NULL,
        .table_gradient = head && a->gradient && m->trains_table
                          ? chunk_table_gradient(a->tables, a->gradient) : NULL,
        .batch = a->batch,
        .begins = a->begins,
        .position_rows = a->position_rows,
        .loss = head ? a->loss : NULL,
        .targets = a->targets,
        .activations = a->activations && !embedding ? transformer_at(a->activations, m->kept_offset) : NULL,
        .inputs_only = m->inputs_only && !embedding,
        .handed_activations = a->handover ? transformer_at(a->handover, m->handed_kept_offset) : NULL,
        .handed_gradients = a->handover ? transformer_at(a->handover, m->handed_gradients_offset) : NULL,
        .context = sliced ? a->handover : NULL,
        .context_bytes = m->context_bytes,
        .context_scratch = sliced ? transformer_at(a->workspace, m->context_offset) : NULL,
        .workspace = a->workspace ? transformer_at(a->workspace, m->scratch_offset) : NULL,
        .loss_statistics = a->workspace ? transformer_at(a->workspace, m->loss_offset) : NULL,
        .guard = a->guard,
    };
}

static void embed(const struct kernels *kernels, const struct chunk_arguments *a, kernel_number *out)
{
    struct unit_arguments unit = unit_of(a, 0);
    if (a->pass != PLAN_EVALUATE) unit.pass = PLAN_FORWARD;
    unit.boundary_out = out;
    unit_compute(kernels, &unit);
}

static void forward(const struct kernels *kernels, const struct chunk_arguments *a)
{
    const struct chunk_memory *m = &a->tables->memory;
    const uint32_t last = m->piece_count - 1;
    const bool both = m->piece_count == CHUNK_PIECES_MAX;
    if (m->has_embedding) embed(kernels, a, both ? between(a) : a->boundary_out);
    if (holds_embedding(m, last)) return;
    struct unit_arguments unit = unit_of(a, last);
    unit.boundary_in = both ? between(a) : a->boundary_in;
    unit.boundary_out = a->boundary_out;
    unit_compute(kernels, &unit);
}

static void backward(const struct kernels *kernels, const struct chunk_arguments *a)
{
    const struct chunk_memory *m = &a->tables->memory;
    const uint32_t last = m->piece_count - 1;
    const bool both = m->piece_count == CHUNK_PIECES_MAX, second = a->pass == PLAN_BACKWARD_WEIGHT;
    const uint64_t first_trained = network_first_trained(&a->tables->job->network);
    if (m->pieces[last].first + m->pieces[last].count <= first_trained) return;
    if (!holds_embedding(m, last)) {
        struct unit_arguments unit = unit_of(a, last);
        if (both && !a->activations && !second) embed(kernels, a, between(a));
        unit.boundary_in = both ? between(a) : a->boundary_in;
        unit.gradient_in = a->gradient_in;
        unit.gradient_out = both ? d_between(a) : a->gradient_out;
        unit_compute(kernels, &unit);
    }
    if (!m->has_embedding || first_trained > 0 || a->pass == PLAN_BACKWARD_INPUT) return;
    struct unit_arguments unit = unit_of(a, 0);
    unit.pass = PLAN_BACKWARD;
    unit.gradient_in = both ? d_between(a) : a->gradient_in;
    unit_compute(kernels, &unit);
}

/* --- trees of sums ---------------------------------------------------------------------------- */

/* The passes over the slices of a microbatch's tokens add to one value, in the order in which they come. */
static struct sum_tree tree_of(const struct chunk_arguments *a)
{
    return (struct sum_tree){a->tables->memory.levels, a->microbatch.place, a->microbatch.held};
}

static float *gradient_at(const struct chunk_arguments *a, uint32_t level)
{
    const struct chunk_memory *m = &a->tables->memory;
    if (level == m->levels || m->level_bytes == 0) return a->gradient; /* without bytes nothing is trained */
    return transformer_at(a->levels, level * m->gradient_bytes);
}

static double *loss_at(const struct chunk_arguments *a, uint32_t level)
{
    return level == a->tables->memory.levels ? a->loss : a->loss + 1 + level;
}

/* What a pass adds to its tree: a range of the gradient, and perhaps the loss. */
struct chunk_sums {
    const struct kernels *kernels;
    const struct chunk_arguments *arguments;
    uint64_t offset, bytes;
    bool loss;
};

static void add_level(const void *context, uint32_t to, uint32_t from)
{
    const struct chunk_sums *const sums = context;
    const struct kernels *const kernels = sums->kernels;
    const struct chunk_arguments *const a = sums->arguments;
    if (sums->bytes > 0) {
        float *const sum = transformer_at(gradient_at(a, to), sums->offset);
        kernels->add(kernels, sum, sum, transformer_at(gradient_at(a, from), sums->offset),
                     (int64_t)(sums->bytes / sizeof(float)));
    }
    if (sums->loss) kernels->add_double(kernels, loss_at(a, to), loss_at(a, from));
}

/* Adds a range of the gradient to the tree. */
static void carry_range(const void *context, uint64_t offset, uint64_t bytes)
{
    struct chunk_sums own = *(const struct chunk_sums *)context;
    const struct sum_tree tree = tree_of(own.arguments);
    own.offset = offset;
    own.bytes = bytes;
    own.loss = false;
    sum_tree_carry(&tree, add_level, &own);
}

/* Adds what a half of a backward pass makes at once: the head's gradient of a tied table, or the embedding's. */
static void carry_tables(const struct chunk_sums *sums)
{
    const struct chunk_arguments *const a = sums->arguments;
    const struct chunk_memory *const m = &a->tables->memory;
    const bool first = a->pass == PLAN_BACKWARD_INPUT, trains = network_first_trained(&a->tables->job->network) == 0;
    if (first && m->has_head && m->trains_table)
        carry_range(sums, m->table_gradient_offset, m->table_rows * a->job->network.width * sizeof(float));
    if (!first && m->has_embedding && trains)
        carry_range(sums, 0, memory_parameter_bytes(&a->tables->job->network, 0, 1));
}

/* Returns true for a pass over the first, or the last slice of a microbatch's tokens. */
static bool is_first_slice(const struct chunk_arguments *a)
{
    return a->tables->job->parallel.slice_begin == 0;
}
static bool is_last_slice(const struct chunk_arguments *a)
{
    const struct parallel *p = &a->tables->job->parallel;
    return p->slice_length == 0 || p->slice_begin + p->slice_length == parallel_sequence(a->tables->job);
}

/* Passes over a microbatch by itself, and adds its values to the tree after its last slice. The halves of a backward
 * pass each add theirs, in their own order of microbatches. */
static void pass_in_tree(const struct kernels *kernels, const struct chunk_arguments *a,
                         void (*pass)(const struct kernels *kernels, const struct chunk_arguments *a))
{
    const struct sum_tree t = tree_of(a);
    const bool back = a->pass == PLAN_BACKWARD, half = is_half(a); /* slices: from the last one to the first */
    const struct chunk_sums sums = {.kernels = kernels, .arguments = a, .loss = a->loss != NULL,
                                    .bytes = back ? a->tables->memory.gradient_bytes : 0};
    const struct unit_carry carry = {carry_range, &sums};
    struct chunk_arguments own = *a;
    assert(t.index < t.count);
    assert(a->tables->memory.level_bytes == 0 || a->levels || a->pass == PLAN_EVALUATE);
    own.microbatch.adds = !(back ? is_last_slice(a) : is_first_slice(a));
    if (back || half) own.gradient = gradient_at(a, sum_tree_level(&t));
    if (half) own.carry = &carry;
    if (a->loss) own.loss = loss_at(a, sum_tree_level(&t));
    pass(kernels, &own);
    if (half) carry_tables(&sums);
    if (back ? is_first_slice(a) : is_last_slice(a)) sum_tree_carry(&t, add_level, &sums);
}

/* --- updates ---------------------------------------------------------------------------------- */

/* Adds the head's gradient of a table without a copy to the embedding's. */
static void add_table_gradient(const struct kernels *kernels, const struct chunk_arguments *a)
{
    const struct chunk_memory *m = &a->tables->memory;
    if (!m->trains_table || m->copies_table || !m->has_embedding) return;
    kernels->add(kernels, a->gradient, a->gradient, a->table_gradient,
                 (int64_t)(m->table_rows * a->job->network.width));
}

/* Steps the head's copy of the table. */
static void update_table(const struct kernels *kernels, const struct chunk_arguments *a)
{
    const struct chunk_memory *m = &a->tables->memory;
    if (!m->trains_table || !m->copies_table || !m->has_head) return;
    const struct unit_arguments unit = {.job = a->job, .minibatch = a->minibatch, .norms = a->norms, .guard = a->guard,
                                        .state = transformer_at(a->state, m->table_state_offset)};
    transformer_update_rows(kernels, &unit, chunk_table_gradient(a->tables, a->gradient), m->table_rows);
}

/* Computes the squares of the gradients of all of the chunk's tensors. The copy of a table is not counted again. */
static void norm(const struct kernels *kernels, const struct chunk_arguments *a)
{
    add_table_gradient(kernels, a);
    for (uint32_t i = 0; i < a->tables->memory.piece_count; i++) {
        const struct unit_arguments unit = unit_of(a, i);
        unit_compute(kernels, &unit);
    }
}

/* Copies the newest weights, with the head's copy of the table. */
static void keep_version(const struct kernels *kernels, const struct chunk_arguments *a)
{
    const struct state_layout *state = &a->tables->state.layout;
    const struct chunk_memory *m = &a->tables->memory;
    const struct kernels *const own = kernels_of(kernels, a->job);
    if (!a->version) return;
    transformer_copy(own, a->version, a->state, state_weight_bytes(state));
    if (!m->copies_table || !m->has_head) return;
    const struct state_layout *table = &m->table_rows_layout;
    const enum state_part part = m->trains_table ? STATE_WEIGHTS : STATE_FROZEN;
    transformer_copy(own, transformer_at(a->version, m->table_weights_offset),
                     transformer_at(a->state, m->table_state_offset + table->parts[part].offset_bytes),
                     table->parts[part].bytes);
}

static void update(const struct kernels *kernels, const struct chunk_arguments *a)
{
    if (!job_clips(a->job)) add_table_gradient(kernels, a);
    update_table(kernels, a);
    for (uint32_t i = 0; i < a->tables->memory.piece_count; i++) {
        const struct unit_arguments unit = unit_of(a, i);
        unit_compute(kernels, &unit);
    }
    keep_version(kernels, a);
}

/* --- codes -------------------------------------------------------------------------------------- */

static void clear_between(const struct kernels *kernels, float *gradient, uint64_t begin, uint64_t end)
{
    if (begin < end) kernels->zero(kernels, transformer_at(gradient, begin), end - begin);
}

/* Encodes a gradient. What is between its tensors becomes zero: blocks of a code reach there. */
static void encode_gradient(const struct kernels *kernels, const struct chunk_arguments *a)
{
    const struct chunk_memory *m = &a->tables->memory;
    const struct memory_table *own = &a->tables->parameters;
    const uint64_t bytes = m->splits_gradients ? m->whole_gradient_bytes : m->gradient_bytes;
    const uint64_t table_bytes = m->has_head && m->trains_table
                                 ? m->table_rows * a->tables->job->network.width * sizeof(float) : 0;
    uint64_t at = 0;
    for (uint32_t i = 0; i < own->count; i++) {
        clear_between(kernels, a->gradient, at, own->entries[i].offset_bytes);
        at = own->entries[i].offset_bytes + own->entries[i].bytes;
    }
    clear_between(kernels, a->gradient, at, m->table_gradient_offset);
    clear_between(kernels, a->gradient, m->table_gradient_offset + table_bytes, bytes);
    kernels->encode(kernels, parallel_gradient_code(a->tables->job), a->gradient, a->gradient,
                    (int64_t)(bytes / sizeof(float)));
}

/* Decodes the boundaries that a pass reads, and has it make others plain. */
static void decode_boundaries(const struct kernels *kernels, const struct chunk_arguments *a,
                              struct chunk_arguments *plain)
{
    const struct chunk_memory *m = &a->tables->memory;
    const int64_t numbers = (int64_t)m->boundary_numbers;
    const enum compression_code code = compression_code(&a->tables->job->compression[COMPRESSION_BOUNDARIES]);
    if (m->encodes_in && a->boundary_in) {
        plain->boundary_in = transformer_at(a->workspace, m->plain_in_offset);
        kernels->decode(kernels, code, plain->boundary_in, a->boundary_in, numbers);
    }
    if (m->encodes_in && a->gradient_out) plain->gradient_out = transformer_at(a->workspace, m->plain_gradient_offset);
    if (m->encodes_out && a->boundary_out) plain->boundary_out = transformer_at(a->workspace, m->plain_out_offset);
    if (m->encodes_out && a->gradient_in) {
        float *const gradient = transformer_at(a->workspace, m->plain_out_offset);
        kernels->decode(kernels, code, gradient, a->gradient_in, numbers);
        plain->gradient_in = gradient;
    }
}

/* Encodes the boundaries that a pass made. */
static void encode_boundaries(const struct kernels *kernels, const struct chunk_arguments *a,
                              const struct chunk_arguments *plain)
{
    const struct chunk_memory *m = &a->tables->memory;
    const int64_t numbers = (int64_t)m->boundary_numbers;
    const enum compression_code code = compression_code(&a->tables->job->compression[COMPRESSION_BOUNDARIES]);
    if (m->encodes_in && a->gradient_out)
        kernels->encode(kernels, code, a->gradient_out, plain->gradient_out, numbers);
    if (m->encodes_out && a->boundary_out)
        kernels->encode(kernels, code, a->boundary_out, plain->boundary_out, numbers);
}

static void recode(const struct kernels *kernels, enum compression_code code, bool encodes, void *coded, void *plain,
                   uint64_t numbers)
{
    if (encodes) kernels->encode(kernels, code, coded, plain, (int64_t)numbers);
    else kernels->decode(kernels, code, plain, coded, (int64_t)numbers);
}

/* Encodes or decodes activations. Entries without a code are copied; the head's are left out, because it computes in
 * the backward pass. */
static void recode_kept(const struct kernels *kernels, const struct chunk_arguments *a, char *plain, bool encodes)
{
    const struct chunk_memory *const m = &a->tables->memory;
    const struct unit_tables *const unit = &a->tables->units[m->piece_count - 1];
    const struct memory_table *const kept = m->inputs_only ? &unit->inputs : &unit->activations;
    const uint64_t head = m->has_head && !m->inputs_only ? a->job->network.layer_count - 1 : UINT64_MAX;
    if (m->kept_offset > 0) recode(kernels, m->kept_code, encodes, a->activations, plain, m->boundary_numbers);
    for (uint32_t i = 0; i < kept->count && kept->entries[i].layer < head; i++) {
        const struct memory_entry *const from = &kept->entries[i], *const to = &a->tables->coded.entries[i];
        char *const own = plain + m->kept_offset + from->offset_bytes;
        char *const coded = transformer_at(a->activations, m->coded_layers_offset + to->offset_bytes);
        if (to->bytes < from->bytes) recode(kernels, m->kept_code, encodes, coded, own, from->bytes / sizeof(float));
        else transformer_copy(kernels, encodes ? coded : own, encodes ? own : coded, to->bytes);
    }
}

/* Has a pass keep activations, or read them, where they are plain. */
static char *plain_kept(const struct chunk_arguments *a)
{
    const struct chunk_memory *const m = &a->tables->memory;
    return m->kept_code != COMPRESSION_PLAIN && a->activations ? transformer_at(a->workspace, m->plain_kept_offset)
                                                               : NULL;
}

struct unit_split chunk_split(const struct job *job, struct unit_group *group, uint32_t rank)
{
    const struct network slice = network_slice(&job->network, job->parallel.tensor, job->parallel.tensor_pieces);
    const uint64_t words = job->network.vocabulary;
    const struct tensor_range own = tensor_share_range(words, slice.vocabulary, rank);
    return (struct unit_split){.group = group, .rank = rank, .members = job->parallel.tensor,
                               .whole = &job->network, .vocabulary = words,
                               .first_word = own.first, .words = own.count};
}

static void compute(const struct kernels *kernels, const struct chunk_arguments *a)
{
    assert(a->pass == PLAN_UPDATE || a->pass == PLAN_NORM || a->pass == PLAN_LOAD || a->pass == PLAN_REDUCE ||
           a->microbatch.alone);
    const bool tree = job_sums_as_tree(a->job);
    switch (a->pass) {
    case PLAN_FORWARD: forward(kernels, a); break;
    case PLAN_EVALUATE:
        if (tree) pass_in_tree(kernels, a, forward);
        else forward(kernels, a);
        break;
    case PLAN_BACKWARD:
    case PLAN_BACKWARD_INPUT:
    case PLAN_BACKWARD_WEIGHT:
        if (tree) pass_in_tree(kernels, a, backward);
        else backward(kernels, a);
        break;
    case PLAN_NORM: (a->tables->shares ? chunk_norm_share : norm)(kernels, a); break;
    case PLAN_LOAD: keep_version(kernels, a); break;
    case PLAN_REDUCE: encode_gradient(kernels, a); break;
    case PLAN_UPDATE: (a->tables->shares ? chunk_update_share : update)(kernels, a); break;
    default: assert(!"a pass over a chunk");
    }
}

void chunk_compute(const struct kernels *kernels, const struct chunk_arguments *a)
{
    struct chunk_arguments plain = *a;
    char *const kept = plain_kept(a);
    decode_boundaries(kernels, a, &plain);
    if (kept) plain.activations = kept;
    if (kept && a->pass == PLAN_BACKWARD) recode_kept(kernels, a, kept, false);
    compute(kernels, &plain);
    encode_boundaries(kernels, a, &plain);
    if (kept && a->pass == PLAN_FORWARD) recode_kept(kernels, a, kept, true);
}
