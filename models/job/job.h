/*
 * Jobs: training runs of networks, as described in jobs.json.
 *
 *     {"spillway_jobs": 1,
 *      "defaults": {"sequence": 64, "microbatch": 4, "minibatches": 20},
 *      "jobs": [{"name": "a", "network": "gpt2", "optimizer": {"kind": "adamw", "lr": 3e-4},
 *                "seed": 1, "data": "corpus.txt"}]}
 *
 * `network` is a preset, a path (relative to the jobs file), a config.json object, or {"model_type": "profile",
 * "layers": [...]}. "defaults" holds any keys of a job except the name. A job with "count": n stands for n jobs NAME-1
 * ... NAME-n with seeds seed, seed + 1 and so on.
 *
 *   key           default                        meaning
 *   name          job-1, job-2, ...              unique; the default is the place in the file
 *   network       -
 *   sequence      the network's positions        tokens per sample; 1 for a profile; ViT: always its own tokens
 *   decoder_sequence  as `sequence`              tokens per sample of t5's decoder; its encoder has `sequence`
 *   microbatch    1                              samples per pass
 *   microbatches  1                              microbatches per minibatch, of all replicas together.
 *                                                Their gradients are added up in order. The loss is the mean over
 *                                                the targets of the whole minibatch.
 *                                                Other programs' names: models/job/job_batch.h
 *   minibatches   -                              optimizer steps; or "epochs", of rows: models/jobs/job_rows.h
 *   first_minibatch 0                            steps taken earlier, by a run that was stopped
 *   optimizer     {"kind": "adamw"}              or "sgd"; lr 3e-4, weight_decay 0, beta1 0.9,
 *                                                beta2 0.999, epsilon 1e-8, decay "matrices",
 *                                                momentum 0, nesterov false, clip 0, moments "fp32"
 *                                                (or "bf16"), and a schedule, below
 *   precision     "fp32"                         or "bf16", "bf16-weights": models/kernel/precision.h
 *   gradients     "fp32"                         or "bf16"; weight gradients of a parallel job: models/job/parallel.h
 *   sum           "order"                        or "tree": gradients and losses are added up as a balanced tree over
 *                                                the microbatches (models/job/parallel.h), on one device too
 *   dropout       true                           false: the network's rates of dropout count as 0
 *   seed          1
 *   data          none: seeded random tokens     relative to the jobs file; in a text, a token is a byte,
 *                                                and bert's mask is token 256
 *   tokens        by the vocabulary              "bytes": bytes of a text are tokens even for a network with
 *                                                more than DATA_BYTE_VOCABULARY_MAX tokens
 *   data_format   by the name                    .rows, and what begins as a file of rows, is DATA_ROWS; .bin is
 *                                                DATA_LLMC if it begins with llm.c's magic, else DATA_NANOGPT; any
 *                                                other name is DATA_TEXT.
 *                                                The executor reports missing files.
 *                                                vit, cnn: DATA_FOLDER for a folder; DATA_CIFAR10 if the
 *                                                network takes 3 x 32 x 32 pixels, else DATA_IMAGES
 *   normalize     to -1 to 1                     {"mean", "std"} of images' numbers: models/jobs/job_pixels.h
 *   packing       false                          of rows: as many in a sample as fit
 *   long_rows     "cut"                          rows longer than a sample, or "skip"
 *   weights_in    none                           safetensors: a file, a folder or its index, relative to the jobs file
 *   weights_out   none                           likewise; "{name}" in it stands for the job's name
 *   evaluate      none                           {"every": n, "minibatches": m, "data", "data_format", "share",
 *                                                "split_seed"}: the loss on held-out data, see struct job_evaluation
 *   keep          "last"                         or "best": also the weights of the best evaluation; in plans
 *                                                "best-so-far": for the job that goes on
 *   freeze        none                           layers and tensors that are not trained (models/jobs/job_trained.h)
 *   adapter       none                           trains low-rank adapters of the network, which is frozen; weights_out
 *                                                is then the folder of the adapter
 *   base          none                           a name of the frozen weights: of jobs with the same name they are
 *                                                equal. Without weights_in they come from it, not from the seed
 *   parallel      none                           several devices at once, see models/job/parallel.h
 *   devices       none                           devices reserved for the job while it runs, [2, 3]; for a parallel
 *                                                job in the order of its ranks. Other jobs that name the same
 *                                                devices share them (planner/strategy/reservation.h)
 *   compression   none                           of data that a parallel job sends, see models/cost/compression.h
 */
#ifndef SPILLWAY_MODELS_JOB_JOB_H
#define SPILLWAY_MODELS_JOB_JOB_H

#include "base/arena.h"
#include "models/cost/compression.h"
#include "models/job/job_batch.h"
#include "models/job/memory.h"
#include "models/job/parallel.h"
#include "models/job/pixels.h"
#include "models/network/network.h"
#include "models/network/network_trained.h"

enum { JOB_COUNT_MAX = 16384 }; /* planned in minutes */
enum { JOB_NAME_MAX = 100 }; /* for paths, tables and tracks */

/*
 * Together with NETWORK_*_MAX they keep sizes of a pass within 63 bits. R = B * T is a minibatch's rows; the
 * activations of all layers for them are at most JOB_BYTES_MAX.
 */
#define JOB_MICROBATCH_MAX (UINT64_C(1) << 20)
#define JOB_ROWS_MAX (UINT64_C(1) << 31)
#define JOB_MINIBATCHES_MAX UINT64_C(1000000000)
enum { JOB_EVALUATION_MINIBATCHES_MAX = 10000 }; /* passes are counted in 32 bits */
#define JOB_SEED_MAX ((UINT64_C(1) << 62) - 1)
#define JOB_BYTES_MAX (UINT64_C(1) << 60)

/*
 * Tensors that weight decay shrinks. Matrices are all tensors of two dimensions, also embeddings, as in nanoGPT, llm.c
 * and Hugging Face's Trainer.
 */
enum decay_rule { DECAY_MATRICES, DECAY_ALL, DECAY_RULE_COUNT };
extern const char *const decay_rule_names[DECAY_RULE_COUNT]; /* "matrices", "all" */

/* "schedule": a name or an object with kind, warmup 0, floor 0 and steps (default: the job's). Formulas:
 * models/job/learning_rate.h. */
enum rate_schedule_kind { RATE_CONSTANT, RATE_LINEAR, RATE_COSINE, RATE_SCHEDULE_COUNT };
extern const char *const rate_schedule_names[RATE_SCHEDULE_COUNT]; /* "constant", ... */

struct rate_schedule {
    uint32_t kind;   /* enum rate_schedule_kind */
    uint64_t warmup; /* to the full rate; at most all steps */
    uint64_t steps;  /* to the end of the decay, at least the job's; 0: the job's */
    double floor;    /* in [0, 1]: the final share of the rate */
};

struct job_optimizer {
    uint32_t kind; /* enum optimizer_kind; momentum is "sgd" in files */
    double learning_rate, weight_decay;
    uint32_t decay; /* enum decay_rule */
    double beta1, beta2, epsilon; /* adamw */
    double momentum; /* in (0, 1); 0 for other kinds */
    bool nesterov;   /* momentum */
    struct rate_schedule schedule;
    uint32_t moments; /* enum precision of stored moments, else fp32 */
    double clip; /* limit of the norm of all gradients together; 0: none */
};

enum data_format {
    DATA_TEXT,   /* a token is a byte */
    DATA_LLMC,   /* 256 x int32 header, then uint16 or uint32 tokens */
    DATA_NANOGPT,/* bare uint16 tokens */
    DATA_NONE,   /* seeded random tokens, or images */
    DATA_CIFAR10,/* CIFAR-10's batches: a byte of label, 3 x 32 x 32 bytes */
    DATA_IMAGES, /* a 16-bit label, channels x height x width bytes */
    DATA_ROWS,   /* tokens of samples of any length, which return each epoch: models/rows/rows_file.h */
    DATA_FOLDER, /* FOLDER/CLASS/NAME.png or .jpg (exec/images/image_folder.h) */
    DATA_FORMAT_COUNT
};
extern const char *const data_format_names[DATA_FORMAT_COUNT];
enum { DATA_TEXT_MASK = 256 }; /* bert's mask token: above all bytes */
enum { DATA_BYTE_VOCABULARY_MAX = 512 }; /* larger vocabularies hold words */

/*
 * The mean loss of held-out minibatches after every `every` steps and at the end. The samples are always the same,
 * spread evenly over the held-out data and independent of the seed: losses are comparable.
 */
struct job_evaluation {
    uint64_t every;       /* 0: none; other fields are unused */
    uint64_t minibatches; /* per evaluation; default 8 */
    const char *data;     /* absolute path; NULL: the last tenth of the training data, excluded from training, or
                             other random tokens; of rows a share drawn by a seed */
    uint32_t data_format; /* DATA_NONE without `data` */
    double share;         /* of the rows; in (0, 1) */
    uint64_t split_seed;  /* draws them, and the order in which rows are packed */
};

/* Adapters of linear layers, and PEFT's names for them. */
struct job_adapter {
    uint64_t rank; /* 0: none; other fields are unused */
    double alpha;  /* the scale is alpha / rank ... */
    bool rslora;   /* ... or alpha over the rank's root */
    bool all_linear;
    const char *const *targets; /* (target_count) names of modules or ends of their paths; NULL: all_linear */
    uint32_t target_count;
    const char *from; /* absolute path of an adapter's folder, with which it begins; NULL: the seed */
};
double job_adapter_scale(const struct job_adapter *adapter);

/*
 * Kept outputs of frozen first layers, in plans only. The output of these layers for a sample is always the same: a
 * job that makes them computes them once for all samples, and writes them to host memory; jobs that take them begin
 * after these layers.
 */
struct job_outputs {
    uint64_t layers;            /* 0: none; other fields are unused */
    bool makes;                 /* it makes them and trains nothing ... */
    uint64_t samples, held_out; /* ... of this many samples for training, in their order, then held-out ones */
    uint32_t maker;             /* else the number of the job that makes them */
};

struct job {
    const char *name; /* unique; letters, digits, '-', '_', '.' */
    struct network network;
    uint64_t sequence;    /* tokens per sample */
    uint64_t microbatch;  /* samples per pass */
    uint64_t microbatches; /* per minibatch, at least 1 */
    struct job_batch batch; /* in other programs' terms */
    uint64_t minibatches; /* optimizer steps */
    uint64_t first_minibatch; /* batches and steps count from it */
    uint32_t precision;   /* enum precision of the training */
    bool tf32;            /* the file spells its precision tf32, which is fp32; plans do not have it */
    uint32_t gradients;   /* enum precision; of weights, in a parallel job */
    bool tree;            /* gradients and losses are added up as a tree, however the job runs */
    struct job_optimizer optimizer;
    uint64_t seed;
    const char *data;     /* absolute path; NULL for DATA_NONE */
    uint32_t data_format;
    struct pixel_scale pixels; /* of files of images */
    bool byte_tokens;     /* bytes are tokens for every vocabulary */
    bool packs;           /* a sample has as many rows as fit; only with DATA_ROWS */
    bool skips_long;      /* rows longer than a sample are skipped, not cut */
    const char *weights_in;  /* NULL: initialised from the seed */
    const char *weights_out; /* may be NULL */
    struct job_evaluation evaluation;
    struct network_freeze freeze;  /* as in the file: network.trained follows from both */
    struct job_adapter adapter;
    bool keep_best;            /* also write the best evaluation's weights ... */
    const char *weights_best;  /* ... here: weights_out with ".best" before its ending; else NULL */
    struct parallel parallel;  /* all 0: one device at a time */
    const uint32_t *devices;   /* (device_count), all different; may be NULL */
    uint32_t device_count;
    struct compression compression[COMPRESSION_COUNT]; /* of data that a parallel job sends */
    const char *base;          /* the name of its frozen weights (models/jobs/job_base.h); may be NULL */
    bool shares_base;          /* in a plan: these weights are in a base's buffers, not in the job's states ... */
    uint32_t base_owner;       /* ... which are those of this job, the first that shares them */
    struct job_outputs outputs; /* in a plan: it makes or takes kept outputs */
};

static inline bool job_makes_outputs(const struct job *job) { return job->outputs.layers > 0 && job->outputs.makes; }
static inline bool job_takes_outputs(const struct job *job) { return job->outputs.layers > 0 && !job->outputs.makes; }

/* Returns the layers over which a job passes, from its first to the end. */
static inline uint64_t job_layers_begin(const struct job *job)
{
    return job_takes_outputs(job) ? job->outputs.layers : 0;
}
static inline uint64_t job_layers_end(const struct job *job)
{
    return job_makes_outputs(job) ? job->outputs.layers : job->network.layer_count;
}

/* Returns the layers of the first shard of a job that begins with an embedding: it, or all whose outputs it takes. */
static inline uint64_t job_first_shard_layers(const struct job *job)
{
    return job_takes_outputs(job) ? job->outputs.layers : 1;
}

/*
 * Returns the bytes of a minibatch's input (BUFFER_BATCH), words of four bytes; 0 for profiles.
 *
 *   gpt2, llama   int32 (B, T+1)    tokens: inputs are [:, :T], targets [:, 1:]
 *                 int32 (B, 2, T)   of rows: tokens; labels: the next token where it is learned, else -1
 *   t5            int32 (B, Te+Td+1) the encoder's tokens, then the decoder's, shifted in the same way
 *   bert          int32 (B, 3, T)   tokens, some of them masked; labels: the original token at masked places, else
 *                 -1;
 *                                   rows of the token types in the embedding's tables (V + P + type)
 *   vit           int32 (B)         labels; then float (B, channels, image, image): numbers of pixels
 *                                   (models/job/pixels.h)
 *   cnn           int32 (B, labels) labels, one or one for each pixel of the last result; then float
 *                                   (B, image, image, channels)
 */
uint64_t job_batch_bytes(const struct job *job);

/* Counts a sample's labels, of a network of images. */
uint64_t job_image_labels(const struct job *job);

/* Returns the words of a sample of tokens, for all slices of tokens; 0 for images and profiles. */
uint64_t job_sample_words(const struct job *job);

/* Returns true if a batch has labels: only tokens with one are learned. */
static inline bool job_has_labels(const struct job *job)
{
    return job->data_format == DATA_ROWS;
}

/* Returns the bytes of a replica's part of them, whole microbatches; of a job with one replica all. */
uint64_t job_replica_batch_bytes(const struct job *job);

/* Returns true if files fill all of its shards' states together. */
static inline bool job_fills_at_once(const struct job *job)
{
    return job->weights_in || job->first_minibatch > 0 || job->adapter.from;
}

/* Returns true if its steps wait for the norm of all gradients. */
static inline bool job_clips(const struct job *job)
{
    return job->optimizer.clip > 0;
}

/* What a rate of jobs counts: the first of these that fits one of them. */
enum job_unit { JOB_TOKENS, JOB_SAMPLES, JOB_IMAGES, JOB_UNIT_COUNT };
extern const char *const job_unit_names[JOB_UNIT_COUNT]; /* "tokens", ... */

/* Tokens if its network reads text, else images; samples of profiles. */
enum job_unit job_unit(const struct job *job);

/* Samples of a minibatch: of boundaries, batches and kept activations. */
static inline uint64_t job_samples(const struct job *job)
{
    return job->microbatch * job->microbatches;
}

/* Returns the samples of one computation over layers from `first_layer` on: a microbatch, but in an embedding of
 * tokens the whole minibatch, whose gradient's rows are added up in one order. */
static inline uint64_t job_pass_samples(const struct job *job, uint64_t first_layer)
{
    const struct network *n = &job->network;
    const bool tables = network_layer_kind(n, 0) == LAYER_EMBEDDING && n->family != NETWORK_VIT;
    return first_layer == 0 && tables ? job_samples(job) : job->microbatch;
}

/* Returns the precision's flags of `how` (models/job/memory.h). */
static inline uint32_t job_precision_way(const struct job *job)
{
    return (job->precision == PRECISION_BF16 ? UNIT_HALF : 0) |
           (job->precision == PRECISION_BF16_WEIGHTS ? UNIT_ROUNDED : 0);
}

/* Returns true if gradients and losses are added up as a tree: models/job/parallel.h. */
static inline bool job_sums_as_tree(const struct job *job)
{
    return job->tree || job->parallel.tree;
}

/* Returns the partial sums that wait while a tree of `microbatches` adds up: k for 2^k to 2^(k + 1) - 1 of them; 0 for
 * sums in order. */
static inline uint32_t job_sum_levels(const struct job *job, uint64_t microbatches)
{
    uint32_t levels = 0;
    for (; job_sums_as_tree(job) && microbatches > 1; microbatches /= 2) levels++;
    return levels;
}

/* Returns UNIT_ACCUMULATE for several microbatches, UNIT_LEVEL for each partial sum of a tree, and the precision's
 * flags. */
static inline uint32_t job_pass_way(const struct job *job, uint64_t first_layer)
{
    return (job_pass_samples(job, first_layer) < job_samples(job) ? UNIT_ACCUMULATE : 0) |
           UNIT_LEVEL * job_sum_levels(job, job->microbatches) | job_precision_way(job);
}

/* Returns the same for a computation over one microbatch in any layers. */
static inline uint32_t job_microbatch_way(const struct job *job)
{
    const bool adds = job->microbatches > 1 || parallel_slices(&job->parallel) > 1;
    return (adds ? UNIT_ACCUMULATE : 0) | job_precision_way(job);
}

static inline struct state_format job_state_format(const struct job *job)
{
    return (struct state_format){
        .optimizer = job->optimizer.kind, .weights = job->precision, .moments = job->optimizer.moments,
        .apart = job->shares_base};
}

static inline struct state_layout job_state(const struct job *job, uint64_t first_layer,
                                            uint64_t layer_count)
{
    return memory_state(&job->network, first_layer, layer_count, job_state_format(job));
}

/* Returns the bytes kept for these layers' backward pass, microbatch after microbatch as memory_activations(), or
 * memory_inputs() with UNIT_INPUTS; 0 without UNIT_KEEP, and where no layer has a backward pass. */
static inline uint64_t job_kept_bytes(const struct job *job, uint64_t first_layer,
                                      uint64_t layer_count, uint32_t how)
{
    if (!(how & UNIT_KEEP) || first_layer + layer_count <= network_first_trained(&job->network)) return 0;
    uint64_t one = how & UNIT_INPUTS
                       ? memory_input_bytes(&job->network, first_layer, layer_count,
                                            job->microbatch, job->sequence, job->precision)
                       : memory_activation_bytes(&job->network, first_layer, layer_count,
                                                 job->microbatch, job->sequence, job->precision);
    return job->microbatches * one;
}

/* Returns the bytes of a sample's kept output. */
static inline uint64_t job_output_bytes(const struct job *job)
{
    return memory_boundary_bytes(&job->network, job->outputs.layers - 1, 1, job->sequence, job->precision);
}

/* Returns the bytes of all outputs that a job makes: of whole minibatches. */
static inline uint64_t job_outputs_bytes(const struct job *job)
{
    return job->minibatches * job_samples(job) * job_output_bytes(job);
}

struct job_set {
    struct arena arena;
    struct job *jobs;
    uint32_t count;
};

/* Returns the kind in files: momentum is sgd. */
size_t optimizer_file_kind(const struct job_optimizer *optimizer);

/* Sets *out, which is zeroed before, to the same jobs. Both sets share what the jobs point to; the jobs themselves may
 * be changed, and either set may be released first. */
MUST_CHECK enum status job_set_share(struct job_set *set, struct job_set *out, struct error *err);

void job_set_release(struct job_set *set);

#endif
