/*
 * Networks, layer by layer.
 *
 * A network is a chain of layers: one embedding, blocks (for t5 first the encoder's), one head. Others list their
 * layers, all LAYER_OPAQUE, as operations (models/network/network_graph.h) or a measured profile. Executor and planner
 * take sizes from the same tables (models/job/memory.h).
 *
 * Sources: Hugging Face transformers' config.json; shapes of Hydra's networks from arXiv 2110.08633 and its released
 * code.
 */
#ifndef SPILLWAY_MODELS_NETWORK_NETWORK_H
#define SPILLWAY_MODELS_NETWORK_NETWORK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/json/json_in.h"
#include "models/kernel/precision.h"
#include "models/kernel/work.h"
#include "models/network/network_ignored.h"

struct json_out;

enum network_family {
    NETWORK_GPT2,    /* decoder, learned positions, pre-norm, GELU, tied head */
    NETWORK_LLAMA,   /* decoder, rotary positions, root-mean-square pre-norm, SwiGLU, no biases */
    NETWORK_BERT,    /* encoder, post-norm, masked-language head */
    NETWORK_VIT,     /* encoder over image patches, classifier head */
    NETWORK_OPT,     /* more decoders (models/network/network_traits.h) */
    NETWORK_GPT_NEOX, NETWORK_GPTJ, NETWORK_PHI, /* attention and feed-forward side by side */
    NETWORK_MISTRAL, NETWORK_GEMMA, NETWORK_QWEN2, NETWORK_QWEN3, /* as llama, with switches */
    NETWORK_MIXTRAL, NETWORK_QWEN3_MOE, NETWORK_QWEN2_MOE, /* as llama and qwen, with experts */
    NETWORK_GEMMA3_TEXT, NETWORK_GEMMA2, /* as gemma, with more norms, soft caps and windows of some blocks */
    NETWORK_T5, NETWORK_MT5, NETWORK_UMT5, /* encoder and decoder (models/network/network_t5.h); planned and
                                              simulated only */
    NETWORK_CNN,     /* operations on images (models/network/network_graph.h); planned and simulated only */
    NETWORK_RESNET,  /* only in config.json; read as a NETWORK_CNN */
    NETWORK_PROFILE, /* layers with given seconds and bytes */
    NETWORK_FAMILY_COUNT
};
extern const char *const network_family_names[NETWORK_FAMILY_COUNT]; /* as in model_type */

enum layer_kind { LAYER_EMBEDDING, LAYER_BLOCK, LAYER_HEAD, LAYER_OPAQUE };

struct network_graph;
struct network_trained;

/* Values are for one microbatch, or for `profile_samples`. */
struct layer_profile {
    uint64_t parameter_bytes;
    uint64_t activation_bytes; /* kept for the backward pass */
    uint64_t boundary_bytes;   /* passed to the next layer */
    uint64_t forward_ns, backward_ns; /* backward without recomputation */
};

/*
 * Limits: about a thousand times beyond published networks; products of shapes of a checked job stay within 64 bits.
 */
enum { NETWORK_LAYERS_MAX = 100000 }; /* published: about 1000 */
enum {
    NETWORK_WIDTH_MAX = 1 << 20,
    NETWORK_HEADS_MAX = 1 << 16,
    NETWORK_FF_MAX = 1 << 23,
    NETWORK_VOCABULARY_MAX = 1 << 24, /* 32 bits; also limits classes */
    NETWORK_POSITIONS_MAX = 1 << 22,
    NETWORK_IMAGE_MAX = 1 << 14,
    NETWORK_CHANNELS_MAX = 1 << 10,
    NETWORK_EXPERTS_MAX = 1 << 12,
    NETWORK_DENSE_MAX = 16 /* blocks without experts that are named one by one */
};
enum { NETWORK_PROFILE_SAMPLES_MAX = 1 << 20 }; /* of a microbatch */
enum { NETWORK_BERT_MASK = 103 }; /* [MASK] in BERT's published vocabularies */
#define NETWORK_PARAMETERS_MAX (UINT64_C(1) << 48)
#define NETWORK_PROFILE_BYTES_MAX (UINT64_C(1) << 48) /* of one layer */
#define NETWORK_PROFILE_NS_MAX (UINT64_C(1) << 48)    /* about three days */

/*
 * Elements i and i + D/2 of a head are rotated by position * frequency(i), with frequency(i) = theta^(-2i / D). Some
 * kinds lower the frequency for longer contexts.
 */
enum rope_kind {
    ROPE_DEFAULT,
    ROPE_LINEAR, /* frequency / factor */
    ROPE_LLAMA3, /* wavelengths above original_positions / low_factor are divided by factor, below
                    original_positions / high_factor unchanged, interpolated in between */
    ROPE_KIND_COUNT
};
struct network_rope {
    uint32_t kind; /* enum rope_kind */
    double theta;
    double factor;                  /* linear, llama3 */
    double low_factor, high_factor; /* llama3 */
    uint64_t original_positions;    /* llama3 */
};

/* Returns the radians per position of a pair. */
double rope_frequency(const struct network_rope *rope, uint64_t pair, uint64_t head_width);

struct network {
    char name[128];     /* or the path of the config.json */
    uint32_t family;    /* enum network_family */
    uint64_t layer_count; /* with embedding and head */
    uint64_t width, heads, head_width, ff_width, blocks;
    uint64_t kv_heads;  /* of keys and values; 0: as `heads` */
    uint64_t rotary_width; /* of a head; 0: all, with rotary positions */
    uint64_t experts, experts_chosen; /* of a block, and per token; 0, 0: no experts */
    bool experts_normalized; /* the weights of a token's experts add up to 1 */
    bool auxiliary_loss;     /* of routers; planned and simulated only */
    uint64_t shared_width; /* qwen2_moe: columns of the expert that all tokens also use; 0: none */
    uint64_t dense_width;  /* qwen's blocks without experts have this ff_width (network_of_layer()); 0: all have
                              experts */
    uint64_t sparse_step;  /* blocks i without experts: where i + 1 is no multiple of it (0: none) ... */
    uint32_t dense_blocks[NETWORK_DENSE_MAX], dense_count; /* ... and these, in order */
    uint64_t encoder_blocks;   /* of `blocks`, first; 0: no encoder */
    uint64_t decoder_tokens;   /* per sample; 0: as the encoder's */
    uint64_t relative_buckets; /* t5: rows of relative positions */
    uint64_t vocabulary, positions, token_types; /* for llama positions are only a limit, for t5 a usual length */
    uint64_t mask_token; /* bert; below `vocabulary` */
    uint64_t word_width; /* opt-350m: columns of the token table, projected from and to `width`; 0: `width` */
    uint64_t image, patch, channels;    /* ViT */
    uint64_t classes;   /* of ViT, or BERT that classifies; 0: the head predicts tokens */
    double norm_epsilon;
    bool tied_head;     /* with the embedding's token table */
    bool causal;
    bool biases;        /* of q, k and v (ViT's qkv_bias); other layers have biases */
    bool pooler;        /* BERT: pooler, with the next-sentence classifier or the classifier of `classes` */
    uint64_t window; /* of attention (network_block_window()); 0: none. Counted as all tokens in plans */
    uint64_t window_from, window_every; /* blocks with a window: from window_from on, but for every window_every-th one
                                           (0: all) */
    double window_theta;  /* gemma3: `rope.theta` of blocks with a window, where angles have no factor; 0: as all
                             blocks */
    double score_scalar;  /* gemma2, gemma3: attention's scores are divided by its root; 0: by the root of head_width */
    double score_cap, logit_cap; /* gemma2: scores and logits x become cap tanh(x / cap); 0: no cap */
    bool serial_residual; /* gpt_neox: attention and feed-forward one after the other */
    bool post_norm;     /* opt-350m: norms after the sums, none before the head */
    bool gated;         /* t5: a gate in the feed-forward part */
    bool gelu_tanh;     /* "gelu_new"; false: exact */
    double initializer_range;
    bool in_bf16;       /* published with weights of bf16; a plan's networks do not say */
    struct network_rope rope; /* llama */
    bool has_padding;   /* bert, llama: lookups of `padding_token` add no gradient, as in torch.nn.Embedding */
    uint64_t padding_token; /* padding_idx; a tied head still adds gradients */
    double ignored[NETWORK_IGNORED_MAX]; /* keys that training ignores; 0: absent */
    const struct layer_profile *profile; /* layer_count entries; only of NETWORK_PROFILE */
    uint64_t profile_samples; /* that the profile holds for; 0: a microbatch */
    const struct network_graph *graph; /* of operations; may be NULL */
    const struct network_trained *trained; /* which tensors, and adapters (models/network/network_trained.h); NULL:
                                              all */
    uint32_t slice_of;  /* a slice (network_slice()): the members of its tensor group; 0: a whole network */
    bool slices_rows;   /* ... which also cut the rows of norms, sums and boundaries (sequence parallelism) */
    uint32_t pieces;    /* ... and in how many pieces each of them computes its products; 0: whole */
};

/* Dimensions are as in safetensors (gpt2: (in, out)), so products of shapes are parameter counts. */
enum tensor_init {
    INIT_ZERO,
    INIT_ONE,
    INIT_NORMAL,         /* deviation initializer_range */
    INIT_NORMAL_RESIDUAL, /* times 1 / sqrt(2 blocks) */
    INIT_UNIFORM,        /* between +-1 / sqrt(fan) */
    INIT_NORMAL_FAN      /* deviation sqrt(2 / fan): He et al., arXiv 1502.01852 */
};
struct tensor_spec {
    char name[96];      /* Hugging Face's, such as "h.3.attn.c_attn.weight" */
    uint32_t rank;
    uint64_t shape[4];
    uint64_t elements;  /* product of shape */
    enum tensor_init init;
    uint64_t fan;       /* of an initial value; 0: the last dimension */
    uint32_t joined;    /* equal tensors along one dimension: 3 for gpt2's q, k and v, 2 for experts' gate and up; else
                           1 */
    bool matrix;        /* of a product, or a table of rows: has weight decay, and is bf16 in jobs of that precision */
    uint32_t by_heads;  /* not 0: the rows are q, k and v of this many heads, and in files of each head in turn
                           (gpt_neox) */
    bool less_one;      /* files have the values less 1 (gemma's norms) */
    bool frozen;        /* has no gradient and no step */
    bool running;       /* a running mean of values that backward passes leave in place of a gradient: it has a step of
                           its own (models/network/network_graph.h), no moments, and is no parameter */
    bool adapter;       /* of an adapter: of activations' precision, in files of its own */
    const char *of_expert[2]; /* files have a matrix for each expert and for each of these names in place of one tensor
                                 (exec/files/weights.c); NULL: they do not */
};
enum { LAYER_TENSORS_MAX = 32 };

/*
 * Reads a Hugging Face config.json. Keys without meaning here are accepted. `arena` owns the network's data.
 *
 *   model_type   architectures (default: the first)             head
 *   gpt2         GPT2LMHeadModel, GPT2Model                    language model
 *   llama        LlamaForCausalLM, LlamaModel                  language model
 *   bert         BertForMaskedLM, BertForPreTraining,          masked language model; the second and third also with
 *                BertModel                                     pooler and next-sentence classifier;
 *                BertForSequenceClassification                 pooler and a classifier, no language model
 *   vit          ViTForImageClassification, ViTModel           classifier
 *   opt, gpt_neox, gptj, phi, mistral, gemma, gemma3_text, qwen2, qwen2_moe, qwen3, mixtral, qwen3_moe
 *                ...ForCausalLM, ...Model                      language model (models/network/network_traits.h)
 *   t5, mt5, umt5
 *                T5ForConditionalGeneration, T5Model (MT5...)  language model after the decoder
 *   resnet       ResNetForImageClassification, ResNetModel     classifier; a NETWORK_CNN
 *   any          -            with "text_config": only the text model of a network of text and images is read, and
 *                             the name says so ("llava/config.json, its text model")
 *   cnn          -                                             NETWORK_CNN, below
 *   profile      -                                             NETWORK_PROFILE, below
 *
 * llama's rotary positions have the spellings of transformers 4 (rope_theta, rope_scaling) and 5 (rope_parameters).
 * Our own keys: "name" (default: the path); for bert "mask_token_id" (default 103, or the last token of a smaller
 * vocabulary); for bert and vit "head_dim", if it is not hidden_size / num_attention_heads. Dropout is not modelled
 * (models/network/network_ignored.h).
 *
 *     {"model_type": "profile", "name": "resnet50", "layers": [
 *         {"parameter_bytes": 9408, "activation_bytes": 8388608, "boundary_bytes": 4194304,
 *          "forward": "1.5ms", "backward_ns": 2900000, "repeat": 3}, ...]}
 *
 * Every layer of a profile is LAYER_OPAQUE, and so is a shard of such layers. Times are for one microbatch and equal
 * on every device; the update costs nothing. "samples": 64 are the measurement's samples; values other than parameters
 * then scale with the microbatch.
 *
 *     {"model_type": "profile", "text": "vgg16.txt", "samples": 64}
 *
 * takes the layers from PipeDream's profiler, in the file's folder (models/network/profile_text.h).
 *
 *     {"model_type": "cnn", "name": "small", "num_channels": 3, "image_size": 32, "operations": [
 *         {"layer": "stem", "kind": "convolution", "channels": 16, "kernel": 3, "padding": 1},
 *         {"kind": "relu"}, {"layer": "top", "kind": "linear", "channels": 10, "bias": true}, {"kind": "loss"}]}
 *
 * An operation reads the previous result, or the results of "from": [3, 7], counted from 1; 0 is the image. "name" is
 * its module's in files of weights. "preset": "resnet-50" replaces the operations, "image_size" (our own key, for
 * resnet by default 224) and "num_labels" its sizes.
 */
MUST_CHECK enum status network_read_config(const char *path, struct arena *arena,
                                           struct network *out, struct error *err);

/* Reads a network inside another file (a plan, a jobs file). */
MUST_CHECK enum status network_parse(const struct json_input *in, const json_t *value,
                                     const char *name, struct arena *arena, struct network *out,
                                     struct error *err);

/*
 * Finds a preset ("gpt2-xl", "hydra-bert-1b", ...), an id on the hub ("Qwen/Qwen3-8B": always the preset;
 * "./Qwen/Qwen3-8B" is a path), or a path: other names that contain a slash or end in .json or .txt. A folder means
 * its config.json; .txt is a profiler's text, for a microbatch of any size. Errors suggest the nearest preset or id.
 * Errors: STATUS_BAD_INPUT.
 */
MUST_CHECK enum status network_find(const char *name_or_path, struct arena *arena,
                                    struct network *out, struct error *err);

/* Returns true if network_find() treats the name as a path. */
bool network_is_path(const char *name_or_path);

/* Returns true if the text stands for a file: it is a path, or no preset's name and `path` is a folder with a
 * config.json. `path`: where the text leads, from the folder of the file that has it. */
bool network_is_file(const char *text, const char *path);

/*
 * Finds `text`, under "network" of `owner`: a preset or a path; `path` is it relative to the owner's file, perhaps a
 * folder with a config.json.
 * Errors: as network_find(), with the position of the name.
 */
MUST_CHECK enum status network_read_text(const struct json_input *in, const json_t *owner, const char *text,
                                         const char *path, struct arena *arena, struct network *out, struct error *err);

/* Takes "network": a preset, a path relative to the file, or an object like config.json. Errors: as network_find(),
 * with the position. */
MUST_CHECK enum status network_read_key(struct json_object *object, struct arena *arena, struct network *out,
                                        struct error *err);

/* Return NULL past the end. */
const char *network_preset_name(uint32_t index);
const char *network_preset_source(uint32_t index); /* of the preset's shape */

/* network_parse() reads the same network back. */
void network_write(const struct network *network, struct json_out *out, const char *key);

/* Returns true if layers are listed, without embedding, blocks and head. */
static inline bool network_is_listed(const struct network *network)
{
    return network->family == NETWORK_PROFILE || network->graph;
}

/* Scales a profile's value to `microbatch` samples. */
uint64_t network_profile_share(const struct network *network, uint64_t number, uint64_t microbatch);

/* The layer must exist. Cost: O(1), as below. */
enum layer_kind network_layer_kind(const struct network *network, uint64_t layer);

/* Return the range of layers with the tensors, work and activations of `layer`: its first, and the one after its
 * last. */
uint64_t network_alike_begin(const struct network *network, uint64_t layer);
uint64_t network_alike_end(const struct network *network, uint64_t layer);

/* Returns their number. A tied head does not list the token table. */
uint32_t network_layer_tensors(const struct network *network, uint64_t layer,
                               struct tensor_spec out[LAYER_TENSORS_MAX]);

/* Leaves names empty, several times as fast. */
uint32_t network_layer_shapes(const struct network *network, uint64_t layer,
                              struct tensor_spec out[LAYER_TENSORS_MAX]);

uint64_t network_layer_parameters(const struct network *network, uint64_t layer);
uint64_t network_parameters(const struct network *network);

/* Adds up a number of all layers; layers that are alike have equal ones. */
uint64_t network_sum(const struct network *network,
                     uint64_t (*of_layer)(const struct network *network, uint64_t layer));

/* Counts only the chosen experts. */
uint64_t network_active_parameters(const struct network *network);

/* Returns the network, or for a block without experts among others with them `room`: the network as if all were like
 * it. */
const struct network *network_of_layer(const struct network *network, uint64_t layer, struct network *room);

/* Returns the tokens that a block attends to, its own and the last ones before; 0: all. */
uint64_t network_block_window(const struct network *network, uint64_t layer);

/* Returns a block's rotary positions. */
struct network_rope network_block_rope(const struct network *network, uint64_t layer);

/* Counts heads of keys and values. */
uint64_t network_kv_heads(const struct network *network);

/* Counts rows of width C in a text network's tables: tokens, gpt2's and bert's positions, bert's token types. */
uint64_t network_table_rows(const struct network *network);

/* Returns the tokens per sample that layers pass on: `sequence` for text and listed layers, (image/patch)^2 + 1 for
 * ViT, encoder and decoder tokens together for t5, whose `sequence` counts the encoder's. */
uint64_t network_tokens(const struct network *network, uint64_t sequence);

/* Returns the tokens that a layer computes on: fewer in t5's blocks and head. */
uint64_t network_layer_tokens(const struct network *network, uint64_t layer, uint64_t sequence);

/* Returns true if the block attends to an encoder's result; when it is the first that does. */
bool network_crosses(const struct network *network, uint64_t layer);
static inline bool network_joins(const struct network *network, uint64_t layer)
{
    return network_crosses(network, layer) && layer == network->encoder_blocks + 1;
}

/* Returns the tokens per sample of a training that does not say: its positions, at most NETWORK_SEQUENCE_USUAL, since
 * first trainings use fewer than networks have; 0: its samples have a length of their own. */
enum { NETWORK_SEQUENCE_USUAL = 2048 };
uint64_t network_usual_sequence(const struct network *network);

/* Returns true if sequences are at most its positions. */
static inline bool network_is_limited(const struct network *network)
{
    return network->positions > 0 && network->family != NETWORK_VIT && network->encoder_blocks == 0;
}

/* --- work ----------------------------------------------------------------------------------- */

enum network_pass {
    PASS_FORWARD,
    PASS_BACKWARD, /* recomputation and update are separate */
    PASS_UPDATE,
    PASS_RECOMPUTE, /* what the layer's backward pass needs: a pre-norm block skips its last product and sum */
    PASS_RECOMPUTE_CORE, /* only attention, from q, k and v */
    PASS_INPUT, PASS_WEIGHT, /* PASS_BACKWARD in two: the input's gradient, which earlier layers wait for, and those
                                of matrices and biases (norms compute theirs in the first part, an embedding all in
                                the second) */
    PASS_COUNT
};

/* It determines the update and the moments. */
enum optimizer_kind {
    OPTIMIZER_SGD,
    OPTIMIZER_ADAMW,
    OPTIMIZER_MOMENTUM, /* sgd with momentum */
    OPTIMIZER_COUNT
};
extern const char *const optimizer_names[OPTIMIZER_COUNT];

/* Returns 0 for sgd, 1 for momentum, 2 for adamw. */
uint32_t optimizer_moments(uint32_t optimizer);

/*
 * Returns the rows of logits that exist at a time. A language model's head computes logits, loss and gradients of its
 * R = B T rows in pieces of this size (the last may be smaller), in the same memory; R if R is small. It depends only
 * on the shape, so no plan changes a bit of the results. `rows` is not 0.
 */
uint64_t network_logit_rows(const struct network *network, uint64_t rows);

enum { LAYER_WORK_MAX = 96 };

/*
 * Writes the kernels of one pass, equal ones merged by `count`, and returns their number. PASS_UPDATE ignores B and T,
 * and counts a tied table only for the embedding. The loss and its gradient belong to the head's forward pass;
 * products with the token table are listed piece by piece.
 */
uint32_t network_layer_work(const struct network *network, uint64_t layer, enum network_pass pass,
                            uint64_t microbatch, uint64_t sequence, struct state_format format,
                            struct work_item out[LAYER_WORK_MAX]);

/* Returns the kernel that updates such states. `apart`: in a pass of its own, where parameters and gradients come from
 * memory, not right after the gradients were made. */
enum kernel optimizer_kernel(struct state_format format, bool apart);

/* --- a layer that the devices of a tensor group share --------------------------------------- */

/*
 * Returns the part on one of `members` devices as a network: a share of heads, feed-forward part and vocabulary
 * (rounded up to 16 bytes of 16-bit numbers), and all tensors that have only the network's width. A profile is not
 * split.
 */
struct network network_slice(const struct network *network, uint32_t members, uint32_t pieces);

/* Returns a piece of the network of which `slice` is a slice, or the slice. */
struct network network_piece(const struct network *network, const struct network *slice);

struct layer_share {
    uint32_t members;   /* of the tensor group, at least 1; divides heads and feed-forward part */
    uint32_t pieces;    /* in all, of products; 0: they are whole */
    bool sequence;      /* norms and sums process rows / members (divides evenly) */
    uint32_t precision; /* enum precision of all numbers */
};

/* Works as network_layer_work() on one member, except that the logits of all rows exist at once. No PASS_UPDATE:
 * updates are not split by layers. */
uint32_t network_slice_work(const struct network *network, uint64_t layer, enum network_pass pass,
                            uint64_t microbatch, uint64_t sequence, struct layer_share share,
                            struct work_item out[LAYER_WORK_MAX]);

#endif
