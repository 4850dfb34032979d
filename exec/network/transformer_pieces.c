/*
 * Products in pieces ("tensor_pieces" of models/job/parallel.h): a device computes what several devices of a larger
 * tensor group would, each product with the operands that it has there, so that its bits do not depend on the number of
 * devices.
 *
 *     y = x w          by columns: y0 | y1, y2 | y3 on two devices        by rows: (y0 + y1) + (y2 + y3)
 *
 * Pieces of activations and of weights are arrays of their own, one after the other. Only the sums of a group cross
 * devices; what is no product and no sum of pieces, such as norms of rows, every device computes as a whole.
 */
#include "exec/network/transformer.h"
#include "models/network/tensor_share.h"

void transformer_add_pieces(const struct transformer_unit *unit, float *out, float *parts, int64_t count)
{
    const struct kernels *k = unit->kernels;
    for (int64_t step = 1; step < unit->pieces; step *= 2)
        for (int64_t p = 0; p + step < unit->pieces; p += 2 * step) {
            float *const sum = parts + p * count;
            k->add(k, 2 * step == unit->pieces ? out : sum, sum, sum + step * count, count);
        }
}

bool transformer_is_cut(const struct transformer_unit *unit, uint32_t index)
{
    const struct memory_entry *const entries = unit->arguments->tables->parameters.entries;
    const struct network piece = network_piece(unit->split->whole, unit->network);
    struct tensor_spec whole[LAYER_TENSORS_MAX], parts[LAYER_TENSORS_MAX];
    uint32_t before = 0;
    while (before < index && entries[index - before - 1].layer == entries[index].layer) before++;
    (void)network_layer_shapes(unit->split->whole, entries[index].layer, whole);
    (void)network_layer_shapes(&piece, entries[index].layer, parts);
    return tensor_share_of(&whole[before], &parts[before], 0).cut;
}

static double squares_of(const struct transformer_unit *unit, const float *gradient, int64_t each, int64_t pieces)
{
    double sum;
    if (pieces > 1)
        return squares_of(unit, gradient, each, pieces / 2) +
               squares_of(unit, gradient + pieces / 2 * each, each, pieces / 2);
    unit->kernels->squares(unit->kernels, &sum, gradient, each, false);
    return sum;
}

double transformer_piece_squares(const struct transformer_unit *unit, const float *gradient, int64_t count)
{
    return squares_of(unit, gradient, count / unit->pieces, unit->pieces);
}

/* Returns true if q, k and v are columns of one array. */
static bool is_joined(const struct transformer_unit *unit, int64_t row_q)
{
    return row_q != unit->inner;
}

void transformer_rotate(const struct transformer_unit *unit, const struct kernel_rope *rope)
{
    for (int64_t p = 0; p < unit->pieces; p++) {
        struct kernel_rope part = *rope;
        part.h /= unit->pieces;
        part.kv /= unit->pieces;
        part.row_q /= unit->pieces;
        part.row_k /= unit->pieces;
        part.q = transformer_number(unit, rope->q, p * unit->r * part.row_q);
        part.k = is_joined(unit, rope->row_q) ? transformer_number(unit, part.q, unit->inner / unit->pieces)
                                              : transformer_number(unit, rope->k, p * unit->r * part.row_k);
        unit->kernels->rope(unit->kernels, &part);
    }
}

struct kernel_attention transformer_piece_of_attention(const struct transformer_unit *unit,
                                                       const struct kernel_attention *all, int64_t p)
{
    struct kernel_attention part = *all;
    const int64_t pieces = unit->pieces, inner = unit->inner / pieces;
    part.h /= pieces;
    part.kv /= pieces;
    part.row_q /= pieces;
    part.row_kv /= pieces;
    const int64_t q = p * unit->r * part.row_q, kv = p * unit->r * part.row_kv, out = p * unit->r * inner;
    const int64_t joined = is_joined(unit, all->row_q) ? inner - unit->inner : 0; /* columns are closer together */
    part.q = transformer_read_number(unit, all->q, q);
    part.k = transformer_read_number(unit, all->k, kv + joined);
    part.v = transformer_read_number(unit, all->v, kv + 2 * joined);
    part.out = transformer_number(unit, all->out, out);
    part.stats += p * unit->r * part.h;
    if (!all->dout) return part;
    part.dout = transformer_read_number(unit, all->dout, out);
    part.dq = transformer_number(unit, all->dq, q);
    part.dk = transformer_number(unit, all->dk, kv + joined);
    part.dv = transformer_number(unit, all->dv, kv + 2 * joined);
    return part;
}
