/*
 * Jobs: training runs of networks, as jobs.json describes them.
 *
 *     {"spillway_jobs": 1,
 *      "defaults": {"sequence": 64, "microbatch": 4, "minibatches": 20},
 *      "jobs": [{"name": "a", "network": "gpt2", "optimizer": {"kind": "adamw", "lr": 3e-4},
 *                "seed": 1, "data": "corpus.txt"}]}
 *
 * `network` is a preset name, a path (relative to the jobs file) or an object as config.json has
 * it, or {"model_type": "profile", "layers": [...]}. "defaults" holds any of a job's keys but the
 * name. A job may carry "count": n, which makes n jobs NAME-1 ... NAME-n with seeds seed, seed + 1
 * and so on.
 *
 * key           default                        meaning
 * name          job-1, job-2, ...              the place in the file; unique
 * network       -
 * sequence      the network's positions        1 for a profile; ViT: always its own tokens
 * decoder_sequence  as `sequence`              tokens per sample of the decoder, of t5, whose encoder has `sequence`
 * microbatch    1                              samples that a pass takes at once
 * microbatches  1                              of a minibatch: their gradients are added up, in
 *                                              order, and each mean loss counts alike; those of all replicas.
 *                                              Or as others say it: models/job/job_batch.h
 * minibatches   -                              optimizer steps
 * first_minibatch 0                            steps taken before these, by a run that was stopped
 * optimizer     {"kind": "adamw"}              or "sgd"; lr 3e-4, weight_decay 0, beta1 0.9,
 *                                              beta2 0.999, epsilon 1e-8, decay "matrices",
 *                                              momentum 0, nesterov false, clip 0, moments "fp32"
 *                                              (or "bf16"), and a schedule, below
 * precision     "fp32"                         or "bf16", "bf16-weights": models/kernel/precision.h
 * gradients     "fp32"                         or "bf16", of weights, of a job that is spread: models/job/parallel.h
 * seed          1
 * data          none: seeded random tokens     relative to the jobs file; as text, a token is a byte,
 *                                              and bert's mask is token 256
 * tokens        by the vocabulary              "bytes": the bytes of a text are the tokens of a network with
 *                                              more than DATA_BYTE_VOCABULARY_MAX tokens, too
 * data_format   text: by name: .bin is DATA_LLMC if it begins with llm.c's magic, else DATA_NANOGPT;
 *               anything else is DATA_TEXT. A file that is not there is the executor's to report.
 *               vit: DATA_CIFAR10 if the network takes 3 x 32 x 32 pixels, else DATA_IMAGES
 * weights_in    none                           safetensors, relative to the jobs file
 * weights_out   none                           the same; "{name}" in it stands for the job's name
 * evaluate      none                           {"every": n, "minibatches": m, "data", "data_format"}:
 *                                              the loss on held-out data, see struct evaluation
 * keep          "last"                         or "best": also the weights of the best evaluation
 * parallel      none                           over devices at once, see models/job/parallel.h
 * devices       none                           those that it has for itself while it runs, [2, 3]: of jobs that
 *                                              are spread in the order of their ranks; others that name the
 *                                              same devices share them (planner/strategy/leased.h)
 * compression   none                           of what such a job sends, see models/cost/compression.h
 */
#ifndef SPILLWAY_MODELS_JOB_H
#define SPILLWAY_MODELS_JOB_H

#include "base/arena.h"
#include "models/cost/compression.h"
#include "models/job/job_batch.h"
#include "models/job/memory.h"
#include "models/job/parallel.h"
#include "models/network/network.h"

enum { JOBS_MAX = 16384 }; /* jobs of this number are planned in minutes */
enum { JOB_NAME_MAX = 100 }; /* names are in paths, tables and tracks */

/*
 * Limits that keep every size of a pass within 63 bits together with the NETWORK_*_MAX: rows are
 * R = B * T of a whole minibatch, and the activations of all layers for it are at most JOB_BYTES_MAX.
 */
#define JOB_MICROBATCH_MAX (UINT64_C(1) << 20)
#define JOB_ROWS_MAX (UINT64_C(1) << 31)
#define JOB_MINIBATCHES_MAX UINT64_C(1000000000)
enum { JOB_EVALUATION_MINIBATCHES_MAX = 10000 }; /* their passes are counted with 32 bits */
#define JOB_SEED_MAX ((UINT64_C(1) << 62) - 1)
#define JOB_BYTES_MAX (UINT64_C(1) << 60)

/*
 * Which tensors weight decay shrinks. Matrices are all tensors of two dimensions, those of an
 * embedding included (token tables, which are the heads' matrices when tied, and positions), as in
 * nanoGPT, llm.c and Hugging Face's Trainer; biases and the weights of norms are left alone.
 */
enum decay_rule { DECAY_MATRICES, DECAY_ALL, DECAY_RULE_COUNT };
extern const char *const decay_rule_names[DECAY_RULE_COUNT]; /* "matrices", "all" */

/* "schedule": how the learning rate goes, a name or an object with kind, warmup 0, floor 0
 * and steps (those of the job); models/job/learning_rate.h has the formulas. */
enum rate_schedule_kind { RATE_CONSTANT, RATE_LINEAR, RATE_COSINE, RATE_SCHEDULE_COUNT };
extern const char *const rate_schedule_names[RATE_SCHEDULE_COUNT]; /* "constant", ... */

struct rate_schedule {
    uint32_t kind;   /* enum rate_schedule_kind */
    uint64_t warmup; /* steps that climb to the full rate; at most all steps */
    uint64_t steps;  /* at the end of which the rate has fallen, at least those of the job; 0: those of the job */
    double floor;    /* [0, 1]: linear and cosine fall towards this share of the rate */
};

struct optimizer {
    uint32_t kind; /* enum optimizer_kind; in files momentum is "sgd" with "momentum" above 0 */
    double learning_rate, weight_decay;
    uint32_t decay; /* enum decay_rule */
    double beta1, beta2, epsilon; /* adamw */
    double momentum; /* momentum: in (0, 1); 0 for the others */
    bool nesterov;   /* momentum */
    struct rate_schedule schedule;
    uint32_t moments; /* enum precision: how what it remembers is stored; fp32 for kinds without */
    double clip; /* of the norm of all gradients together: they are scaled down to it; 0: never */
};

enum data_format {
    DATA_TEXT,   /* a file as bytes: token = byte */
    DATA_LLMC,   /* llm.c's .bin: 256 x int32 header, then uint16 or uint32 tokens */
    DATA_NANOGPT,/* nanoGPT's .bin: bare uint16 tokens */
    DATA_NONE,   /* seeded random tokens, or images */
    DATA_CIFAR10,/* CIFAR-10's binary batches: a byte of label, 3 x 32 x 32 bytes */
    DATA_IMAGES, /* the same for any size: a label of 16 bits, channels x height x width bytes */
    DATA_FORMAT_COUNT
};
extern const char *const data_format_names[DATA_FORMAT_COUNT];
enum { DATA_TEXT_MASK = 256 }; /* of text, the mask of bert: the first number that is no byte */
enum { DATA_BYTE_VOCABULARY_MAX = 512 }; /* larger vocabularies are of words: bytes, and some special tokens, need no more */

/*
 * The mean loss of some held-out minibatches, after every so many steps and at the end: forward passes
 * that change nothing. It is always the same samples, spread evenly over the held-out data whatever the
 * job's seed, so that the losses of evaluations, and of jobs with the same data, can be compared.
 */
struct evaluation {
    uint64_t every;       /* steps; 0: no evaluations, and the rest means nothing */
    uint64_t minibatches; /* of an evaluation, sized as those of the training; 8 unless given */
    const char *data;     /* path, made absolute; NULL: the last tenth of the training's data, which the
                             training then does not use; or of random tokens, others */
    uint32_t data_format; /* of `data`; DATA_NONE without */
};

struct job {
    const char *name; /* unique; letters, digits, '-', '_', '.' */
    struct network network;
    uint64_t sequence;    /* tokens per sample */
    uint64_t microbatch;  /* samples per pass */
    uint64_t microbatches; /* of a minibatch, at least 1 */
    struct job_batch batch; /* how that was said, in words of other programs */
    uint64_t minibatches; /* optimizer steps */
    uint64_t first_minibatch; /* the number of the first: batches and steps count on from there */
    uint32_t precision;   /* enum precision, of its training */
    uint32_t gradients;   /* enum precision, of those of weights, where it is spread */
    struct optimizer optimizer;
    uint64_t seed;
    const char *data;     /* path, made absolute; NULL for DATA_NONE */
    uint32_t data_format;
    bool byte_tokens;     /* of text: bytes are meant, whatever the vocabulary */
    const char *weights_in;  /* safetensors to start from; NULL: initialised from the seed */
    const char *weights_out; /* safetensors written at the end; NULL: none */
    struct evaluation evaluation;
    bool keep_best;            /* the weights of the best evaluation are written as well ... */
    const char *weights_best;  /* ... there: weights_out with ".best" in front of its ending; else NULL */
    struct parallel parallel;  /* all 0: it runs on one device at a time */
    const uint32_t *devices;   /* (device_count), different ones; NULL: it names none */
    uint32_t device_count;
    struct compression compression[COMPRESSED_COUNT]; /* of what it sends, where it is spread */
};

/*
 * Bytes of what a minibatch is read from (BUFFER_BATCH in plans, exec/files/data.h fills it), all words of
 * four bytes; 0 for profiles.
 *
 *   gpt2, llama   int32 (B, T+1)    tokens: inputs are [:, :T], targets [:, 1:]
 *   t5            int32 (B, Te+Td+1) the encoder's tokens, then those of the decoder, shifted in the same way
 *   bert          int32 (B, 3, T)   tokens, some of them masked; labels: the token that was there where
 *                                   it is to be guessed, else -1; rows of the token types in the
 *                                   embedding's tables (V + P + type)
 *   vit           int32 (B)         labels; then float (B, channels, image, image): pixels, 0 to 255 as
 *                                   -1 to 1, which is what Hugging Face's image processor makes of them
 */
uint64_t job_batch_bytes(const struct job *job);

/* Do its steps wait for the norm of all gradients? */
static inline bool job_clips(const struct job *job)
{
    return job->optimizer.clip > 0;
}

/* Samples of a minibatch: what boundaries, batches and kept activations are for. */
static inline uint64_t job_samples(const struct job *job)
{
    return job->microbatch * job->microbatches;
}

/* Samples that a computation over layers from `first_layer` on takes at a time: a microbatch, and the
 * next when that is through; but all of a minibatch in an embedding, whose rows are added up in one
 * order. */
static inline uint64_t job_pass_samples(const struct job *job, uint64_t first_layer)
{
    return first_layer == 0 && network_layer_kind(&job->network, 0) == LAYER_EMBEDDING
               ? job_samples(job) : job->microbatch;
}

/* UNIT_ACCUMULATE (models/job/memory.h) where that takes several turns; what else its precision adds. */
static inline uint32_t job_pass_way(const struct job *job, uint64_t first_layer)
{
    return (job_pass_samples(job, first_layer) < job_samples(job) ? UNIT_ACCUMULATE : 0) |
           (job->precision == PRECISION_BF16 ? UNIT_HALF : 0) |
           (job->precision == PRECISION_BF16_WEIGHTS ? UNIT_ROUNDED : 0);
}

/* What its states are made of. */
static inline struct state_format job_state_format(const struct job *job)
{
    return (struct state_format){
        .optimizer = job->optimizer.kind, .weights = job->precision, .moments = job->optimizer.moments};
}

/* Where the parts of the state of layers are. */
static inline struct state_layout job_state(const struct job *job, uint64_t first_layer,
                                            uint64_t layer_count)
{
    return memory_state(&job->network, first_layer, layer_count, job_state_format(job));
}

/* Bytes of what a minibatch keeps of the activations of layers for its backward pass: each microbatch's
 * behind those of the one before, as memory_activations() lays them out, or memory_inputs() where `how`
 * has UNIT_INPUTS; 0 where it does not have UNIT_KEEP. */
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

/* Zeroed struct in; release with job_set_release(), also after an error. */
MUST_CHECK enum status job_set_read(const char *path, struct job_set *out, struct error *err);
MUST_CHECK enum status job_set_parse(const struct json_input *in, const json_t *value,
                                     const char *folder, struct job_set *out, struct error *err);
/* Paths are written as seen from `folder` (base/files/path.h), or as they are when it is NULL. */
void job_set_write(const struct job *jobs, uint32_t count, const char *folder, struct json_out *out, const char *key);
/* The kind that files say: sgd for sgd with momentum. */
size_t optimizer_file_kind(const struct optimizer *optimizer);

/* What stands in the object "optimizer" of a job; further keys may follow. */
void optimizer_write_keys(const struct optimizer *optimizer, struct json_out *out);
void job_set_release(struct job_set *set);

#endif
