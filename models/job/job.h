/*
 * Jobs: training runs of networks, as described in jobs.json.
 *
 *     {"spillway_jobs": 1,
 *      "defaults": {"sequence": 64, "microbatch": 4, "minibatches": 20},
 *      "jobs": [{"name": "a", "network": "gpt2", "optimizer": {"kind": "adamw", "lr": 3e-4},
 *                "seed": 1, "data": "corpus.txt"}]}
 *
 * `network` is a preset name, a path (relative to the jobs file), an object in the form of config.json, or
 * {"model_type": "profile", "layers": [...]}. "defaults" holds any keys of a job except the name. A job with "count":
 * n stands for n jobs NAME-1 ... NAME-n with seeds seed, seed + 1 and so on.
 *
 *   key           default                        meaning
 *   name          job-1, job-2, ...              unique; the default is the place in the file
 *   network       -
 *   sequence      the network's positions        tokens per sample; 1 for a profile; ViT: always its own tokens
 *   decoder_sequence  as `sequence`              tokens per sample of t5's decoder; its encoder has `sequence`
 *   microbatch    1                              samples per pass
 *   microbatches  1                              microbatches per minibatch, of all replicas together.
 *                                                Their gradients are added up in order, and their mean losses
 *                                                have equal weights.
 *                                                Other programs' names: models/job/job_batch.h
 *   minibatches   -                              optimizer steps
 *   first_minibatch 0                            steps taken earlier, by a run that was stopped
 *   optimizer     {"kind": "adamw"}              or "sgd"; lr 3e-4, weight_decay 0, beta1 0.9,
 *                                                beta2 0.999, epsilon 1e-8, decay "matrices",
 *                                                momentum 0, nesterov false, clip 0, moments "fp32"
 *                                                (or "bf16"), and a schedule, below
 *   precision     "fp32"                         or "bf16", "bf16-weights": models/kernel/precision.h
 *   gradients     "fp32"                         or "bf16"; weight gradients of a parallel job: models/job/parallel.h
 *   seed          1
 *   data          none: seeded random tokens     relative to the jobs file; in a text, a token is a byte,
 *                                                and bert's mask is token 256
 *   tokens        by the vocabulary              "bytes": bytes of a text are tokens even for a network with
 *                                                more than DATA_BYTE_VOCABULARY_MAX tokens
 *   data_format   by the name                    .bin is DATA_LLMC if it begins with llm.c's magic,
 *                                                else DATA_NANOGPT; any other name is DATA_TEXT.
 *                                                The executor reports missing files.
 *                                                vit: DATA_CIFAR10 if the network takes 3 x 32 x 32 pixels, else
 *                                                DATA_IMAGES
 *   weights_in    none                           safetensors, relative to the jobs file
 *   weights_out   none                           likewise; "{name}" in it stands for the job's name
 *   evaluate      none                           {"every": n, "minibatches": m, "data", "data_format"}:
 *                                                the loss on held-out data, see struct job_evaluation
 *   keep          "last"                         or "best": also the weights of the best evaluation
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
#include "models/network/network.h"

enum { JOBS_MAX = 16384 }; /* planning this number of jobs takes minutes */
enum { JOB_NAME_MAX = 100 }; /* names appear in paths, tables and tracks */

/*
 * Limits that, together with NETWORK_*_MAX, keep every size of a pass within 63 bits. R = B * T is the number of rows
 * of a whole minibatch; the activations of all layers for these rows are at most JOB_BYTES_MAX.
 */
#define JOB_MICROBATCH_MAX (UINT64_C(1) << 20)
#define JOB_ROWS_MAX (UINT64_C(1) << 31)
#define JOB_MINIBATCHES_MAX UINT64_C(1000000000)
enum { JOB_EVALUATION_MINIBATCHES_MAX = 10000 }; /* passes are counted in 32 bits */
#define JOB_SEED_MAX ((UINT64_C(1) << 62) - 1)
#define JOB_BYTES_MAX (UINT64_C(1) << 60)

/*
 * Tensors that weight decay shrinks. Matrices are all tensors of two dimensions, including embeddings (position
 * tables, and token tables, which are also the head's matrix when tied), as in nanoGPT, llm.c and Hugging Face's
 * Trainer. Biases and the weights of norms are not matrices.
 */
enum decay_rule { DECAY_MATRICES, DECAY_ALL, DECAY_RULE_COUNT };
extern const char *const decay_rule_names[DECAY_RULE_COUNT]; /* "matrices", "all" */

/* "schedule": the course of the learning rate, a name or an object with kind, warmup 0, floor 0 and steps (default:
 * the job's steps). models/job/learning_rate.h has the formulas. */
enum rate_schedule_kind { RATE_CONSTANT, RATE_LINEAR, RATE_COSINE, RATE_SCHEDULE_COUNT };
extern const char *const rate_schedule_names[RATE_SCHEDULE_COUNT]; /* "constant", ... */

struct rate_schedule {
    uint32_t kind;   /* enum rate_schedule_kind */
    uint64_t warmup; /* steps until the full rate is reached; at most all steps */
    uint64_t steps;  /* steps until the end of the decay, at least the job's steps; 0: the job's steps */
    double floor;    /* in [0, 1]: share of the rate at which linear and cosine end */
};

struct job_optimizer {
    uint32_t kind; /* enum optimizer_kind; in files momentum is "sgd" with "momentum" above 0 */
    double learning_rate, weight_decay;
    uint32_t decay; /* enum decay_rule */
    double beta1, beta2, epsilon; /* adamw */
    double momentum; /* momentum: in (0, 1); 0 for the others */
    bool nesterov;   /* momentum */
    struct rate_schedule schedule;
    uint32_t moments; /* enum precision of the stored moments; fp32 for kinds without moments */
    double clip; /* limit of the norm of all gradients together; larger gradients are scaled down to it; 0: no
                    limit */
};

enum data_format {
    DATA_TEXT,   /* a file as bytes: token = byte */
    DATA_LLMC,   /* llm.c's .bin: 256 x int32 header, then uint16 or uint32 tokens */
    DATA_NANOGPT,/* nanoGPT's .bin: bare uint16 tokens */
    DATA_NONE,   /* seeded random tokens, or images */
    DATA_CIFAR10,/* CIFAR-10's binary batches: a byte of label, 3 x 32 x 32 bytes */
    DATA_IMAGES, /* images of any size: a 16-bit label, channels x height x width bytes */
    DATA_FORMAT_COUNT
};
extern const char *const data_format_names[DATA_FORMAT_COUNT];
enum { DATA_TEXT_MASK = 256 }; /* bert's mask token in texts: the first number above all bytes */
enum { DATA_BYTE_VOCABULARY_MAX = 512 }; /* larger vocabularies hold words; bytes and some special tokens need
                                            fewer */

/*
 * The mean loss of held-out minibatches, computed after every `every` steps and at the end, by forward passes that
 * change nothing. An evaluation always uses the same samples, spread evenly over the held-out data and independent of
 * the job's seed. Losses of different evaluations, and of jobs with the same data, are therefore comparable.
 */
struct job_evaluation {
    uint64_t every;       /* steps between evaluations; 0: no evaluations, other fields are unused */
    uint64_t minibatches; /* per evaluation, of the training's minibatch size; default 8 */
    const char *data;     /* absolute path; NULL: the last tenth of the training data, which is then excluded from
                             training, or different random tokens */
    uint32_t data_format; /* format of `data`; DATA_NONE if NULL */
};

struct job {
    const char *name; /* unique; letters, digits, '-', '_', '.' */
    struct network network;
    uint64_t sequence;    /* tokens per sample */
    uint64_t microbatch;  /* samples per pass */
    uint64_t microbatches; /* microbatches per minibatch, at least 1 */
    struct job_batch batch; /* the same as given in other programs' terms */
    uint64_t minibatches; /* optimizer steps */
    uint64_t first_minibatch; /* number of the first minibatch; batches and steps count from it */
    uint32_t precision;   /* enum precision of the training */
    uint32_t gradients;   /* enum precision of weight gradients in a parallel job */
    struct job_optimizer optimizer;
    uint64_t seed;
    const char *data;     /* absolute path; NULL for DATA_NONE */
    uint32_t data_format;
    bool byte_tokens;     /* for texts: bytes are tokens for every vocabulary */
    const char *weights_in;  /* safetensors to start from; NULL: initialised from the seed */
    const char *weights_out; /* safetensors written at the end; NULL: none */
    struct job_evaluation evaluation;
    bool keep_best;            /* also write the weights of the best evaluation ... */
    const char *weights_best;  /* ... to this path: weights_out with ".best" before its ending; else NULL */
    struct parallel parallel;  /* all 0: the job runs on one device at a time */
    const uint32_t *devices;   /* (device_count), all different; NULL: none named */
    uint32_t device_count;
    struct compression compression[COMPRESSED_COUNT]; /* of data that a parallel job sends */
};

/*
 * Returns the bytes of a minibatch's input (BUFFER_BATCH in plans, filled by exec/files/data.h), in words of four
 * bytes; 0 for profiles.
 *
 *   gpt2, llama   int32 (B, T+1)    tokens: inputs are [:, :T], targets [:, 1:]
 *   t5            int32 (B, Te+Td+1) the encoder's tokens, then the decoder's, shifted in the same way
 *   bert          int32 (B, 3, T)   tokens, some of them masked; labels: the original token at masked places, else
 *                 -1;
 *                                   rows of the token types in the embedding's tables (V + P + type)
 *   vit           int32 (B)         labels; then float (B, channels, image, image): pixels, with 0 to 255 mapped to
 *                                   -1 to 1, as Hugging Face's image processor does
 */
uint64_t job_batch_bytes(const struct job *job);

/* Returns true when the job's steps wait for the norm of all gradients. */
static inline bool job_clips(const struct job *job)
{
    return job->optimizer.clip > 0;
}

/* Returns the samples of a minibatch: the size of boundaries, batches and kept activations. */
static inline uint64_t job_samples(const struct job *job)
{
    return job->microbatch * job->microbatches;
}

/* Returns the samples that a computation over layers from `first_layer` on takes at a time: one microbatch after the
 * other, but in an embedding the whole minibatch, because the rows of its gradient are added up in one fixed order. */
static inline uint64_t job_pass_samples(const struct job *job, uint64_t first_layer)
{
    return first_layer == 0 && network_layer_kind(&job->network, 0) == LAYER_EMBEDDING
               ? job_samples(job) : job->microbatch;
}

/* Returns UNIT_ACCUMULATE (models/job/memory.h) if the computation takes several microbatches, plus the flags of the
 * job's precision. */
static inline uint32_t job_pass_way(const struct job *job, uint64_t first_layer)
{
    return (job_pass_samples(job, first_layer) < job_samples(job) ? UNIT_ACCUMULATE : 0) |
           (job->precision == PRECISION_BF16 ? UNIT_HALF : 0) |
           (job->precision == PRECISION_BF16_WEIGHTS ? UNIT_ROUNDED : 0);
}

/* Returns the number formats of the job's states. */
static inline struct state_format job_state_format(const struct job *job)
{
    return (struct state_format){
        .optimizer = job->optimizer.kind, .weights = job->precision, .moments = job->optimizer.moments};
}

/* Returns the layout of the state of these layers. */
static inline struct state_layout job_state(const struct job *job, uint64_t first_layer,
                                            uint64_t layer_count)
{
    return memory_state(&job->network, first_layer, layer_count, job_state_format(job));
}

/* Returns the bytes of activations that a minibatch keeps for the backward pass of these layers. Microbatches follow
 * each other, each laid out as by memory_activations(), or by memory_inputs() if `how` has UNIT_INPUTS. Returns 0 if
 * `how` lacks UNIT_KEEP. */
static inline uint64_t job_kept_bytes(const struct job *job, uint64_t first_layer,
                                      uint64_t layer_count, uint32_t how)
{
    if (!(how & UNIT_KEEP)) return 0;
    uint64_t one = how & UNIT_INPUTS
                       ? memory_input_bytes(&job->network, first_layer, layer_count,
                                            job->microbatch, job->sequence, job->precision)
                       : memory_activation_bytes(&job->network, first_layer, layer_count,
                                                 job->microbatch, job->sequence, job->precision);
    return job->microbatches * one;
}

struct job_set {
    struct arena arena;
    struct job *jobs;
    uint32_t count;
};

/* Returns the kind as named in files: sgd for sgd with momentum. */
size_t optimizer_file_kind(const struct job_optimizer *optimizer);

void job_set_release(struct job_set *set);

#endif
