/*
 * This file runs in a child process (milp_solve.c): GLPK ends the process on misuse and prints where it likes.
 *
 * Its cuts now and then make an internal check fail (5.0 asks itself for a problem of no columns). Then the program is
 * solved again without cuts and presolver; if nothing is left to leave out, the error hook reports and exits. The
 * callback reports bounds and solutions. A start solution is passed when GLPK first asks for a heuristic one; GLPK
 * accepts any vector there, so it was checked before.
 */
#include <errno.h>
#include <glpk.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/process/clock.h"
#include "base/process/launch.h"
#include "base/try.h"
#include "planner/solve/milp/milp_glpk.h"

/* --- the model ------------------------------------------------------------------------------- */

/* GLPK counts from 1. */
static glp_prob *load(const struct milp *m)
{
    glp_prob *lp = glp_create_prob();
    glp_set_prob_name(lp, m->name);
    glp_set_obj_dir(lp, GLP_MIN);
    glp_set_obj_name(lp, "objective");
    if (m->column_count > 0) glp_add_cols(lp, (int)m->column_count);
    if (m->row_count > 0) glp_add_rows(lp, (int)m->row_count);
    for (size_t c = 0; c < m->column_count; c++) {
        const struct milp_column *column = &m->columns[c];
        int at = (int)c + 1;
        glp_set_col_name(lp, at, column->name);
        bool binary = column->whole && column->low == 0 && column->high == 1;
        if (binary) glp_set_col_kind(lp, at, GLP_BV);
        else glp_set_col_bnds(lp, at, milp_glpk_bounds(column->low, column->high), column->low, column->high);
        if (column->whole && !binary) glp_set_col_kind(lp, at, GLP_IV);
        glp_set_obj_coef(lp, at, column->cost);
    }
    size_t longest = 0;
    for (size_t r = 0; r < m->row_count; r++) {
        size_t length = milp_row_end(m, r) - m->rows[r].first_term;
        if (length > longest) longest = length;
    }
    int *index = alloc_zeroed(longest + 1, sizeof *index);
    double *value = alloc_zeroed(longest + 1, sizeof *value);
    if (!index || !value) _exit(3);
    for (size_t r = 0; r < m->row_count; r++) {
        const struct milp_row *row = &m->rows[r];
        int length = 0;
        for (size_t t = row->first_term; t < milp_row_end(m, r); t++) {
            index[++length] = (int)m->terms[t].column + 1;
            value[length] = m->terms[t].value;
        }
        glp_set_row_name(lp, (int)r + 1, row->name);
        glp_set_row_bnds(lp, (int)r + 1, milp_glpk_bounds(row->low, row->high), row->low, row->high);
        glp_set_mat_row(lp, (int)r + 1, length, index, value);
    }
    free(index);
    free(value);
    return lp;
}

/* --- reporting ------------------------------------------------------------------------------- */

struct milp_glpk_child {
    const struct milp *milp;
    const struct milp_options *options;
    int pipe;
    double until_s;
    glp_prob *lp;
    bool handed_in;
    uint64_t nodes;
    double bound;
    double *x; /* (columns + 1) */
    char message[80]; /* the last message that says more than a place in GLPK */
    bool plainer;     /* a plainer way to solve it is left */
    jmp_buf gave_up;
};

static void on_error(void *info)
{
    struct milp_glpk_child *child = info;
    if (child->plainer) longjmp(child->gave_up, 1);
    struct milp_report report = {.kind = MILP_REPORT_FAILED};
    snprintf(report.text, sizeof report.text, "GLPK gave up on an internal check (%s)", child->message);
    milp_glpk_send(child->pipe, &report, sizeof report);
    _exit(3);
}

static int on_message(void *info, const char *text)
{
    struct milp_glpk_child *child = info;
    if (strncmp(text, "Error detected", strlen("Error detected")) != 0)
        snprintf(child->message, sizeof child->message, "%.*s", (int)strcspn(text, "\n"), text);
    return 1; /* printed, as far as GLPK knows */
}

static void hook(struct milp_glpk_child *child)
{
    glp_term_hook(on_message, child);
    glp_error_hook(on_error, child);
}

static void report_solution(const struct milp_glpk_child *c)
{
    struct milp_report report = {.kind = MILP_REPORT_SOLUTION, .nodes = c->nodes};
    milp_glpk_send(c->pipe, &report, sizeof report);
    milp_glpk_send(c->pipe, c->x + 1, c->milp->column_count * sizeof *c->x);
}

/* Returns the proven bound. Nodes no better than the best solution stay in the tree for a while. */
static double proven_bound(glp_tree *tree, int best)
{
    double bound = glp_ios_node_bound(tree, best);
    glp_prob *lp = glp_ios_get_prob(tree);
    return glp_mip_status(lp) == GLP_FEAS ? fmin(bound, glp_mip_obj_val(lp)) : bound;
}

static void on_tree(glp_tree *tree, void *info)
{
    struct milp_glpk_child *c = info;
    int total = 0;
    int best = glp_ios_best_node(tree);
    glp_ios_tree_size(tree, NULL, NULL, &total);
    c->nodes = (uint64_t)total;
    if (best != 0) {
        double bound = proven_bound(tree, best);
        if (bound > c->bound && bound < 1e300) {
            struct milp_report report = {.kind = MILP_REPORT_BOUND, .bound = c->bound = bound, .nodes = c->nodes};
            milp_glpk_send(c->pipe, &report, sizeof report);
        }
    }
    if (glp_ios_reason(tree) == GLP_IBINGO && c->options->incumbent) { /* columns as we know them */
        glp_prob *lp = glp_ios_get_prob(tree);
        for (size_t k = 1; k <= c->milp->column_count; k++) c->x[k] = glp_get_col_prim(lp, (int)k);
        report_solution(c);
    }
    if (glp_ios_reason(tree) == GLP_IHEUR && c->options->incumbent && !c->handed_in) {
        c->handed_in = true;
        memcpy(c->x + 1, c->options->incumbent, c->milp->column_count * sizeof *c->x);
        glp_ios_heur_sol(tree, c->x);
    }
    bool many = c->options->nodes_max > 0 && c->nodes >= c->options->nodes_max;
    if (many || clock_s() >= c->until_s) glp_ios_terminate(tree);
}

/* Code 0 does not mean "optimal", and there are two ways to say "infeasible". */
static struct milp_report ending(const struct milp_glpk_child *c, int code, int status)
{
    struct milp_report report = {.kind = MILP_REPORT_END, .status = MILP_STOPPED, .bound = c->bound,
                                 .nodes = c->nodes};
    if (code == GLP_ENOPFS || (code == 0 && status == GLP_NOFEAS)) report.status = MILP_INFEASIBLE;
    else if (code == 0 && status == GLP_OPT) report.status = MILP_OPTIMAL;
    else if (code != 0 && code != GLP_ETMLIM && code != GLP_ESTOP && code != GLP_EMIPGAP) {
        report.kind = MILP_REPORT_FAILED;
        snprintf(report.text, sizeof report.text, "GLPK ended with code %d", code);
    }
    return report;
}

static int left_ms(const struct milp_glpk_child *c)
{
    double left_s = c->until_s - clock_s();
    return left_s < 2e6 ? (int)(fmax(left_s, 0) * 1000) + 1 : INT32_MAX;
}

/* Sends the values of all rows after a report; 0 without an optimum. */
static void report_duals(const struct milp_glpk_child *c, bool optimal)
{
    struct milp_report report = {.kind = MILP_REPORT_DUALS};
    milp_glpk_send(c->pipe, &report, sizeof report);
    for (size_t r = 1; r <= c->milp->row_count; r++) {
        double dual = optimal ? glp_get_row_dual(c->lp, (int)r) : 0;
        milp_glpk_send(c->pipe, &dual, sizeof dual);
    }
}

/* Solves the variants, each from the previous one's basis: only bounds change, so it stays dual feasible. Columns then
 * return to their own bounds. */
static void solve_variants(const struct milp_glpk_child *c, glp_smcp *how)
{
    const struct milp_options *options = c->options;
    how->meth = GLP_DUALP;
    for (uint32_t v = 0; v < options->variant_count; v++) {
        const struct milp_fixing *held = options->fixings + (size_t)v * options->fixed_count;
        if (clock_s() >= c->until_s) return;
        how->tm_lim = left_ms(c);
        for (uint32_t k = 0; k < options->fixed_count; k++)
            glp_set_col_bnds(c->lp, (int)held[k].column + 1, GLP_FX, held[k].value, held[k].value);
        int code = glp_simplex(c->lp, how);
        if (code == GLP_ETMLIM) return;
        report_duals(c, code == 0 && glp_get_status(c->lp) == GLP_OPT);
        for (uint32_t k = 0; k < options->fixed_count; k++) {
            const struct milp_column *own = &c->milp->columns[held[k].column];
            glp_set_col_bnds(c->lp, (int)held[k].column + 1, milp_glpk_bounds(own->low, own->high), own->low,
                             own->high);
        }
    }
}

/* Solves the linear program only. */
_Noreturn static void relax(struct milp_glpk_child *c)
{
    struct milp_report end = {.kind = MILP_REPORT_END, .status = MILP_STOPPED};
    glp_smcp how;
    glp_init_smcp(&how);
    how.msg_lev = GLP_MSG_OFF;
    how.tm_lim = left_ms(c);
    glp_adv_basis(c->lp, 0);
    int code = glp_simplex(c->lp, &how), status = glp_get_status(c->lp);
    if (code == 0 && status == GLP_OPT) {
        struct milp_report bound = {.kind = MILP_REPORT_BOUND, .bound = glp_get_obj_val(c->lp)};
        milp_glpk_send(c->pipe, &bound, sizeof bound);
        report_duals(c, true);
        solve_variants(c, &how);
        end.status = MILP_OPTIMAL;
    } else if (code == 0 && status == GLP_NOFEAS) {
        end.status = MILP_INFEASIBLE;
    }
    milp_glpk_send(c->pipe, &end, sizeof end);
    _exit(0);
}

/* --- listing --------------------------------------------------------------------------------- */

_Noreturn static void list(struct milp_glpk_child *c)
{
    struct milp_glpk_listing listing = {c->lp, c->options, c->pipe, c->until_s, 0};
    struct milp_report report = {.kind = MILP_REPORT_END, .status = milp_glpk_list(&listing), .bound = c->bound};
    report.nodes = listing.nodes;
    milp_glpk_send(c->pipe, &report, sizeof report);
    _exit(0);
}

/* --- minimising ------------------------------------------------------------------------------ */

/* Returns GLPK's code; `plain`: without the features in which its internal checks fail. */
static int minimise(struct milp_glpk_child *c, bool plain)
{
    const struct milp_options *options = c->options;
    glp_iocp how;
    glp_init_iocp(&how);
    how.msg_lev = GLP_MSG_OFF;
    how.br_tech = GLP_BR_PCH; /* pseudo-costs: best on the adjacency formulation */
    how.presolve = plain || options->incumbent ? GLP_OFF : GLP_ON;
    how.cb_func = on_tree;
    how.cb_info = c;
    how.tm_lim = left_ms(c);
    if (options->cuts && !plain) how.gmi_cuts = how.mir_cuts = how.cov_cuts = how.clq_cuts = GLP_ON;
    c->plainer = how.presolve == GLP_ON || how.clq_cuts == GLP_ON;
    int code = 0;
    if (how.presolve == GLP_OFF) { /* without the presolver GLPK wants an optimal basis of the LP */
        glp_smcp first;
        glp_init_smcp(&first);
        first.msg_lev = GLP_MSG_OFF;
        first.tm_lim = how.tm_lim;
        glp_adv_basis(c->lp, 0);
        code = glp_simplex(c->lp, &first);
        if (code == 0 && glp_get_status(c->lp) == GLP_NOFEAS) code = GLP_ENOPFS;
    }
    return code == 0 ? glp_intopt(c->lp, &how) : code;
}

_Noreturn void milp_glpk_child(const struct milp *milp, const struct milp_options *options, int pipe)
{
    static struct milp_glpk_child c; /* survives the jump */
    c = (struct milp_glpk_child){.milp = milp, .options = options, .pipe = pipe, .bound = -HUGE_VAL,
                                 .until_s = clock_s() + options->limit_s};
    c.x = alloc_zeroed(milp->column_count + 1, sizeof *c.x);
    if (!c.x) _exit(3);
    volatile bool again = false;
    if (setjmp(c.gave_up) != 0) { /* after an error GLPK must be initialised again */
        again = true;
        glp_free_env();
        c.handed_in = false;
    }
    hook(&c);
    c.lp = load(milp);
    if (options->relaxed) relax(&c);
    if (options->listed) list(&c);
    int code = minimise(&c, again);
    int status = glp_mip_status(c.lp);
    if (code != GLP_ENOPFS && (status == GLP_OPT || status == GLP_FEAS)) {
        for (size_t k = 1; k <= milp->column_count; k++) c.x[k] = glp_mip_col_val(c.lp, (int)k);
        report_solution(&c);
    }
    struct milp_report report = ending(&c, code, status);
    milp_glpk_send(pipe, &report, sizeof report);
    _exit(0);
}

/* --- files ----------------------------------------------------------------------------------- */

struct milp_glpk_writing {
    const struct milp *milp;
    enum milp_file kind;
    const char *path;
};

static void write_model(void *context)
{
    const struct milp_glpk_writing *w = context;
    struct milp_glpk_child c = {.pipe = -1};
    hook(&c);
    glp_prob *lp = load(w->milp);
    errno = 0;
    int code = w->kind == MILP_LP ? glp_write_lp(lp, NULL, w->path) : glp_write_mps(lp, GLP_MPS_FILE, NULL, w->path);
    _exit(code == 0 ? 0 : 100 + (errno > 0 && errno < 100 ? errno : 0));
}

enum status milp_glpk_write(const struct milp *milp, enum milp_file kind, const char *path,
                            struct error *err)
{
    if (milp->err.status) return error_set(err, milp->err.status, "%s", milp->err.text);
    char temporary[4096];
    int length = snprintf(temporary, sizeof temporary, "%s.tmp-%ld", path, (long)getpid());
    if (length >= (int)sizeof temporary)
        return error_set(err, STATUS_LIMIT, "the name of a file is too long (limit is %zu bytes)",
                         sizeof temporary);
    static const struct launch how = {.death_signal = SIGKILL, .streams = {LAUNCH_SAME, LAUNCH_SAME, LAUNCH_SAME}};
    struct milp_glpk_writing writing = {milp, kind, temporary};
    struct launch_end end;
    pid_t pid;
    const int reason = launch_copy(&how, write_model, &writing, &pid);
    if (reason != 0) return launch_fail("GLPK", reason, err);
    TRY(launch_wait(pid, &end, err));
    if (end.signal == 0 && end.exit_code == 0 && rename(temporary, path) == 0) return STATUS_OK;
    if (end.signal == 0 && end.exit_code >= 100) errno = end.exit_code - 100;
    error_io(err, "cannot write '%s'", path);
    unlink(temporary);
    return err->status;
}
