/*
 * Networks, layer by layer: parameters, work, activations.
 *
 * A network is a chain of layers: one embedding, blocks (for t5 first the encoder's, then the decoder's), one head.
 * Other networks list their layers one by one, all LAYER_OPAQUE, as operations (models/network/network_graph.h) or as
 * a measured profile. All sizes follow from the fields of struct network; the executor allocates by the same tables
 * (models/job/memory.h) by which the planner counts.
 *
 * Sources: Hugging Face transformers' config.json, in the spellings of versions 4 and 5; shapes of Hydra's networks
 * from arXiv 2110.08633 and its released code.
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
    NETWORK_OPT, NETWORK_GPT_NEOX, NETWORK_GPTJ, NETWORK_PHI, /* more decoders, distinguished by
                                                                 models/network/network_traits.h: planned and
                                                                 simulated, not carried out */
    NETWORK_MISTRAL, NETWORK_GEMMA, NETWORK_QWEN2, NETWORK_QWEN3, NETWORK_MIXTRAL, NETWORK_QWEN3_MOE,
    NETWORK_QWEN2_MOE, NETWORK_GEMMA3_TEXT,
    NETWORK_T5, NETWORK_MT5, NETWORK_UMT5, /* encoder and decoder (models/network/network_t5.h); planned and
                                              simulated, not carried out */
    NETWORK_CNN,     /* operations on images (models/network/network_graph.h); planned and simulated, not carried
                        out */
    NETWORK_RESNET,  /* only in config.json: it is read as a NETWORK_CNN */
    NETWORK_PROFILE, /* layers with given seconds and bytes */
    NETWORK_FAMILY_COUNT
};
extern const char *const network_family_names[NETWORK_FAMILY_COUNT]; /* as spelled by model_type */

enum layer_kind { LAYER_EMBEDDING, LAYER_BLOCK, LAYER_HEAD, LAYER_OPAQUE };

struct network_graph;

/* A layer of a NETWORK_PROFILE network. Values are for one microbatch, or for the network's `profile_samples`. */
struct layer_profile {
    uint64_t parameter_bytes;
    uint64_t activation_bytes; /* kept for the backward pass */
    uint64_t boundary_bytes;   /* passed to the next layer */
    uint64_t forward_ns, backward_ns; /* backward without recomputation */
};

/*
 * Limits on shapes: about a thousand times beyond published networks, and low enough that no product of shapes of a
 * checked job (models/job/job.h) exceeds 64 bits.
 */
enum { LAYERS_MAX = 100000 }; /* the deepest published network has about 1000 */
enum {
    NETWORK_WIDTH_MAX = 1 << 20,
    NETWORK_HEADS_MAX = 1 << 16,
    NETWORK_FF_MAX = 1 << 23,
    NETWORK_VOCABULARY_MAX = 1 << 24, /* token ids fit into 32 bits; also limits classes */
    NETWORK_POSITIONS_MAX = 1 << 22,
    NETWORK_IMAGE_MAX = 1 << 14,
    NETWORK_CHANNELS_MAX = 1 << 10,
    NETWORK_EXPERTS_MAX = 1 << 12
};
enum { NETWORK_PROFILE_SAMPLES_MAX = 1 << 20 }; /* the limit of a microbatch */
enum { NETWORK_BERT_MASK = 103 }; /* [MASK] in BERT's published vocabularies */
#define NETWORK_PARAMETERS_MAX (UINT64_C(1) << 48)
#define NETWORK_PROFILE_BYTES_MAX (UINT64_C(1) << 48) /* of one layer */
#define NETWORK_PROFILE_NS_MAX (UINT64_C(1) << 48)    /* about three days */

/*
 * Rotary positions: elements i and i + D/2 of a head are rotated together by position * frequency(i), with
 * frequency(i) = theta^(-2i / D). Some kinds lower the frequency to reach longer contexts.
 */
enum rope_kind {
    ROPE_DEFAULT,
    ROPE_LINEAR, /* frequency / factor */
    ROPE_LLAMA3, /* wavelengths above original_positions / low_factor are divided by factor, wavelengths below
                    original_positions / high_factor are unchanged, those in between are interpolated */
    ROPE_KIND_COUNT
};
struct network_rope {
    uint32_t kind; /* enum rope_kind */
    double theta;
    double factor;                  /* linear, llama3 */
    double low_factor, high_factor; /* llama3 */
    uint64_t original_positions;    /* llama3 */
};

/* Returns the radians per position of pair `pair` in heads of width `head_width`. */
double rope_frequency(const struct network_rope *rope, uint64_t pair, uint64_t head_width);

struct network {
    char name[128];     /* "gpt2", or the path of the config.json */
    uint32_t family;    /* enum network_family */
    uint64_t layer_count; /* includes embedding and head */
    uint64_t width, heads, head_width, ff_width, blocks;
    uint64_t kv_heads;  /* heads of keys and values; 0: the same as `heads` */
    uint64_t rotary_width; /* rotated elements of a head; 0: all, in networks with rotary positions */
    uint64_t experts, experts_chosen; /* experts of a block, and experts per token; 0, 0: one feed-forward part
                                         without experts */
    uint64_t shared_width; /* qwen2_moe: columns of the shared expert, which all tokens use in addition to theirs;
                              0: none */
    uint64_t encoder_blocks;   /* the first encoder_blocks of `blocks` are an encoder; 0: no encoder */
    uint64_t decoder_tokens;   /* decoder tokens per sample, with an encoder; 0: the same as the encoder's */
    uint64_t relative_buckets; /* t5: rows of its tables of relative positions */
    uint64_t vocabulary, positions, token_types; /* text; for llama positions are only a limit, for t5 a usual
                                                    length */
    uint64_t mask_token; /* bert: the mask token; below `vocabulary` */
    uint64_t word_width; /* opt-350m: columns of the token table, with projection matrices from and to `width`; 0:
                            `width` */
    uint64_t image, patch, channels;    /* ViT */
    uint64_t classes;   /* ViT, and BERT that classifies samples; 0: the head predicts tokens */
    double norm_epsilon;
    bool tied_head;     /* the head multiplies by the embedding's token table */
    bool causal;
    bool biases;        /* of the q, k and v projections (ViT's qkv_bias); all other layers have biases */
    bool pooler;        /* BERT: the pooler, followed by the next-sentence classifier or the classifier of
                           `classes` */
    bool post_norm;     /* opt-350m: norms after the sums, as in BERT, and none before the head */
    bool gated;         /* t5: the feed-forward part has a gate */
    bool gelu_tanh;     /* GELU's tanh form ("gelu_new"); false: the exact form */
    double initializer_range;
    struct network_rope rope; /* llama */
    bool has_padding;   /* bert, llama: lookups of `padding_token` add no gradient to its row, as in
                           torch.nn.Embedding */
    uint64_t padding_token; /* padding_idx; a tied head still adds gradients to the row */
    double ignored[NETWORK_IGNORED_MAX]; /* values of the family's keys that training ignores; 0: absent */
    const struct layer_profile *profile; /* layer_count entries; NULL unless NETWORK_PROFILE */
    uint64_t profile_samples; /* number of samples that the profile holds for, scaled to the microbatch; 0: it
                                 holds for a microbatch */
    const struct network_graph *graph; /* network of operations; NULL for a network of blocks and a profile */
};

/*
 * A tensor of a layer. Dimensions are as stored in the safetensors file (gpt2 stores linear weights as (in, out):
 * Conv1D), so products of shapes are exact parameter counts.
 */
enum tensor_init {
    INIT_ZERO,
    INIT_ONE,
    INIT_NORMAL,         /* with standard deviation initializer_range */
    INIT_NORMAL_RESIDUAL /* as INIT_NORMAL, times 1 / sqrt(2 blocks) */
};
struct tensor_spec {
    char name[96];      /* Hugging Face's name, such as "h.3.attn.c_attn.weight" */
    uint32_t rank;
    uint64_t shape[4];
    uint64_t elements;  /* product of shape */
    enum tensor_init init;
    bool matrix;        /* a matrix of a product, or a table of rows: it has weight decay, and is bf16 in jobs of
                           that precision. Biases, norms and vectors added to rows are not matrices */
};
enum { LAYER_TENSORS_MAX = 32 };

/*
 * Reads a Hugging Face config.json. An unknown model_type is an error that lists the known types. Keys without
 * meaning here are accepted. `arena` owns the data that the network points to.
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
 * llama's rotary positions are read in the spellings of transformers 4 (rope_theta, rope_scaling) and 5
 * (rope_parameters). Keys in addition to Hugging Face's: "name" (default: the path); for bert "mask_token_id"
 * (default 103, as in BERT's own vocabulary, or the last token of a smaller one); for bert and vit "head_dim", if it
 * is not hidden_size / num_attention_heads. Dropout is not modelled, and training ignores it
 * (models/network/network_ignored.h).
 *
 *     {"model_type": "profile", "name": "resnet50", "layers": [
 *         {"parameter_bytes": 9408, "activation_bytes": 8388608, "boundary_bytes": 4194304,
 *          "forward": "1.5ms", "backward_ns": 2900000, "repeat": 3}, ...]}
 *
 * Every layer of a profile is LAYER_OPAQUE, and so is a shard of such layers. Times are for one microbatch and equal
 * on every device; the update costs nothing. "samples": 64 gives the number of samples of the measurement; values
 * other than parameters then scale in proportion to the microbatch. "measured_on" may name the device.
 *
 *     {"model_type": "profile", "text": "vgg16.txt", "samples": 64}
 *
 * takes the layers from a text of PipeDream's profiler in the folder of the file (models/network/profile_text.h).
 *
 *     {"model_type": "cnn", "name": "small", "num_channels": 3, "image_size": 32, "operations": [
 *         {"layer": "stem", "kind": "convolution", "channels": 16, "kernel": 3, "padding": 1},
 *         {"kind": "relu"}, {"layer": "top", "kind": "linear", "channels": 10, "bias": true}, {"kind": "loss"}]}
 *
 * An operation reads the result of the previous operation, or of "from": [3, 7], counted from 1; 0 is the image.
 * "preset": "resnet-50" replaces the operations, and "image_size" may then be absent. "image_size" of resnet is
 * Spillway's own key; its default is 224.
 */
MUST_CHECK enum status network_read_config(const char *path, struct arena *arena,
                                           struct network *out, struct error *err);

/* Reads a network from an object inside another file (a plan, a jobs file). */
MUST_CHECK enum status network_parse(const struct json_input *in, const json_t *value,
                                     const char *name, struct arena *arena, struct network *out,
                                     struct error *err);

/*
 * Finds a network by preset name ("gpt2-xl", "hydra-bert-1b", ...), by its id on the hub ("Qwen/Qwen3-8B": always the
 * preset, even if a folder of that name exists; "./Qwen/Qwen3-8B" is a path), or by path. Other names that contain a
 * slash or end in .json or .txt are paths: a folder, also without a slash, means its config.json; .txt is a
 * profiler's text, whose values hold for a microbatch of any size. For an unknown name the error suggests the nearest
 * preset, for a missing path the nearest id. Errors: STATUS_BAD_INPUT.
 */
MUST_CHECK enum status network_find(const char *name_or_path, struct arena *arena,
                                    struct network *out, struct error *err);

/* Returns true when network_find() treats the name as a path. */
bool network_is_path(const char *name_or_path);

/*
 * Finds the network that `owner` names under "network". `text` is a preset name or a path; `path` is the same text
 * relative to the file of `owner` and may be a folder with a config.json.
 * Errors: as network_find(), with the position of the name.
 */
MUST_CHECK enum status network_read_text(const struct json_input *in, const json_t *owner, const char *text, const char *path,
                                         struct arena *arena, struct network *out, struct error *err);

/* Takes the network under "network" of an object: a preset name, a path relative to the file, or an object in the
 * form of config.json. Errors: as network_find(), with the position. */
MUST_CHECK enum status network_read_key(struct json_object *object, struct arena *arena, struct network *out,
                                        struct error *err);

/* Return the presets in the order of the table; NULL past the end. */
const char *network_preset_name(uint32_t index);
const char *network_preset_source(uint32_t index); /* source of the preset's shape */

/* Writes the network so that network_parse() reads back the same network. */
void network_write(const struct network *network, struct json_out *out, const char *key);

/* Returns true when the layers are listed one by one, without embedding, blocks and head. */
static inline bool network_is_listed(const struct network *network)
{
    return network->family == NETWORK_PROFILE || network->graph;
}

/* Scales a value of a profile's layer to `microbatch` samples. */
uint64_t network_profile_share(const struct network *network, uint64_t figure, uint64_t microbatch);

/* Returns the kind of layer `layer`, which must exist. Cost: O(1), like all functions on layers below. */
enum layer_kind network_layer_kind(const struct network *network, uint64_t layer);

/* Return the first layer of the range of equal layers that contains `layer`, and the layer after its last. Equal
 * layers have the same tensors, work and activations. */
uint64_t network_alike_begin(const struct network *network, uint64_t layer);
uint64_t network_alike_end(const struct network *network, uint64_t layer);

/* Writes the tensors of one layer and returns their number. A tied head does not list the token table. */
uint32_t network_layer_tensors(const struct network *network, uint64_t layer,
                               struct tensor_spec out[LAYER_TENSORS_MAX]);

/* Works as network_layer_tensors() with empty names, several times as fast. */
uint32_t network_layer_shapes(const struct network *network, uint64_t layer,
                              struct tensor_spec out[LAYER_TENSORS_MAX]);

uint64_t network_layer_parameters(const struct network *network, uint64_t layer);
uint64_t network_parameters(const struct network *network);

/* Returns the parameters that a token uses: only the chosen experts. */
uint64_t network_active_parameters(const struct network *network);

/* Returns the number of heads of keys and values. */
uint64_t network_kv_heads(const struct network *network);

/* Returns the rows of width C in a text network's embedding tables: tokens, then gpt2's and bert's positions, then
 * bert's token types. */
uint64_t network_table_rows(const struct network *network);

/* Returns the tokens per sample that layers pass on: `sequence` for text and for listed layers, (image/patch)^2 + 1
 * for ViT. For t5 it is the sum of encoder and decoder tokens; `sequence` counts the encoder's. */
uint64_t network_tokens(const struct network *network, uint64_t sequence);

/* Returns the tokens per sample that a layer computes on: fewer than network_tokens() in blocks and head of t5. */
uint64_t network_layer_tokens(const struct network *network, uint64_t layer, uint64_t sequence);

/* Return true for a block that attends to an encoder's result, and for the first such block. */
bool network_crosses(const struct network *network, uint64_t layer);
static inline bool network_joins(const struct network *network, uint64_t layer)
{
    return network_crosses(network, layer) && layer == network->encoder_blocks + 1;
}

/* Returns true when the network refuses sequences longer than its positions. */
static inline bool network_is_limited(const struct network *network)
{
    return network->positions > 0 && network->family != NETWORK_VIT && network->encoder_blocks == 0;
}

/* --- work ----------------------------------------------------------------------------------- */

enum network_pass {
    PASS_FORWARD,
    PASS_BACKWARD, /* only gradients: recomputation and update are separate passes */
    PASS_UPDATE,
    PASS_RECOMPUTE, /* the part of the forward pass that the layer's own backward pass needs: a pre-norm block
                       skips its last product and sum, since nothing reads its output */
    PASS_RECOMPUTE_CORE, /* only attention, from q, k and v */
    PASS_INPUT, PASS_WEIGHT, /* PASS_BACKWARD in two parts: the gradient of the layer's input, which earlier layers
                                wait for, and the gradients of matrices and biases, which no layer waits for (norms
                                compute theirs in the first part, an embedding all in the second) */
    PASS_COUNT
};

/* A kind of optimizer determines the update and the moments of each parameter. */
enum optimizer_kind {
    OPTIMIZER_SGD,
    OPTIMIZER_ADAMW,
    OPTIMIZER_MOMENTUM, /* sgd with momentum */
    OPTIMIZER_COUNT
};
extern const char *const optimizer_names[OPTIMIZER_COUNT];

/* Returns the moments per parameter: sgd 0, momentum 1, adamw 2. */
uint32_t optimizer_moments(uint32_t optimizer);

/*
 * Returns the rows of logits that exist at a time. The head of a language model takes its R = B T rows in pieces of
 * this size (the last may be smaller). It computes logits, loss and gradients of one piece before the next, in the
 * same memory. The result is R if R is small. It depends only on the shape, so neither a plan nor its memory changes
 * a bit of the results. `rows` is not 0.
 */
uint64_t network_logit_rows(const struct network *network, uint64_t rows);

enum { LAYER_WORK_MAX = 64 };

/*
 * Writes the kernels of one pass over one layer for B samples of T tokens; equal kernels are merged by `count`.
 * PASS_UPDATE ignores B and T, and counts a tied table only for the embedding. The loss belongs to the head's forward
 * pass, which also makes its gradient; both passes list the products with the token table piece by piece. Returns the
 * number of items.
 */
uint32_t network_layer_work(const struct network *network, uint64_t layer, enum network_pass pass,
                            uint64_t microbatch, uint64_t sequence, struct state_format format,
                            struct work_item out[LAYER_WORK_MAX]);

/* Returns the kernel that updates such states. */
enum kernel optimizer_kernel(struct state_format format);

/* --- a layer that the devices of a tensor group share --------------------------------------- */

/*
 * Returns the part of a network on one of `members` devices, as a network: a share of heads, feed-forward part and
 * vocabulary (rounded up to whole 16 bytes of 16-bit numbers), and all tensors that have only the network's width:
 * norms, biases of results that are added up, positions. Parameters and sizes of its layers are those on one device.
 * A profile is not split.
 */
struct network network_slice(const struct network *network, uint32_t members);

struct layer_share {
    uint32_t members;   /* members of the tensor group, at least 1; divides heads and feed-forward part */
    bool sequence;      /* norms and sums process rows / members, which must divide evenly */
    uint32_t precision; /* enum precision of all numbers, as in models/job/parallel.h */
};

/* Writes the kernels of a pass over a layer on one member, as network_layer_work(), except that the logits of all
 * rows exist at once. PASS_UPDATE is not supported: updates are not split by layers. */
uint32_t network_slice_work(const struct network *network, uint64_t layer, enum network_pass pass,
                            uint64_t microbatch, uint64_t sequence, struct layer_share share,
                            struct work_item out[LAYER_WORK_MAX]);

#endif
