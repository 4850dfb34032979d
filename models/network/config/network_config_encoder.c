/* config.json of bert and vit. Source: configuration_bert.py and configuration_vit.py of transformers 4.57 and 5.0. */
#include "models/network/config/network_config_parts.h"

#include <inttypes.h>

#include "base/json/json_out.h"
#include "base/size.h"
#include "base/try.h"

/* --- what bert and vit have in common ------------------------------------------------------- */

static enum status parse_encoder(struct json_object *o, struct network *n, struct error *err)
{
    n->width = 768;
    n->blocks = n->heads = 12;
    n->ff_width = 3072;
    n->norm_epsilon = 1e-12;
    n->initializer_range = 0.02;
    n->biases = true;
    TRY(json_take_u64(o, "hidden_size", JSON_OPTIONAL, 1, NETWORK_WIDTH_MAX, &n->width, err));
    TRY(json_take_u64(o, "num_hidden_layers", JSON_OPTIONAL, 1, CONFIG_BLOCKS_MAX, &n->blocks, err));
    TRY(json_take_u64(o, "num_attention_heads", JSON_OPTIONAL, 1, NETWORK_HEADS_MAX, &n->heads,
                      err));
    TRY(config_head_width(o, "num_attention_heads", "hidden_size", true, n, err));
    TRY(json_take_u64(o, "intermediate_size", JSON_OPTIONAL, 1, NETWORK_FF_MAX, &n->ff_width,
                      err));
    TRY(json_take_double(o, "layer_norm_eps", JSON_OPTIONAL, 0, CONFIG_RATIO_MAX, &n->norm_epsilon,
                         err));
    TRY(json_take_double(o, "initializer_range", JSON_OPTIONAL, 0, CONFIG_RATIO_MAX,
                         &n->initializer_range, err));
    return config_activation(o, "hidden_act", &n->gelu_tanh, err);
}

static void write_encoder(const struct network *n, struct json_out *out)
{
    json_out_u64(out, "hidden_size", n->width);
    json_out_u64(out, "num_hidden_layers", n->blocks);
    json_out_u64(out, "num_attention_heads", n->heads);
    if (n->head_width * n->heads != n->width) json_out_u64(out, "head_dim", n->head_width);
    json_out_u64(out, "intermediate_size", n->ff_width);
    json_out_string(out, "hidden_act", n->gelu_tanh ? "gelu_new" : "gelu");
    json_out_double(out, "layer_norm_eps", n->norm_epsilon);
    json_out_double(out, "initializer_range", n->initializer_range);
}

/* Refuses losses of regressions and of several labels. */
static enum status check_problem(struct json_object *o, struct error *err)
{
    static const char *const problems[] = {"single_label_classification"};
    size_t problem;
    return json_take_choice(o, "problem_type", JSON_OPTIONAL, problems, ARRAY_COUNT(problems), &problem, err);
}

/* --- bert ----------------------------------------------------------------------------------- */

enum { BERT_CLASSIFIER = 3 };
static const char *const bert_architectures[] = {"BertForMaskedLM", "BertForPreTraining", "BertModel",
                                                 [BERT_CLASSIFIER] = "BertForSequenceClassification"};

enum status config_parse_bert(struct json_object *o, struct network *n, struct error *err)
{
    size_t architecture;
    TRY(config_architecture(o, bert_architectures, ARRAY_COUNT(bert_architectures), &architecture,
                          err));
    n->pooler = architecture > 0;
    n->vocabulary = 30522;
    n->positions = 512;
    n->token_types = 2;
    n->tied_head = true;
    TRY(parse_encoder(o, n, err));
    TRY(json_take_u64(o, "vocab_size", JSON_OPTIONAL, 1, NETWORK_VOCABULARY_MAX, &n->vocabulary,
                      err));
    TRY(json_take_u64(o, "max_position_embeddings", JSON_OPTIONAL, 1, NETWORK_POSITIONS_MAX,
                      &n->positions, err));
    TRY(json_take_u64(o, "type_vocab_size", JSON_OPTIONAL, 0, NETWORK_VOCABULARY_MAX,
                      &n->token_types, err));
    n->has_padding = true; /* token 0 by default */
    TRY(config_padding(o, n, err));
    n->mask_token = n->vocabulary > NETWORK_BERT_MASK ? NETWORK_BERT_MASK : n->vocabulary - 1;
    TRY(json_take_u64(o, "mask_token_id", JSON_OPTIONAL, 0, n->vocabulary - 1, &n->mask_token,
                      err));
    TRY(json_take_bool(o, "tie_word_embeddings", JSON_OPTIONAL, &n->tied_head, err));
    if (architecture == BERT_CLASSIFIER) {
        n->tied_head = false; /* no head of words */
        n->classes = 2;
        TRY(config_classes(o, &n->classes, err));
        TRY(check_problem(o, err));
    }
    static const char *const positions[] = {"absolute"};
    size_t position;
    TRY(json_take_choice(o, "position_embedding_type", JSON_OPTIONAL, positions, 1, &position,
                         err));
    TRY(config_fixed(o, "is_decoder", false, err));
    return config_fixed(o, "add_cross_attention", false, err);
}

void config_write_bert(const struct network *n, struct json_out *out)
{
    json_out_array_begin(out, "architectures", true);
    json_out_string(out, NULL, bert_architectures[n->classes > 0 ? BERT_CLASSIFIER : n->pooler ? 1 : 0]);
    json_out_array_end(out);
    write_encoder(n, out);
    json_out_u64(out, "vocab_size", n->vocabulary);
    json_out_u64(out, "max_position_embeddings", n->positions);
    json_out_u64(out, "type_vocab_size", n->token_types);
    json_out_u64(out, "mask_token_id", n->mask_token);
    if (n->has_padding) json_out_u64(out, "pad_token_id", n->padding_token);
    else json_out_null(out, "pad_token_id");
    if (n->classes > 0) json_out_u64(out, "num_labels", n->classes);
    json_out_bool(out, "tie_word_embeddings", n->tied_head);
}

/* --- vit ------------------------------------------------------------------------------------ */

enum status config_parse_vit(struct json_object *o, struct network *n, struct error *err)
{
    static const char *const architectures[] = {"ViTForImageClassification", "ViTModel"};
    size_t architecture;
    TRY(config_architecture(o, architectures, ARRAY_COUNT(architectures), &architecture, err));
    n->image = 224;
    n->patch = 16;
    n->channels = 3;
    n->classes = 2;
    TRY(parse_encoder(o, n, err));
    TRY(json_take_u64(o, "image_size", JSON_OPTIONAL, 1, NETWORK_IMAGE_MAX, &n->image, err));
    TRY(json_take_u64(o, "patch_size", JSON_OPTIONAL, 1, NETWORK_IMAGE_MAX, &n->patch, err));
    TRY(json_take_u64(o, "num_channels", JSON_OPTIONAL, 1, NETWORK_CHANNELS_MAX, &n->channels,
                      err));
    TRY(json_take_bool(o, "qkv_bias", JSON_OPTIONAL, &n->biases, err));
    TRY(config_classes(o, &n->classes, err));
    TRY(check_problem(o, err));
    if (n->image % n->patch != 0)
        return json_fail_key(o->input, o->value, "patch_size", err,
                             "'image_size' %" PRIu64 " is not a multiple of 'patch_size' %" PRIu64,
                             n->image, n->patch);
    return STATUS_OK;
}

void config_write_vit(const struct network *n, struct json_out *out)
{
    write_encoder(n, out);
    json_out_u64(out, "image_size", n->image);
    json_out_u64(out, "patch_size", n->patch);
    json_out_u64(out, "num_channels", n->channels);
    json_out_bool(out, "qkv_bias", n->biases);
    json_out_u64(out, "num_labels", n->classes);
}
