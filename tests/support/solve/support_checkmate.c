/*
 * Stage t ends with the first computation of node t; before it, earlier nodes may be computed again in their order.
 * With R_t_k (stage t computes node k), S_t_k (the value of k exists when stage t begins) and FREE_t_i_k (i is freed
 * after k):
 *
 *     R_t_k <= R_t_i + S_t_i                       i needed by k; without S for boundaries that are recomputed
 *     S_t_i <= R_{t-1}_i + S_{t-1}_i
 *     U_t_0 = sum S_t_i bytes_i + R_t_0 bytes_0
 *     U_t_{k+1} = U_t_k - sum over i of k and its needs (FREE_t_i_k bytes_i) + R_t_{k+1} bytes_{k+1}
 *     FREE_t_i_k <= R_t_k, 1 - S_{t+1}_i, 1 - R_t_j      j > k a user of i
 *
 * The last row of each kind replaces two rows of the paper, which count hazards and need an integer FREE: this one is
 * tighter, and FREE is integer if R and S are. No optimum recomputes or holds an unneeded value.
 */
#include "tests/support/solve/support_checkmate.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>

enum { NODES_MAX = 64, NEEDS_MAX = 2, NONE = -1 };

struct node {
    double cost, bytes;
    int needs[NEEDS_MAX]; /* nodes; NONE */
    bool beside;          /* made while its needs are computed, never from their results */
};

/* Columns. R_t_k exists for k <= t, S_t_i for i < t. */
struct columns {
    uint32_t r[NODES_MAX][NODES_MAX], s[NODES_MAX][NODES_MAX], u[NODES_MAX][NODES_MAX];
    uint32_t free[NODES_MAX][NODES_MAX][1 + NEEDS_MAX]; /* [t][k]: of k itself, then of its needs */
};

uint32_t checkmate_node_count(const struct chain *chain)
{
    return 3 * chain->layer_count - 1;
}

static void fill_nodes(const struct chain *chain, struct node *nodes)
{
    int layers = (int)chain->layer_count;
    assert_true(checkmate_node_count(chain) <= NODES_MAX);
    for (int l = 0; l < layers; l++) {
        const struct chain_layer *layer = &chain->layers[l];
        int bound = l > 0 ? 2 * l - 1 : NONE;
        nodes[2 * l] = (struct node){(double)layer->forward, (double)(layer->saved - layer->boundary), {bound, NONE},
                                     false};
        if (l > 0) nodes[bound] = (struct node){0, (double)layer->boundary, {2 * (l - 1), NONE}, true};
        nodes[3 * layers - 2 - l] = (struct node){0, 0, {2 * l, bound}, false};
    }
}

static double budget(const struct chain *chain)
{
    return (double)chain->memory - (double)chain->layers[0].boundary;
}

/* Returns the k-th value that node `k` may free: itself, or one of its needs. */
static int freed_by(const struct node *nodes, int k, int which)
{
    return which == 0 ? k : nodes[k].needs[which - 1];
}

static bool uses(const struct node *nodes, int user, int value)
{
    return nodes[user].needs[0] == value || nodes[user].needs[1] == value;
}

static bool is_used(const struct node *nodes, int count, int value)
{
    for (int user = value + 1; user < count; user++)
        if (uses(nodes, user, value)) return true;
    return false;
}

/* Adds R, S and U of all nodes, and FREE of each node and its needs, in the order that checkmate_play() reads. */
static void add_columns(struct milp *milp, const struct chain *chain, const struct node *nodes, int count,
                        struct columns *c)
{
    for (int t = 0; t < count; t++) {
        for (int k = 0; k <= t; k++) {
            double most = k == t || is_used(nodes, count, k);
            c->r[t][k] = milp_column(milp, k == t, most, nodes[k].cost, true, "R_%d_%d", t, k);
        }
        for (int i = 0; i < t; i++)
            c->s[t][i] = milp_column(milp, 0, is_used(nodes, count, i), 0, true, "S_%d_%d", t, i);
    }
    for (int t = 0; t < count; t++)
        for (int k = 0; k <= t; k++) {
            c->u[t][k] = milp_column(milp, 0, budget(chain), 0, false, "U_%d_%d", t, k);
            for (int which = 0; which <= NEEDS_MAX; which++) {
                int i = freed_by(nodes, k, which);
                if (i != NONE) c->free[t][k][which] = milp_column(milp, 0, 1, 0, false, "FREE_%d_%d_%d", t, i, k);
            }
        }
}

/* A value is freed only if it existed, no later node of the stage needs it, and the next stage does not keep it. */
static void free_rows(struct milp *milp, const struct node *nodes, int count, const struct columns *c, int t,
                      int k, int which)
{
    int i = freed_by(nodes, k, which);
    uint32_t freed = c->free[t][k][which];
    milp_term(milp, freed, 1);
    milp_term(milp, c->r[t][k], -1);
    milp_row(milp, -HUGE_VAL, 0, "frees_%d_%d_%d", t, i, k);
    if (t + 1 < count) {
        milp_term(milp, freed, 1);
        milp_term(milp, c->s[t + 1][i], 1);
        milp_row(milp, -HUGE_VAL, 1, "or_stays_%d_%d_%d", t, i, k);
    }
    for (int j = k + 1; j <= t; j++) {
        if (!uses(nodes, j, i)) continue;
        milp_term(milp, freed, 1);
        milp_term(milp, c->r[t][j], 1);
        milp_row(milp, -HUGE_VAL, 1, "or_serves_%d_%d_%d_%d", t, i, k, j);
    }
}

static void stage_rows(struct milp *milp, const struct node *nodes, int count, const struct columns *c, int t)
{
    for (int k = 0; k <= t; k++) {
        for (int n = 0; n < NEEDS_MAX; n++) {
            int i = nodes[k].needs[n];
            if (i == NONE) continue;
            milp_term(milp, c->r[t][k], 1);
            milp_term(milp, c->r[t][i], -1);
            if (!nodes[k].beside || k == t) milp_term(milp, c->s[t][i], -1);
            milp_row(milp, -HUGE_VAL, 0, "needs_%d_%d_%d", t, i, k);
        }
        milp_term(milp, c->u[t][k], 1);
        milp_term(milp, c->r[t][k], -nodes[k].bytes);
        if (k == 0) {
            for (int i = 0; i < t; i++) milp_term(milp, c->s[t][i], -nodes[i].bytes);
        } else {
            milp_term(milp, c->u[t][k - 1], -1);
            for (int which = 0; which <= NEEDS_MAX; which++) {
                int i = freed_by(nodes, k - 1, which);
                if (i != NONE) milp_term(milp, c->free[t][k - 1][which], nodes[i].bytes);
            }
        }
        milp_row(milp, 0, 0, "memory_%d_%d", t, k);
        for (int which = 0; which <= NEEDS_MAX; which++)
            if (freed_by(nodes, k, which) != NONE) free_rows(milp, nodes, count, c, t, k, which);
    }
    for (int i = 0; i < t; i++) {
        milp_term(milp, c->s[t][i], 1);
        milp_term(milp, c->r[t - 1][i], -1);
        if (i < t - 1) milp_term(milp, c->s[t - 1][i], -1);
        milp_row(milp, -HUGE_VAL, 0, "stays_%d_%d", t, i);
    }
}

struct milp *checkmate_program(const struct chain *chain)
{
    struct milp *milp = milp_create("checkmate");
    struct columns *columns = calloc(1, sizeof *columns);
    struct node nodes[NODES_MAX];
    int count = (int)checkmate_node_count(chain);
    if (!milp || !columns) {
        milp_destroy(milp);
        free(columns);
        return NULL;
    }
    fill_nodes(chain, nodes);
    add_columns(milp, chain, nodes, count, columns);
    for (int t = 0; t < count; t++) stage_rows(milp, nodes, count, columns, t);
    free(columns);
    return milp;
}

/* Returns true if a node after k in this stage, or the next stage, needs the value. r and s: columns R and S. */
static bool wanted(const struct node *nodes, int count, const double *r, const double *next_s, int t, int k, int i)
{
    if (t + 1 < count && next_s[i] > 0.5) return true;
    for (int j = k + 1; j <= t; j++)
        if (r[j] > 0.5 && uses(nodes, j, i)) return true;
    return false;
}

int64_t checkmate_play(const struct chain *chain, const double *x)
{
    struct node nodes[NODES_MAX];
    bool there[NODES_MAX] = {false};
    int count = (int)checkmate_node_count(chain);
    double ticks = 0;
    fill_nodes(chain, nodes);
    for (int t = 0; t < count; t++) { /* R_t_0 .. R_t_t, S_t_0 .. S_t_{t-1} */
        const double *r = x, *s = x + t + 1, *next_s = s + t + t + 2;
        x = s + t;
        for (int i = 0; i < t; i++) {
            if (s[i] > 0.5) assert_true(there[i]);
            there[i] = s[i] > 0.5;
        }
        for (int k = 0; k <= t; k++) {
            double held = 0;
            if (r[k] < 0.5) continue;
            for (int n = 0; n < NEEDS_MAX; n++) assert_true(nodes[k].needs[n] == NONE || there[nodes[k].needs[n]]);
            if (nodes[k].beside && k < t) assert_true(r[nodes[k].needs[0]] > 0.5);
            there[k] = true;
            ticks += nodes[k].cost;
            for (int i = 0; i < count; i++)
                if (there[i]) held += nodes[i].bytes;
            assert_true(held <= budget(chain) + 1e-6);
            for (int i = 0; i <= t; i++)
                if (there[i] && !wanted(nodes, count, r, next_s, t, k, i)) there[i] = false;
        }
        assert_true(r[t] > 0.5);
    }
    return llround(ticks);
}
