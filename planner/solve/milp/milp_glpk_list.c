/*
 * Depth first through the listed columns: solve the relaxation; give up above the cutoff; fix columns whose other value
 * would cost too much (by reduced cost); decide on the column that probably costs most either way (by earlier
 * decisions; if all are whole, on the cheapest); at last report the setting. Every program starts from the previous
 * basis.
 *
 * Excluding each setting by a row, and letting GLPK go on, took three hundred times as long for 78 settings.
 *
 * Source: pseudo-costs, Benichou et al., Mathematical Programming 1 (1971).
 */
#include "base/alloc.h"
#include "planner/solve/milp/milp_glpk.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/process/clock.h"

static const double whole_within = 1e-5; /* GLPK's own tolerance */

struct listing_held {
    int column;
    double low, high; /* its bounds before */
};

struct decision {
    int column;
    uint32_t held; /* before it */
    double value, was, objective; /* the column's and the program's before */
    bool second;   /* the other value is done */
};

/* Rises of the objective by decisions on a column, relative to the distance of its value; down, up. */
struct gains {
    double sum[2];
    uint32_t count[2];
};

struct milp_listing {
    struct milp_glpk_listing *of;
    struct gains *gains;    /* (columns + 1) */
    struct listing_held *held;      /* (listed_count) held by decisions and reduced costs, in order */
    struct decision *path;  /* (listed_count) */
    uint8_t *setting;       /* (listed_count) */
    uint32_t held_count, depth, told;
    glp_smcp how;
};

enum listing_node { NODE_OPEN, NODE_CLOSED, NODE_UNKNOWN };

static enum listing_node node_of(const struct milp_listing *l, int code)
{
    int status = glp_get_status(l->of->lp);
    if (code == GLP_EOBJUL || (code == 0 && (status == GLP_NOFEAS || status == GLP_INFEAS))) return NODE_CLOSED;
    if (code != 0 || status != GLP_OPT) return NODE_UNKNOWN;
    return glp_get_obj_val(l->of->lp) <= l->how.obj_ul ? NODE_OPEN : NODE_CLOSED;
}

/* Learns from the program after the last decision. */
static void learn(struct milp_listing *l, enum listing_node node)
{
    if (l->depth == 0) return;
    const struct decision *last = &l->path[l->depth - 1];
    double off = fabs(last->value - last->was);
    double now = node == NODE_OPEN ? glp_get_obj_val(l->of->lp) : l->how.obj_ul;
    if (off < whole_within || now < last->objective) return;
    struct gains *gains = &l->gains[last->column];
    gains->sum[last->value > 0.5] += (now - last->objective) / off;
    gains->count[last->value > 0.5]++;
}

/* Solves the relaxation; after a failure, once more from a basis of its own. */
static enum listing_node relax_node(struct milp_listing *l)
{
    double left_s = l->of->until_s - clock_s();
    if (!(left_s > 0)) return NODE_UNKNOWN;
    l->how.tm_lim = left_s < 2e6 ? (int)(left_s * 1000) + 1 : INT32_MAX;
    l->how.meth = GLP_DUALP;
    l->of->nodes++;
    enum listing_node node = node_of(l, glp_simplex(l->of->lp, &l->how));
    if (node != NODE_UNKNOWN) learn(l, node);
    if (node != NODE_UNKNOWN || clock_s() >= l->of->until_s) return node;
    glp_adv_basis(l->of->lp, 0);
    l->how.meth = GLP_PRIMAL;
    return node_of(l, glp_simplex(l->of->lp, &l->how));
}

static void hold(struct milp_listing *l, int column, double value)
{
    glp_prob *lp = l->of->lp;
    l->held[l->held_count++] = (struct listing_held){column, glp_get_col_lb(lp, column), glp_get_col_ub(lp, column)};
    glp_set_col_bnds(lp, column, GLP_FX, value, value);
}

/* Releases the columns held after the first `count`. Each goes to the bound at which the basis is dual feasible. */
static void let_go(struct milp_listing *l, uint32_t count)
{
    glp_prob *lp = l->of->lp;
    while (l->held_count > count) {
        const struct listing_held *was = &l->held[--l->held_count];
        glp_set_col_bnds(lp, was->column, milp_glpk_bounds(was->low, was->high), was->low, was->high);
        if (glp_get_col_stat(lp, was->column) != GLP_BS)
            glp_set_col_stat(lp, was->column, glp_get_col_dual(lp, was->column) < 0 ? GLP_NU : GLP_NL);
    }
}

static bool is_held(glp_prob *lp, int column)
{
    return glp_get_col_type(lp, column) == GLP_FX;
}

/* Fixes every column whose change would cost more than the cutoff. */
static void hold_dear(struct milp_listing *l)
{
    glp_prob *lp = l->of->lp;
    double spare = l->how.obj_ul - glp_get_obj_val(lp);
    for (uint32_t i = 0; i < l->of->options->listed_count; i++) {
        int column = (int)l->of->options->listed[i] + 1, status = glp_get_col_stat(lp, column);
        if (is_held(lp, column) || fabs(glp_get_col_dual(lp, column)) <= spare) continue;
        if (status == GLP_NL || status == GLP_NU) hold(l, column, status == GLP_NU ? 1 : 0);
    }
}

/* Estimates the rise of the objective by a decision on a column, for the cheaper value. */
static double guess(const struct milp_listing *l, int column, double x)
{
    const struct gains *gains = &l->gains[column];
    double cost = fabs(glp_get_obj_coef(l->of->lp, column)), least = HUGE_VAL;
    for (uint32_t up = 0; up < 2; up++) {
        double each = gains->count[up] > 0 ? gains->sum[up] / gains->count[up] : cost;
        least = fmin(least, each * (up ? 1 - x : x));
    }
    return least;
}

/* Returns the column to decide on; 0: all are fixed. */
static int undecided(const struct milp_listing *l)
{
    glp_prob *lp = l->of->lp;
    double most = -1, least = HUGE_VAL;
    int fractional = 0, cheapest = 0;
    for (uint32_t i = 0; i < l->of->options->listed_count; i++) {
        int column = (int)l->of->options->listed[i] + 1;
        if (is_held(lp, column)) continue;
        double x = glp_get_col_prim(lp, column), price = fabs(glp_get_col_dual(lp, column));
        if (x > whole_within && x < 1 - whole_within && guess(l, column, x) > most) {
            most = guess(l, column, x);
            fractional = column;
        }
        if (price < least) {
            least = price;
            cheapest = column;
        }
    }
    return fractional ? fractional : cheapest;
}

static void report_setting(struct milp_listing *l)
{
    const struct milp_options *options = l->of->options;
    struct milp_report report = {.kind = MILP_REPORT_SETTING, .bound = glp_get_obj_val(l->of->lp),
                                 .nodes = l->of->nodes};
    for (uint32_t i = 0; i < options->listed_count; i++)
        l->setting[i] = glp_get_col_lb(l->of->lp, (int)options->listed[i] + 1) > 0.5;
    milp_glpk_send(l->of->pipe, &report, sizeof report);
    milp_glpk_send(l->of->pipe, l->setting, options->listed_count);
    l->told++;
}

static void decide(struct milp_listing *l, int column)
{
    struct decision *next = &l->path[l->depth++];
    double x = glp_get_col_prim(l->of->lp, column);
    *next = (struct decision){column, l->held_count, x > 0.5 ? 1 : 0, x, glp_get_obj_val(l->of->lp), false};
    hold(l, column, next->value);
}

/* Returns to the deepest decision with another value left. Returns false if there is none. */
static bool turn_back(struct milp_listing *l)
{
    for (; l->depth > 0; l->depth--) {
        struct decision *last = &l->path[l->depth - 1];
        let_go(l, last->held);
        if (last->second) continue;
        last->second = true;
        last->value = 1 - last->value;
        hold(l, last->column, last->value);
        return true;
    }
    return false;
}

/* Returns MILP_INFEASIBLE if no setting is left, MILP_STOPPED if some may be. */
static enum milp_status go_through(struct milp_listing *l)
{
    do {
        enum listing_node node = relax_node(l);
        if (node == NODE_UNKNOWN) return MILP_STOPPED;
        for (int column; node == NODE_OPEN && l->told < l->of->options->list_max;) {
            hold_dear(l);
            column = undecided(l);
            if (column == 0) {
                report_setting(l);
                break;
            }
            decide(l, column);
            node = relax_node(l);
            if (node == NODE_UNKNOWN) return MILP_STOPPED;
        }
        if (l->told == l->of->options->list_max) return MILP_STOPPED;
    } while (turn_back(l));
    return MILP_INFEASIBLE;
}

enum milp_status milp_glpk_list(struct milp_glpk_listing *listing)
{
    const struct milp_options *options = listing->options;
    size_t columns = (size_t)glp_get_num_cols(listing->lp) + 1, listed = options->listed_count + 1u;
    struct milp_listing l = {.of = listing,
                                       .gains = alloc_zeroed(columns, sizeof *l.gains),
                                       .held = alloc_zeroed(listed, sizeof *l.held),
                                       .path = alloc_zeroed(listed, sizeof *l.path),
                                       .setting = alloc_zeroed(listed, sizeof *l.setting)};
    if (!l.gains || !l.held || !l.path || !l.setting) _exit(3);
    glp_init_smcp(&l.how);
    l.how.msg_lev = GLP_MSG_OFF;
    l.how.obj_ul = options->cutoff + 1e-6 * (1 + fabs(options->cutoff));
    glp_adv_basis(listing->lp, 0);
    enum milp_status status = go_through(&l);
    free(l.gains);
    free(l.held);
    free(l.path);
    free(l.setting);
    return status;
}
