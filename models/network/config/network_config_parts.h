/* Shared by readers and writers of config.json; only for network_config*.c. */
#ifndef SPILLWAY_MODELS_NETWORK_CONFIG_NETWORK_CONFIG_PARTS_H
#define SPILLWAY_MODELS_NETWORK_CONFIG_NETWORK_CONFIG_PARTS_H

#include "base/json/json_out.h"
#include "models/network/network.h"

enum { CONFIG_BLOCKS_MAX = NETWORK_LAYERS_MAX - 2 };
#define CONFIG_RATIO_MAX 1e6 /* epsilons, ranges */

/* Takes GELU in tanh form, or exact. */
MUST_CHECK enum status config_activation(struct json_object *object, const char *key, bool *tanh_form,
                                         struct error *err);

/* Takes "pad_token_id", by default *n's; negative values count from the vocabulary's end, null means none. */
MUST_CHECK enum status config_padding(struct json_object *object, struct network *n, struct error *err);

/* Takes a switch that must have this value or be absent. */
MUST_CHECK enum status config_fixed(struct json_object *object, const char *key, bool expected, struct error *err);

/* Takes the first of "architectures" as an index in `names`; if absent, 0. */
MUST_CHECK enum status config_architecture(struct json_object *object, const char *const *names, size_t count,
                                           size_t *out, struct error *err);

/* Takes "num_labels", or the number of labels in "id2label". */
MUST_CHECK enum status config_classes(struct json_object *object, uint64_t *out, struct error *err);

/* Takes the width; the default is an equal part of the network's. */
MUST_CHECK enum status config_head_width(struct json_object *object, const char *heads_key, const char *width_key,
                                         bool may_differ, struct network *n, struct error *err);

/* Read the rest of an object whose model_type and name are already taken. `arena` owns listed layers. */
MUST_CHECK enum status config_parse_gpt2(struct json_object *o, struct network *n, struct error *err);
MUST_CHECK enum status config_parse_llama(struct json_object *o, struct network *n, struct error *err);
MUST_CHECK enum status config_parse_opt(struct json_object *o, struct network *n, struct error *err);
MUST_CHECK enum status config_parse_gpt_neox(struct json_object *o, struct network *n, struct error *err);
MUST_CHECK enum status config_parse_gptj(struct json_object *o, struct network *n, struct error *err);
MUST_CHECK enum status config_parse_phi(struct json_object *o, struct network *n, struct error *err);
MUST_CHECK enum status config_parse_t5(struct json_object *o, struct network *n, struct error *err);
MUST_CHECK enum status config_parse_bert(struct json_object *o, struct network *n, struct error *err);
MUST_CHECK enum status config_parse_vit(struct json_object *o, struct network *n, struct error *err);
MUST_CHECK enum status config_parse_cnn(struct json_object *o, struct arena *arena, struct network *n,
                                        struct error *err);
MUST_CHECK enum status config_parse_resnet(struct json_object *o, struct arena *arena, struct network *n,
                                           struct error *err);
MUST_CHECK enum status config_parse_profile(struct json_object *o, struct arena *arena, struct network *n,
                                            struct error *err);
void config_write_gpt2(const struct network *n, struct json_out *out);
void config_write_llama(const struct network *n, struct json_out *out);
void config_write_decoder(const struct network *n, struct json_out *out); /* opt, gpt_neox, gptj, phi */
void config_write_t5(const struct network *n, struct json_out *out);
void config_write_bert(const struct network *n, struct json_out *out);
void config_write_vit(const struct network *n, struct json_out *out);
void config_write_cnn(const struct network *n, struct json_out *out);
void config_write_profile(const struct network *n, struct json_out *out);

#endif
