/* Sources: configuration_gpt2.py, _llama.py, _mistral.py, _gemma.py, _qwen2.py, _qwen3.py, _bert.py and _vit.py of transformers 4.57 and 5.0. */
#include "models/network/network_ignored.h"

#include <stdio.h>

#include "base/try.h"
#include "models/network/network.h"

struct ignored_key {
    const char *name; /* NULL ends a family */
    bool is_switch;   /* else a probability */
    bool of_classifier;
    double absent;    /* in a config.json without the key */
};
static const struct ignored_key keys[NETWORK_FAMILY_COUNT][NETWORK_IGNORED_MAX] = {
    [NETWORK_GPT2] = {{.name = "embd_pdrop", .absent = 0.1}, {.name = "resid_pdrop", .absent = 0.1},
                      {.name = "attn_pdrop", .absent = 0.1}, {.name = "reorder_and_upcast_attn", .is_switch = true}},
    [NETWORK_LLAMA] = {{.name = "attention_dropout"}},
    [NETWORK_MISTRAL] = {{.name = "attention_dropout"}},
    [NETWORK_GEMMA] = {{.name = "attention_dropout"}},
    [NETWORK_QWEN2] = {{.name = "attention_dropout"}},
    [NETWORK_QWEN3] = {{.name = "attention_dropout"}},
    [NETWORK_GPT_NEOX] = {{.name = "attention_dropout"}, {.name = "hidden_dropout"}},
    [NETWORK_GPTJ] = {{.name = "attn_pdrop"}, {.name = "embd_pdrop"}, {.name = "resid_pdrop"}},
    [NETWORK_PHI] = {{.name = "attention_dropout"}, {.name = "embd_pdrop"}, {.name = "resid_pdrop"}},
    [NETWORK_BERT] = {{.name = "hidden_dropout_prob", .absent = 0.1}, {.name = "attention_probs_dropout_prob", .absent = 0.1},
                      {.name = "classifier_dropout", .of_classifier = true}},
    [NETWORK_VIT] = {{.name = "hidden_dropout_prob"}, {.name = "attention_probs_dropout_prob"}},
};

enum status network_ignored_parse(struct json_object *o, struct network *n, struct error *err)
{
    for (uint32_t i = 0; i < NETWORK_IGNORED_MAX && keys[n->family][i].name; i++) {
        const struct ignored_key *key = &keys[n->family][i];
        double value = 0;
        bool on = false;
        if (key->is_switch) TRY(json_take_bool(o, key->name, JSON_OPTIONAL, &on, err));
        else TRY(json_take_double(o, key->name, JSON_OPTIONAL, 0, 1, &value, err));
        if (!key->of_classifier || n->classes > 0) n->ignored[i] = on ? 1 : value;
    }
    return STATUS_OK;
}

void network_ignored_defaults(const json_t *config, struct network *n)
{
    for (uint32_t i = 0; i < NETWORK_IGNORED_MAX && keys[n->family][i].name; i++)
        if (!json_object_get(config, keys[n->family][i].name)) n->ignored[i] = keys[n->family][i].absent;
}

void network_ignored_write(const struct network *n, struct json_out *out)
{
    for (uint32_t i = 0; i < NETWORK_IGNORED_MAX && keys[n->family][i].name; i++) {
        if (!(n->ignored[i] > 0)) continue;
        if (keys[n->family][i].is_switch) json_out_bool(out, keys[n->family][i].name, true);
        else json_out_double(out, keys[n->family][i].name, n->ignored[i]);
    }
}

const char *network_ignored_text(const struct network *n, char text[NETWORK_IGNORED_TEXT_BYTES])
{
    size_t used = 0;
    text[0] = '\0';
    for (uint32_t i = 0; i < NETWORK_IGNORED_MAX && keys[n->family][i].name; i++) {
        const struct ignored_key *key = &keys[n->family][i];
        char value[32] = "";
        if (!(n->ignored[i] > 0)) continue;
        if (!key->is_switch) snprintf(value, sizeof value, " %g", n->ignored[i]);
        used += (size_t)snprintf(text + used, NETWORK_IGNORED_TEXT_BYTES - used, "%s%s%s", used > 0 ? ", " : "",
                                 key->name, value);
    }
    return text;
}
