/*
 * Networks, layer by layer: parameters, work, activations.
 *
 * A network is a chain of layers: one embedding, blocks (of t5 first an encoder's, then a decoder's), one head; or
 * layers that are listed one by one, all LAYER_OPAQUE, of operations (models/network/network_graph.h) or known by a measured
 * profile only. Every figure follows from the fields of struct network; the executor allocates by the same tables
 * (models/job/memory.h) that the planner counts by.
 *
 * Sources: Hugging Face transformers' config.json, both the version 4 and 5 spellings; shapes of
 * Hydra's networks from arXiv 2110.08633 and its released code.
 */
#ifndef SPILLWAY_MODELS_NETWORK_H
#define SPILLWAY_MODELS_NETWORK_H

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
    NETWORK_OPT, NETWORK_GPT_NEOX, NETWORK_GPTJ, NETWORK_PHI, /* decoders more, which models/network/network_traits.h tells
                        apart: planned and simulated, and not carried out */
    NETWORK_MISTRAL, NETWORK_GEMMA, NETWORK_QWEN2, NETWORK_QWEN3, NETWORK_MIXTRAL, NETWORK_QWEN3_MOE,
    NETWORK_QWEN2_MOE, NETWORK_GEMMA3_TEXT,
    NETWORK_T5, NETWORK_MT5, NETWORK_UMT5, /* encoder and decoder (models/network/network_t5.h); planned and simulated, and
                        not carried out */
    NETWORK_CNN,     /* operations on images (models/network/network_graph.h); planned and simulated, and not carried out */
    NETWORK_RESNET,  /* config.json alone: what is read is a NETWORK_CNN */
    NETWORK_PROFILE, /* layers with given seconds and bytes */
    NETWORK_FAMILY_COUNT
};
extern const char *const network_family_names[NETWORK_FAMILY_COUNT]; /* as model_type spells them */

enum layer_kind { LAYER_EMBEDDING, LAYER_BLOCK, LAYER_HEAD, LAYER_OPAQUE };

struct network_graph;

/* A layer of a NETWORK_PROFILE network, for one microbatch, or for `profile_samples` of a network. */
struct layer_profile {
    uint64_t parameter_bytes;
    uint64_t activation_bytes; /* kept for the backward pass */
    uint64_t boundary_bytes;   /* passed to the next layer */
    uint64_t forward_ns, backward_ns; /* backward without recomputation */
};

/*
 * Limits on shapes: about a thousand times past what has been published, and low enough that no
 * product of shapes of a checked job (models/job/job.h) leaves 64 bits.
 */
enum { LAYERS_MAX = 100000 }; /* the deepest published network has about 1000 */
enum {
    NETWORK_WIDTH_MAX = 1 << 20,
    NETWORK_HEADS_MAX = 1 << 16,
    NETWORK_FF_MAX = 1 << 23,
    NETWORK_VOCABULARY_MAX = 1 << 24, /* token ids fit 32 bits with room; also classes */
    NETWORK_POSITIONS_MAX = 1 << 22,
    NETWORK_IMAGE_MAX = 1 << 14,
    NETWORK_CHANNELS_MAX = 1 << 10,
    NETWORK_EXPERTS_MAX = 1 << 12
};
enum { NETWORK_PROFILE_SAMPLES_MAX = 1 << 20 }; /* as many as a microbatch may have */
enum { NETWORK_BERT_MASK = 103 }; /* [MASK] in the vocabularies that BERT was published with */
#define NETWORK_PARAMETERS_MAX (UINT64_C(1) << 48)
#define NETWORK_PROFILE_BYTES_MAX (UINT64_C(1) << 48) /* of one layer */
#define NETWORK_PROFILE_NS_MAX (UINT64_C(1) << 48)    /* about three days */

/*
 * Rotary positions: elements i and i + D/2 of a head are turned together by position * frequency(i),
 * with frequency(i) = theta^(-2i / D), which a kind may make smaller to reach longer contexts.
 */
enum rope_kind {
    ROPE_DEFAULT,
    ROPE_LINEAR, /* frequency / factor */
    ROPE_LLAMA3, /* wavelengths beyond original_positions / low_factor are divided by factor, those below
                    original_positions / high_factor left alone, between them it is interpolated */
    ROPE_KIND_COUNT
};
struct rope {
    uint32_t kind; /* enum rope_kind */
    double theta;
    double factor;                  /* linear, llama3 */
    double low_factor, high_factor; /* llama3 */
    uint64_t original_positions;    /* llama3 */
};

/* Radians per position of pair `pair` of heads of width `head_width`. */
double rope_frequency(const struct rope *rope, uint64_t pair, uint64_t head_width);

struct network {
    char name[128];     /* "gpt2", or the path of the config.json */
    uint32_t family;    /* enum network_family */
    uint64_t layer_count; /* embedding and head included */
    uint64_t width, heads, head_width, ff_width, blocks;
    uint64_t kv_heads;  /* heads of keys and values; 0: as many as `heads` */
    uint64_t rotary_width; /* elements of a head that are turned; 0: all, where any are */
    uint64_t experts, experts_chosen; /* feed-forward parts of a block, and those of a token; 0, 0: one for all */
    uint64_t shared_width; /* qwen2_moe: columns of the part that all tokens go through beside their experts; 0: none */
    uint64_t encoder_blocks;   /* so many of `blocks`, the first, are an encoder's; 0: there is none */
    uint64_t decoder_tokens;   /* of a sample, where there is an encoder; 0: as many as the encoder's */
    uint64_t relative_buckets; /* t5: distances that its tables of relative positions tell apart */
    uint64_t vocabulary, positions, token_types; /* text; llama's positions are a limit only, t5's a usual length */
    uint64_t mask_token; /* bert: the token that stands for a masked one; below `vocabulary` */
    uint64_t word_width; /* opt-350m: columns of the table of words, which a matrix leads from and to; 0: `width` */
    uint64_t image, patch, channels;    /* ViT */
    uint64_t classes;   /* ViT, and of a BERT that tells classes of its samples apart; 0: the head guesses words */
    double norm_epsilon;
    bool tied_head;     /* the head multiplies by the embedding's token table */
    bool causal;
    bool biases;        /* of the q, k and v projections (ViT's qkv_bias); all others have them */
    bool pooler;        /* BERT: the pooler, and the next-sentence classifier behind it, or that of `classes` */
    bool post_norm;     /* opt-350m: norms behind their sums, as BERT's are, and none in front of the head */
    bool gated;         /* t5: the feed-forward part multiplies a gate in */
    bool gelu_tanh;     /* GELU's tanh form ("gelu_new"), else the exact one */
    double initializer_range;
    struct rope rope;   /* llama */
    bool has_padding;   /* bert, llama: lookups of `padding_token` leave no gradient in its row, as torch.nn.Embedding's */
    uint64_t padding_token; /* padding_idx; heads that are tied to the table reach the row all the same */
    double ignored[NETWORK_IGNORED_MAX]; /* values of the family's keys that training leaves out; 0: not there */
    const struct layer_profile *profile; /* layer_count entries; NULL unless NETWORK_PROFILE */
    uint64_t profile_samples; /* what of it holds for, as many times as a microbatch has; 0: for a microbatch */
    const struct network_graph *graph; /* of operations; NULL for a network of blocks, and a profile */
};

/*
 * A tensor of a layer. Dimensions are as stored in the safetensors file (gpt2 stores linear weights
 * as (in, out): Conv1D), so shape products are exact parameter counts.
 */
enum tensor_init {
    INIT_ZERO,
    INIT_ONE,
    INIT_NORMAL,         /* of standard deviation initializer_range */
    INIT_NORMAL_RESIDUAL /* the same, times 1 / sqrt(2 blocks) */
};
struct tensor_spec {
    char name[96];      /* Hugging Face's name, such as "h.3.attn.c_attn.weight" */
    uint32_t rank;
    uint64_t shape[4];
    uint64_t elements;  /* product of shape */
    enum tensor_init init;
    bool matrix;        /* a matrix of a product, or a table of rows: takes weight decay, and is bf16 in
                           jobs of that precision; biases, norms and what is added to rows are not */
};
enum { LAYER_TENSORS_MAX = 32 };

/*
 * Read a Hugging Face config.json. An unknown model_type is an error that lists the known ones;
 * keys that do not matter here are accepted. `arena` owns what the network points to.
 *
 * model_type   architectures (absent: the first)             head
 * gpt2         GPT2LMHeadModel, GPT2Model                    language model
 * llama        LlamaForCausalLM, LlamaModel                  language model
 * bert         BertForMaskedLM, BertForPreTraining,          masked language model; the others with
 *              BertModel                                     pooler and next-sentence classifier;
 *              BertForSequenceClassification                 pooler and a classifier, of no words
 * vit          ViTForImageClassification, ViTModel           classifier
 * opt, gpt_neox, gptj, phi, mistral, gemma, gemma3_text, qwen2, qwen2_moe, qwen3, mixtral, qwen3_moe
 *              ...ForCausalLM, ...Model                      language model (models/network/network_traits.h)
 * t5, mt5, umt5
 *              T5ForConditionalGeneration, T5Model (MT5...)   language model behind the decoder
 * resnet       ResNetForImageClassification, ResNetModel       classifier; a NETWORK_CNN
 * any          -            with "text_config", the text model of a network of text and images: that alone is read,
 *                           and the name says so ("llava/config.json, its text model")
 * cnn          -                                             NETWORK_CNN, below
 * profile      -                                             NETWORK_PROFILE, below
 *
 * llama's rotary positions are read in the spelling of transformers 4 (rope_theta, rope_scaling) and
 * of 5 (rope_parameters).
 * Beyond Hugging Face's keys: "name" (else the path), for bert "mask_token_id" (103, as in BERT's own
 * vocabulary, or the last token of a smaller one), and for bert and vit "head_dim" where it is
 * not hidden_size / num_attention_heads. Dropout is not modelled: training runs without (models/network/network_ignored.h).
 *
 *     {"model_type": "profile", "name": "resnet50", "layers": [
 *         {"parameter_bytes": 9408, "activation_bytes": 8388608, "boundary_bytes": 4194304,
 *          "forward": "1.5ms", "backward_ns": 2900000, "repeat": 3}, ...]}
 *
 * Every layer of a profile is LAYER_OPAQUE, and so is a shard made of any of them: shard 0 holds
 * layers like any other. Times are for one microbatch and the same on every device; the update
 * costs nothing. "samples": 64 says that they were measured with so many, and then hold for each other
 * microbatch in proportion, parameters excepted; "measured_on" may name the device.
 *
 *     {"model_type": "profile", "text": "vgg16.txt", "samples": 64}
 *
 * takes the layers from a text of PipeDream's profiler beside the file (models/network/profile_text.h).
 *
 *     {"model_type": "cnn", "name": "small", "num_channels": 3, "image_size": 32, "operations": [
 *         {"layer": "stem", "kind": "convolution", "channels": 16, "kernel": 3, "padding": 1},
 *         {"kind": "relu"}, {"layer": "top", "kind": "linear", "channels": 10, "bias": true}, {"kind": "loss"}]}
 *
 * An operation reads the one in front, or "from": [3, 7], counted from 1; 0 is the image. "preset": "resnet-50"
 * in place of the operations takes those, and "image_size" may then be absent. "image_size" of resnet is
 * Spillway's own: 224 where it is absent.
 */
MUST_CHECK enum status network_read_config(const char *path, struct arena *arena,
                                           struct network *out, struct error *err);

/* The same for an object inside another file (a plan, a jobs file). */
MUST_CHECK enum status network_parse(const struct json_input *in, const json_t *value,
                                     const char *name, struct arena *arena, struct network *out,
                                     struct error *err);

/*
 * By preset name ("gpt2-xl", "hydra-bert-1b", ...), by the id that the hub has it under ("Qwen/Qwen3-8B": the preset,
 * whatever folders there are; "./Qwen/Qwen3-8B" is a path) or, if it has another slash or ends in .json or .txt, by
 * path (a folder, also without a slash, means its config.json, .txt a text of a profiler: of a microbatch, whatever its size). The error of an
 * unknown name suggests the nearest preset, or, of a path that is not there, the nearest id. STATUS_BAD_INPUT.
 */
MUST_CHECK enum status network_find(const char *name_or_path, struct arena *arena,
                                    struct network *out, struct error *err);

/* Would network_find() take it for a path? */
bool network_is_path(const char *name_or_path);

/*
 * Finds the network that `owner` has under "network" as `text`: the name of a preset, or `path`, which is that text as seen
 * from its file and may be a folder with a config.json. Errors: those of network_find(); of a name with the place.
 */
MUST_CHECK enum status network_take_text(const struct json_input *in, const json_t *owner, const char *text, const char *path,
                                         struct arena *arena, struct network *out, struct error *err);

/* What an object of a file has under "network": such a name, a path beside the file, or an object as config.json has it.
 * Errors: those of network_find(), with the place. */
MUST_CHECK enum status network_take(struct json_object *object, struct arena *arena, struct network *out,
                                    struct error *err);

/* Presets in the order of the table; NULL past the end. */
const char *network_preset_name(uint32_t index);
const char *network_preset_source(uint32_t index); /* where its shape comes from */

/* Write it so that network_parse() reads the same network back. */
void network_write(const struct network *network, struct json_out *out, const char *key);

/* Are its layers listed one by one, without embedding, blocks and head? */
static inline bool network_is_listed(const struct network *network)
{
    return network->family == NETWORK_PROFILE || network->graph;
}

/* Of a figure of a profile's layer, that of `microbatch` samples. */
uint64_t network_profile_share(const struct network *network, uint64_t figure, uint64_t microbatch);

/* Layer `layer` exists. Cost: O(1), as everything about layers below. */
enum layer_kind network_layer_kind(const struct network *network, uint64_t layer);

/* The run of equal layers that `layer` is in, from its first to behind its last: they have the same tensors, work and
 * activations. */
uint64_t network_alike_begin(const struct network *network, uint64_t layer);
uint64_t network_alike_end(const struct network *network, uint64_t layer);

/* The tensors of one layer; a tied head's token table is not among the head's. Returns how many. */
uint32_t network_layer_tensors(const struct network *network, uint64_t layer,
                               struct tensor_spec out[LAYER_TENSORS_MAX]);

/* The same without names, which are empty: several times as fast. */
uint32_t network_layer_shapes(const struct network *network, uint64_t layer,
                              struct tensor_spec out[LAYER_TENSORS_MAX]);

uint64_t network_layer_parameters(const struct network *network, uint64_t layer);
uint64_t network_parameters(const struct network *network);

/* Those that a token meets: of experts the chosen ones. */
uint64_t network_active_parameters(const struct network *network);

/* Heads of keys and values. */
uint64_t network_kv_heads(const struct network *network);

/* Rows of width C that a text network's embedding tables have: tokens, then gpt2's and bert's
 * positions, then bert's token types. */
uint64_t network_table_rows(const struct network *network);

/* Tokens per sample that layers hand on: `sequence` for text, (image/patch)^2 + 1 for ViT, `sequence` for listed layers;
 * for t5 those of encoder and decoder together, `sequence` being the encoder's. */
uint64_t network_tokens(const struct network *network, uint64_t sequence);

/* Tokens per sample that a layer computes on, which are fewer in blocks and head of t5. */
uint64_t network_layer_tokens(const struct network *network, uint64_t layer, uint64_t sequence);

/* Is it a block that attends to an encoder's result; and the first of them? */
bool network_crosses(const struct network *network, uint64_t layer);
static inline bool network_joins(const struct network *network, uint64_t layer)
{
    return network_crosses(network, layer) && layer == network->encoder_blocks + 1;
}

/* Does it refuse longer sequences than it has positions? */
static inline bool network_is_limited(const struct network *network)
{
    return network->positions > 0 && network->family != NETWORK_VIT && network->encoder_blocks == 0;
}

/* --- work ----------------------------------------------------------------------------------- */

enum pass {
    PASS_FORWARD,
    PASS_BACKWARD, /* gradients only: recomputation and update are passes of their own */
    PASS_UPDATE,
    PASS_RECOMPUTE, /* forward as far as this layer's own backward pass needs it: a pre-norm block
                       leaves its last product and sum out, for nothing reads its output */
    PASS_RECOMPUTE_CORE, /* attention alone, from q, k and v */
    PASS_INPUT, PASS_WEIGHT, /* PASS_BACKWARD in two: the gradient of the layer's input, for which the
                       layers in front wait, and those of its matrices and biases, for which none does
                       (norms make theirs with the former, an embedding all with the latter) */
    PASS_COUNT
};

/* A kind is an update and what it remembers of each parameter. */
enum optimizer_kind {
    OPTIMIZER_SGD,
    OPTIMIZER_ADAMW,
    OPTIMIZER_MOMENTUM, /* sgd with momentum */
    OPTIMIZER_COUNT
};
extern const char *const optimizer_names[OPTIMIZER_COUNT];

/* Moments per parameter: sgd 0, momentum 1, adamw 2. */
uint32_t optimizer_moments(uint32_t optimizer);

/*
 * Rows of logits that exist at a time. The head of a language model takes its R = B T rows in pieces of
 * this many, the last one what is left: words, loss and gradients of one piece before the next, in one
 * place. R when they are few; of the shape alone, so that neither a plan nor the memory it is for
 * changes a bit of what is computed. `rows` is not 0.
 */
uint64_t network_logit_rows(const struct network *network, uint64_t rows);

enum { LAYER_WORK_MAX = 64 };

/*
 * The kernels of one pass over one layer for B samples of T tokens, equal ones merged by `count`.
 * PASS_UPDATE ignores B and T, and leaves a tied table to the embedding. The loss belongs to the
 * head's forward pass, which makes its gradient too; both passes list its words piece by piece.
 * Returns the number of items.
 */
uint32_t network_layer_work(const struct network *network, uint64_t layer, enum pass pass,
                            uint64_t microbatch, uint64_t sequence, struct state_format format,
                            struct work_item out[LAYER_WORK_MAX]);

/* The kernel that updates such states. */
enum kernel optimizer_kernel(struct state_format format);

/* --- a layer that the devices of a tensor group share --------------------------------------- */

/*
 * What one of `members` devices has of a network: a network with a share of its heads, feed-forward part and
 * words (rounded up to whole 16 bytes of 16-bit numbers), and all of what has the network's width alone: norms,
 * biases of results that are added up, positions. Parameters and sizes of its layers are those on that device. A profile
 * is not cut.
 */
struct network network_slice(const struct network *network, uint32_t members);

struct layer_share {
    uint32_t members;   /* of the tensor group, at least 1; divides heads and feed-forward part */
    bool sequence;      /* norms and sums are of rows / members, which it then divides */
    uint32_t precision; /* enum precision: of all numbers, as models/job/parallel.h says */
};

/* The kernels of a pass over a layer on one of them, as network_layer_work() has them, but the logits of
 * all rows are there at once. No PASS_UPDATE: what is updated is not a matter of layers. */
uint32_t network_slice_work(const struct network *network, uint64_t layer, enum pass pass,
                            uint64_t microbatch, uint64_t sequence, struct layer_share share,
                            struct work_item out[LAYER_WORK_MAX]);

#endif
