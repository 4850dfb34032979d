/* A piece's sizes come from models/job/memory.h, like a shard's; this file adds them up and places the pieces. */
#include "models/job/chunk_memory.h"

#include <assert.h>

#include "base/extreme.h"
#include "base/size.h"
#include "models/job/chunk_share.h"
#include "models/job/memory_layout.h"
#include "models/job/parallel_memory.h"
#include "models/network/network_traits.h"

/* Returns UNIT_KEEP and UNIT_INPUTS as the layers are kept. */
static uint32_t kept_way(const struct job *job, struct parallel_layers layers)
{
    switch (parallel_recompute(job, layers)) {
    case RECOMPUTE_FULL: return UNIT_KEEP | UNIT_INPUTS;
    case RECOMPUTE_STAGE: return 0;
    default: return UNIT_KEEP;
    }
}

static bool splits_ends(const struct parallel *p)
{
    return parallel_place(p, 0).stage != parallel_place(p, parallel_chunks(p) - 1).stage;
}

static void add_piece(struct chunk_memory *m, uint64_t first, uint64_t count)
{
    if (count > 0) m->pieces[m->piece_count++] = (struct parallel_layers){first, count};
}

static uint64_t aligned(uint64_t bytes)
{
    return size_align(bytes, MEMORY_ALIGNMENT);
}

static void size_values(const struct job *job, struct parallel_layers layers, struct chunk_memory *m)
{
    const struct state_layout state = job_state(job, layers.first, layers.count);
    const enum state_part table = m->trains_table ? STATE_WEIGHTS : STATE_FROZEN;
    m->state_bytes = aligned(state.bytes);
    for (uint32_t part = STATE_FROZEN; part <= STATE_MASTER; part++)
        if (state.parts[part].bytes > 0) m->value_bytes = state.parts[part].offset_bytes + state.parts[part].bytes;
    if (pipeline_is_asynchronous(job->parallel.schedule)) m->version_bytes = aligned(state_weight_bytes(&state));
    m->gradient_bytes = aligned(memory_parameter_bytes(&job->network, layers.first, layers.count));
    m->table_state_offset = m->state_bytes;
    m->table_gradient_offset = m->gradient_bytes;
    if (!m->has_head) return;
    if (m->trains_table) m->gradient_bytes += aligned(m->table_rows * job->network.width * sizeof(float));
    if (!m->copies_table) return;
    m->table_rows_layout = memory_state_rows(&job->network, m->table_rows, job_state_format(job));
    m->table_weights_offset = m->table_state_offset + m->table_rows_layout.parts[table].offset_bytes;
    m->state_bytes += aligned(m->table_rows_layout.bytes);
    if (m->version_bytes == 0) return;
    m->table_weights_offset = m->version_bytes; /* passes read a version */
    m->version_bytes += aligned(m->table_rows_layout.parts[table].bytes);
}

/* Returns the bytes before the embedding's table, which is trained, in the state of the first chunk. */
static uint64_t frozen_before_table(const struct job *job)
{
    const struct parallel_layers first = parallel_layers(job, 0);
    return job_state(job, first.first, first.count).parts[STATE_WEIGHTS].offset_bytes;
}

static void size_levels(const struct job *job, struct chunk_memory *m)
{
    m->levels = job_sum_levels(job, job->microbatches / job->parallel.data);
    m->level_bytes = m->levels * m->gradient_bytes;
    m->loss_bytes = (1 + m->levels) * sizeof(double);
}

/* Returns the scratch of the passes over a piece: forward and backward. A backward pass in two units has all
 * activations. */
static uint64_t piece_scratch(const struct job *job, const struct parallel_layers *piece, uint32_t kept)
{
    uint64_t bytes[3][UNIT_WAYS];
    uint32_t how = job_microbatch_way(job), way = piece->first == 0 ? UNIT_KEEP : kept;
    uint32_t back = pipeline_has_halves(job->parallel.schedule) ? UNIT_KEEP : way;
    memory_workspaces(&job->network, piece->first, piece->count, how, job->microbatch, job->sequence, bytes);
    const uint64_t trained = max_u64(bytes[UNIT_FORWARD][way], bytes[UNIT_BACKWARD][back | UNIT_GRADIENTS_OUT]);
    if (job->evaluation.every == 0) return trained;
    const bool head = piece->first + piece->count == job->network.layer_count;
    return max_u64(trained, head ? bytes[UNIT_LOSS][UNIT_GRADIENTS_OUT | (way & UNIT_INPUTS)] : bytes[UNIT_FORWARD][0]);
}

static uint64_t kept_bytes(const struct job *job, const struct parallel_layers *piece, bool inputs_only)
{
    return (inputs_only ? memory_input_bytes : memory_activation_bytes)(&job->network, piece->first, piece->count,
                                                                        job->microbatch, job->sequence, job->precision);
}

/* Places what the first half of a backward pass hands over to the second. */
static void size_handover(const struct job *job, uint32_t kept, uint64_t stream, struct chunk_memory *m)
{
    const struct parallel_layers *last = &m->pieces[m->piece_count - 1];
    const bool both = m->piece_count == CHUNK_PIECES_MAX, made = !kept || m->inputs_only;
    if (!pipeline_has_halves(job->parallel.schedule)) return;
    m->handed_d_between_offset = both && !kept ? stream : 0;
    m->handed_kept_offset = m->handed_d_between_offset + (both ? stream : 0);
    m->handed_gradients_offset = m->handed_kept_offset;
    if (last->first > 0 && made) m->handed_gradients_offset += aligned(kept_bytes(job, last, false));
    const uint64_t blocks = last->first > 0 ? last->count - m->has_head : 0;
    m->handover_bytes = m->handed_gradients_offset;
    if (blocks > 0)
        m->handover_bytes += blocks *
                             memory_block_gradients(&job->network, last->first, job->microbatch, job->sequence,
                                                    job->precision).bytes;
}

/* Returns the bytes of the statistics that a tensor group's head exchanges for a piece of rows. */
static uint64_t loss_bytes(const struct job *job)
{
    const uint64_t rows = job->microbatch * network_tokens(&job->network, job->sequence);
    if (!parallel_has_slices(&job->parallel) || network_classifies(&job->network)) return 0;
    const uint64_t pieces = max_u64(job->network.pieces, 1);
    return aligned(pieces * CHUNK_LOSS_NUMBERS * network_logit_rows(&job->network, rows) * sizeof(float));
}

/* Sizes what the slices of a microbatch hand over, and the scratch of their attention, after the workspace so far. */
static void size_context(const struct job *job, struct parallel_layers layers, struct chunk_memory *m)
{
    const struct network *n = &job->network;
    const uint64_t blocks = layers.count - m->has_embedding - m->has_head;
    const struct attention_sizes sizes = {.samples = job->microbatch, .tokens = job->sequence, .heads = n->heads,
                                          .kv_heads = network_kv_heads(n), .head_width = n->head_width};
    m->context_bytes = aligned(job->microbatch * parallel_sequence(job) * sizes.kv_heads * n->head_width *
                               precision_bytes(job->precision));
    m->handover_bytes = blocks * CHUNK_CONTEXT_PARTS * m->context_bytes;
    m->context_offset = aligned(m->workspace_bytes);
    m->workspace_bytes = m->context_offset +
                         sizeof(float) * memory_attention_after(sizes, job->parallel.slice_begin, job->precision);
}

/* Returns the numbers of a boundary, or of the embedding's output. */
static uint64_t stream_numbers(const struct job *job)
{
    return memory_boundary_bytes(&job->network, 0, job->microbatch, job->sequence, PRECISION_FP32) / sizeof(float);
}

/* Places plain boundaries that passes decode, or encode, after the workspace so far. */
static void size_codes(const struct job *job, struct parallel_layers layers, uint64_t stream, struct chunk_memory *m)
{
    const uint64_t end = layers.first + layers.count;
    m->encodes_in = layers.first > 0 && parallel_compresses(job, layers.first - 1);
    m->encodes_out = end < job->network.layer_count && parallel_compresses(job, end - 1);
    if (!m->encodes_in && !m->encodes_out) return;
    m->boundary_numbers = stream_numbers(job);
    m->plain_in_offset = aligned(m->workspace_bytes);
    m->plain_gradient_offset = m->plain_in_offset + (m->encodes_in ? stream : 0);
    m->plain_out_offset = m->plain_gradient_offset + (m->encodes_in ? stream : 0);
    m->workspace_bytes = m->plain_out_offset + (m->encodes_out ? stream : 0);
}

/* Sizes encoded activations, and their plain place after the workspace so far. */
static void size_kept_code(const struct job *job, struct chunk_memory *m)
{
    const struct compression *const compression = &job->compression[COMPRESSION_ACTIVATIONS];
    const struct parallel_layers *const last = &m->pieces[m->piece_count - 1];
    if (!compression_is_set(compression) || m->activation_bytes == 0) return;
    m->kept_code = compression_code(compression);
    if (m->kept_code == COMPRESSION_PLAIN) return;
    m->boundary_numbers = stream_numbers(job);
    m->plain_kept_bytes = m->activation_bytes;
    m->plain_kept_offset = aligned(m->workspace_bytes);
    m->workspace_bytes = m->plain_kept_offset + m->plain_kept_bytes;
    if (m->kept_offset > 0) m->coded_layers_offset = aligned(compression_code_bytes(m->kept_code, m->boundary_numbers));
    m->activation_bytes = m->coded_layers_offset +
                          memory_coded_bytes(&job->network, last->first, last->count,
                                             m->inputs_only ? UNIT_INPUTS : 0, job->microbatch, job->sequence,
                                             m->kept_code);
}

/* Takes the largest buffers of all slices. */
static struct chunk_memory of_slices(const struct job *job, struct parallel_layers layers)
{
    struct job slice = parallel_slice(job, 0);
    struct chunk_memory all = chunk_memory(&slice, layers);
    for (uint32_t i = 1; i < job->parallel.slices; i++) {
        slice = parallel_slice(job, i);
        const struct chunk_memory own = chunk_memory(&slice, layers);
        all.activation_bytes = max_u64(all.activation_bytes, own.activation_bytes);
        all.workspace_bytes = max_u64(all.workspace_bytes, own.workspace_bytes);
    }
    return all;
}

struct chunk_memory chunk_memory(const struct job *whole, struct parallel_layers layers)
{
    if (parallel_slices(&whole->parallel) > 1 && whole->parallel.slice_length == 0) return of_slices(whole, layers);
    struct job room;
    const struct job *job = parallel_share_in(whole, &room);
    const struct network *n = &job->network;
    const bool embedding = layers.first == 0, tied = n->tied_head;
    const uint64_t stream = aligned(memory_boundary_bytes(n, 0, job->microbatch, job->sequence, job->precision));
    const uint32_t kept = kept_way(job, layers);
    struct chunk_memory m = {.has_embedding = embedding, .has_head = layers.first + layers.count == n->layer_count,
                             .inputs_only = kept & UNIT_INPUTS};
    add_piece(&m, layers.first, embedding ? 1 : layers.count);
    if (embedding) add_piece(&m, 1, layers.count - 1);
    if (tied && (m.has_head || m.has_embedding)) m.table_rows = n->vocabulary;
    m.copies_table = m.table_rows > 0 && splits_ends(&job->parallel);
    m.trains_table = m.table_rows > 0 && parallel_trains_table(job);
    if (m.trains_table) m.table_offset = frozen_before_table(job);
    size_values(job, layers, &m);
    m.whole_gradient_bytes = m.gradient_bytes;
    m.device_state_bytes = m.state_bytes;
    if (parallel_splits(&job->parallel, ZERO_STATES) || job->parallel.offload != OFFLOAD_NOTHING)
        chunk_share_split(job, layers, &m);
    size_levels(job, &m);

    const struct parallel_layers *last = &m.pieces[m.piece_count - 1];
    const bool both = m.piece_count == CHUNK_PIECES_MAX;
    if (both && kept) m.kept_offset = stream;
    if (kept && last->first > 0) m.activation_bytes = m.kept_offset + kept_bytes(job, last, kept & UNIT_INPUTS);
    size_handover(job, kept, stream, &m);
    m.d_between_offset = both && !kept ? stream : 0;
    m.loss_offset = m.d_between_offset + (both ? stream : 0);
    m.scratch_offset = m.loss_offset + (m.has_head ? loss_bytes(job) : 0);
    for (uint32_t i = 0; i < m.piece_count; i++)
        m.workspace_bytes = max_u64(m.workspace_bytes, m.scratch_offset + piece_scratch(job, &m.pieces[i], kept));
    if (job->parallel.slice_length > 0) size_context(job, layers, &m);
    size_codes(job, layers, stream, &m);
    size_kept_code(job, &m);
    return m;
}
