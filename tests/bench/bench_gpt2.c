/*
 * A whole training step of a resident GPT-2, compared with only its matrix products.
 *
 *     bench_gpt2 [--network gpt2] [--threads 2] [--microbatch 4] [--sequence 64] [--rounds 9]
 *
 * No plan, no device: unit_compute() over the embedding and one shard of the rest, AdamW. A round is one step and,
 * right after it, the products of its linear layers by the same library with the same operands in the same places, so
 * that both see the same machine. Prints medians, with half the distance between the quartiles as the spread; the ratio
 * is computed per round. GFLOP/s count the linear layers' products, in both lines. Then some more rounds run with a
 * clock around every kernel.
 *
 * The goal: step / products <= 1.3 for GPT-2 124M at B 4, T 64 and at B 1, T 1024.
 */
#define KERNELS_NUMBER float
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "base/process/clock.h"
#include "exec/device/environment.h"
#include "exec/files/weights.h"
#include "tests/support/exec/support_gpt2.h"

/* --- statistics ------------------------------------------------------------------------------- */

enum { ROUNDS_MAX = 1000 };

static double quantile(const double *values, int count, double q)
{
    double sorted[ROUNDS_MAX];
    memcpy(sorted, values, (size_t)count * sizeof *values);
    qsort(sorted, (size_t)count, sizeof *sorted, order_double);
    double at = q * (count - 1);
    int low = (int)at, high = low + 1 < count ? low + 1 : low;
    return sorted[low] + (at - low) * (sorted[high] - sorted[low]);
}

static double spread(const double *values, int count)
{
    return (quantile(values, count, 0.75) - quantile(values, count, 0.25)) / 2;
}

static void print_times(const char *what, const double *seconds, int count, double flops)
{
    double median = quantile(seconds, count, 0.5);
    printf("%-10s %8.1f ms +- %4.1f %%  (best %8.1f)  %6.1f GFLOP/s\n", what, median * 1e3,
           100 * spread(seconds, count) / median, quantile(seconds, count, 0) * 1e3,
           flops / median / 1e9);
}

/* --- products --------------------------------------------------------------------------------- */

struct shape {
    int64_t m, n, k; /* y(m,n) = x(m,k) w */
    bool in_out;
};

/* Forward, input and weight products of one linear layer; operands from the trainer's memory. */
static double linear_products(const struct kernels *k, const struct shape *s, float *w, float *dw,
                              float *x, float *y)
{
    k->linear_forward(k, y, x, w, NULL, s->m, s->n, s->k, s->in_out);
    k->linear_input(k, x, y, w, s->m, s->n, s->k, s->in_out, false);
    k->linear_weight(k, dw, NULL, y, x, s->m, s->n, s->k, s->in_out, 0);
    return 6.0 * (double)s->m * (double)s->n * (double)s->k;
}

static double all_products(const struct trainer *trainer, const struct kernels *k, float *x,
                           float *y, float *dw)
{
    const struct network *n = &trainer->job.network;
    int64_t rows = (int64_t)(trainer->job.microbatch * trainer->job.sequence);
    int64_t c = (int64_t)n->width, f = (int64_t)n->ff_width, v = (int64_t)n->vocabulary;
    const struct shape shapes[] = {{rows, 3 * c, c, true}, {rows, c, c, true}, {rows, f, c, true},
                                   {rows, c, f, true}};
    static const char *const names[] = {"attn.c_attn", "attn.c_proj", "mlp.c_fc", "mlp.c_proj"};
    double flops = 0;
    for (uint64_t block = 0; block < n->blocks; block++)
        for (int i = 0; i < 4; i++) {
            char name[64];
            uint64_t count;
            snprintf(name, sizeof name, "h.%d.%s.weight", (int)block, names[i]);
            float *w = trainer_tensor(trainer, name, &count);
            flops += linear_products(k, &shapes[i], w, dw, x, y);
        }
    struct shape head = {rows, v, c, false};
    return flops + linear_products(k, &head, trainer->states[0], trainer->table_gradient, x, y);
}

/* --- a clock around every kernel -------------------------------------------------------------- */

enum timed {
    TIMED_FORWARD, TIMED_INPUT, TIMED_WEIGHT, TIMED_HEAD, TIMED_ATTENTION, TIMED_ATTENTION_BACK,
    TIMED_NORM, TIMED_NORM_BACK, TIMED_GELU, TIMED_GELU_BACK, TIMED_RESIDUAL, TIMED_LOSS,
    TIMED_UPDATE, TIMED_EMBED, TIMED_EMBED_UPDATE, TIMED_COUNT
};
static const char *const timed_names[TIMED_COUNT] = {
    "linear forward", "linear input", "linear weight", "head products", "attention forward",
    "attention backward", "norm forward", "norm backward", "gelu forward", "gelu backward",
    "residual", "loss", "update", "embed forward", "embed update"};

static const struct kernels *inner;
static double timed_s[TIMED_COUNT], timed_from;
static int64_t vocabulary;

static void begin(void)
{
    timed_from = clock_s();
}

static void end(enum timed what)
{
    timed_s[what] += clock_s() - timed_from;
}

static void timed_linear_forward(const struct kernels *k, float *y, const float *x, const float *w,
                                 const float *bias, int64_t m, int64_t n, int64_t kk, bool in_out)
{
    (void)k;
    begin();
    inner->linear_forward(inner, y, x, w, bias, m, n, kk, in_out);
    end(n == vocabulary ? TIMED_HEAD : TIMED_FORWARD);
}

static void timed_linear_input(const struct kernels *k, float *dx, const float *dy, const float *w,
                               int64_t m, int64_t n, int64_t kk, bool in_out, bool accumulate)
{
    (void)k;
    begin();
    inner->linear_input(inner, dx, dy, w, m, n, kk, in_out, accumulate);
    end(n == vocabulary ? TIMED_HEAD : TIMED_INPUT);
}

static void timed_linear_weight(const struct kernels *k, float *dw, float *dbias, const float *dy,
                                const float *x, int64_t m, int64_t n, int64_t kk, bool in_out,
                                uint32_t add)
{
    (void)k;
    begin();
    inner->linear_weight(inner, dw, dbias, dy, x, m, n, kk, in_out, add);
    end(n == vocabulary ? TIMED_HEAD : TIMED_WEIGHT);
}

static void timed_embed_forward(const struct kernels *k, float *x, const float *rows,
                                const int32_t *tokens, int64_t stride, int64_t b, int64_t t,
                                int64_t c, int64_t v, int64_t first, int64_t count)
{
    (void)k;
    begin();
    inner->embed_forward(inner, x, rows, tokens, stride, b, t, c, v, first, count);
    end(TIMED_EMBED);
}

static void timed_embed_update(const struct kernels *k, const struct kernel_parameters *rows,
                               const float *head, const float *dx, const int32_t *tokens,
                               int64_t stride, int64_t b, int64_t t, int64_t c, int64_t v,
                               int64_t first, int64_t count, const struct job_optimizer *optimizer,
                               uint64_t step, int64_t parts, float *scratch)
{
    (void)k;
    begin();
    inner->embed_update(inner, rows, head, dx, tokens, stride, b, t, c, v, first, count,
                        optimizer, step, parts, scratch);
    end(TIMED_EMBED_UPDATE);
}

static void timed_norm_forward(const struct kernels *k, float *out, float *sum, float *stats,
                               const float *x, const float *y, const float *w, const float *b,
                               int64_t r, int64_t c, float epsilon)
{
    (void)k;
    begin();
    inner->norm_forward(inner, out, sum, stats, x, y, w, b, r, c, epsilon);
    end(TIMED_NORM);
}

static void timed_norm_backward(const struct kernels *k, float *dx, float *dw, float *db,
                                const float *dout, const float *x, const float *stats,
                                const float *w, const float *added, int64_t r, int64_t c)
{
    (void)k;
    begin();
    inner->norm_backward(inner, dx, dw, db, dout, x, stats, w, added, r, c);
    end(TIMED_NORM_BACK);
}

static void timed_attention_forward(const struct kernels *k, const struct kernel_attention *attention)
{
    (void)k;
    begin();
    inner->attention_forward(inner, attention);
    end(TIMED_ATTENTION);
}

static void timed_attention_backward(const struct kernels *k, const struct kernel_attention *attention)
{
    (void)k;
    begin();
    inner->attention_backward(inner, attention);
    end(TIMED_ATTENTION_BACK);
}

static void timed_gelu_forward(const struct kernels *k, float *y, const float *x, int64_t n,
                               bool tanh_form)
{
    (void)k;
    begin();
    inner->gelu_forward(inner, y, x, n, tanh_form);
    end(TIMED_GELU);
}

static void timed_gelu_backward(const struct kernels *k, float *dx, const float *dy,
                                const float *x, int64_t n, bool tanh_form)
{
    (void)k;
    begin();
    inner->gelu_backward(inner, dx, dy, x, n, tanh_form);
    end(TIMED_GELU_BACK);
}

static void timed_residual(const struct kernels *k, float *z, const float *x, const float *y,
                           int64_t n)
{
    (void)k;
    begin();
    inner->residual(inner, z, x, y, n);
    end(TIMED_RESIDUAL);
}

static void timed_loss(const struct kernels *k, double *loss, float *logits,
                       const int32_t *tokens, int64_t stride, int64_t b, int64_t t, int64_t v,
                       struct kernel_loss_rows rows)
{
    (void)k;
    begin();
    inner->loss(inner, loss, logits, tokens, stride, b, t, v, rows);
    end(TIMED_LOSS);
}

static void timed_update(const struct kernels *k, const struct kernel_parameters *parameters,
                         const float *g, int64_t n, const struct job_optimizer *optimizer, bool decays,
                         uint64_t step)
{
    (void)k;
    begin();
    inner->update(inner, parameters, g, n, optimizer, decays, step);
    end(TIMED_UPDATE);
}

static struct kernels timed_kernels(const struct kernels *kernels)
{
    inner = kernels;
    return (struct kernels){.name = "timed",
                            .context = kernels->context,
                            .threads = kernels->threads,
                            .linear_forward = timed_linear_forward,
                            .linear_input = timed_linear_input,
                            .linear_weight = timed_linear_weight,
                            .embed_forward = timed_embed_forward,
                            .embed_update = timed_embed_update,
                            .norm_forward = timed_norm_forward,
                            .norm_backward = timed_norm_backward,
                            .attention_forward = timed_attention_forward,
                            .attention_backward = timed_attention_backward,
                            .gelu_forward = timed_gelu_forward,
                            .gelu_backward = timed_gelu_backward,
                            .residual = timed_residual,
                            .loss = timed_loss,
                            .update = timed_update};
}

/* --- rounds ----------------------------------------------------------------------------------- */

struct settings {
    const char *network;
    uint32_t threads;
    uint64_t microbatch, sequence;
    int rounds;
};

static void random_batch(struct trainer *trainer)
{
    uint64_t count = trainer->job.microbatch * (trainer->job.sequence + 1);
    for (uint64_t i = 0; i < count; i++)
        trainer->batch[i] = (int32_t)(i * 7919 % trainer->job.network.vocabulary);
}

static void measure(struct trainer *trainer, const struct kernels *kernels, int rounds)
{
    const struct network *n = &trainer->job.network;
    uint64_t rows = trainer->job.microbatch * trainer->job.sequence;
    uint64_t widest = n->vocabulary > n->ff_width ? n->vocabulary : n->ff_width;
    float *x = calloc(rows * n->ff_width, sizeof *x), *y = calloc(rows * widest, sizeof *y);
    float *dw = calloc(n->width * n->ff_width, sizeof *dw);
    double steps[ROUNDS_MAX], products[ROUNDS_MAX], ratios[ROUNDS_MAX], flops = 0;
    if (!x || !y || !dw) abort();
    uint64_t minibatch = 0;
    for (int round = -2; round < rounds; round++) { /* two to warm up */
        double start_s = clock_s();
        trainer_step(trainer, kernels, minibatch++);
        double middle_s = clock_s();
        flops = all_products(trainer, kernels, x, y, dw);
        double end_s = clock_s();
        if (round < 0) continue;
        steps[round] = middle_s - start_s;
        products[round] = end_s - middle_s;
        ratios[round] = steps[round] / products[round];
    }
    print_times("step", steps, rounds, flops);
    print_times("products", products, rounds, flops);
    printf("ratio      %8.3f    +- %5.3f    (best over best %.3f)    loss %.4f\n",
           quantile(ratios, rounds, 0.5), spread(ratios, rounds),
           quantile(steps, rounds, 0) / quantile(products, rounds, 0), trainer->loss);

    vocabulary = (int64_t)n->vocabulary;
    struct kernels timed = timed_kernels(kernels);
    int timed_rounds = rounds < 3 ? rounds : 3;
    double start_s = clock_s(), sum_s = 0;
    for (int round = 0; round < timed_rounds; round++) trainer_step(trainer, &timed, minibatch++);
    double step_s = (clock_s() - start_s) / timed_rounds;
    printf("\nkernel              ms a step    share\n");
    for (int i = 0; i < TIMED_COUNT; i++) {
        double s = timed_s[i] / timed_rounds;
        sum_s += s;
        printf("%-18s %10.2f   %5.1f %%\n", timed_names[i], s * 1e3, 100 * s / step_s);
    }
    printf("%-18s %10.2f   %5.1f %%\n", "between", (step_s - sum_s) * 1e3,
           100 * (step_s - sum_s) / step_s);
    free(x);
    free(y);
    free(dw);
}

static bool parse(int count, char **arguments, struct settings *settings)
{
    for (int i = 1; i + 1 < count; i += 2) {
        const char *name = arguments[i], *value = arguments[i + 1];
        unsigned long number = strtoul(value, NULL, 10);
        if (strcmp(name, "--network") == 0) settings->network = value;
        else if (number == 0) return false;
        else if (strcmp(name, "--threads") == 0) settings->threads = (uint32_t)number;
        else if (strcmp(name, "--microbatch") == 0) settings->microbatch = number;
        else if (strcmp(name, "--sequence") == 0) settings->sequence = number;
        else if (strcmp(name, "--rounds") == 0 && number <= ROUNDS_MAX) settings->rounds = (int)number;
        else return false;
    }
    return count % 2 == 1;
}

int main(int argument_count, char **arguments)
{
    environment_settle(arguments);
    struct settings settings = {"gpt2", 2, 4, 64, 9};
    struct error err = {0};
    if (!parse(argument_count, arguments, &settings)) {
        fprintf(stderr, "usage: bench_gpt2 [--network NAME] [--threads N] [--microbatch N] "
                        "[--sequence N] [--rounds N]\n");
        return 2;
    }
    struct arena arena = {0};
    struct job job = {.name = "bench",
                      .microbatch = settings.microbatch, .microbatches = 1,
                      .sequence = settings.sequence,
                      .seed = 1,
                      .optimizer = {.kind = OPTIMIZER_ADAMW,
                                    .learning_rate = 1e-4,
                                    .weight_decay = 0.1,
                                    .beta1 = 0.9,
                                    .beta2 = 0.95,
                                    .epsilon = 1e-8}};
    struct kernels *kernels = NULL;
    if (network_find(settings.network, &arena, &job.network, &err) != STATUS_OK ||
        kernels_host_create(settings.threads, &kernels, &err) != STATUS_OK) {
        fprintf(stderr, "bench_gpt2: %s\n", err.text);
        return error_exit_code(err.status);
    }
    printf("%s, B %llu, T %llu, AdamW, %d rounds\n%s\n\n", job.network.name,
           (unsigned long long)job.microbatch, (unsigned long long)job.sequence, settings.rounds,
           kernels_host_text());

    struct trainer trainer = {0};
    kernels_host_attach(kernels);
    trainer_init(&trainer, &job,
                 &(struct trainer_options){.blocks_per_shard = job.network.blocks, .slices = 1});
    for (uint32_t s = 0; s < trainer.shard_count; s++)
        weights_init(&job, &trainer.state_tables[s], trainer.states[s]);
    random_batch(&trainer);
    measure(&trainer, kernels, settings.rounds);
    trainer_release(&trainer);
    kernels_host_destroy(kernels);
    arena_release(&arena);
    return 0;
}
