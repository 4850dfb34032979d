/* Sources: configuration_gpt2.py, _llama.py, _mistral.py, _gemma.py, _qwen2.py, _qwen3.py, _bert.py and _vit.py of
 * transformers 4.57 and 5.0. */
#include "models/network/network_ignored.h"

#include <stdio.h>

#include "base/try.h"
#include "models/network/network.h"

struct ignored_key {
    const char *name; /* NULL ends a family */
    uint32_t drops;   /* a sum of enum network_dropped; 0: ignored */
    bool is_switch;   /* else a probability */
    bool of_classifier;
    double absent;    /* in a config.json without the key */
};
#define SCORES(name_) {.name = name_, .drops = NETWORK_DROPS_SCORES}
#define RESULTS(name_) {.name = name_, .drops = NETWORK_DROPS_RESULTS}
#define EMBEDDING(name_) {.name = name_, .drops = NETWORK_DROPS_EMBEDDING}

static const struct ignored_key keys[NETWORK_FAMILY_COUNT][NETWORK_IGNORED_MAX] = {
    [NETWORK_GPT2] = {{.name = "embd_pdrop", .drops = NETWORK_DROPS_EMBEDDING, .absent = 0.1},
                      {.name = "resid_pdrop", .drops = NETWORK_DROPS_RESULTS, .absent = 0.1},
                      {.name = "attn_pdrop", .drops = NETWORK_DROPS_SCORES, .absent = 0.1},
                      {.name = "reorder_and_upcast_attn", .is_switch = true}},
    [NETWORK_OPT] = {{.name = "dropout", .drops = NETWORK_DROPS_RESULTS, .absent = 0.1}, SCORES("attention_dropout"),
                     {.name = "layerdrop"}},
    [NETWORK_LLAMA] = {SCORES("attention_dropout")},
    [NETWORK_MISTRAL] = {SCORES("attention_dropout")},
    [NETWORK_GEMMA] = {SCORES("attention_dropout")},
    [NETWORK_GEMMA2] = {SCORES("attention_dropout")},
    [NETWORK_GEMMA3_TEXT] = {SCORES("attention_dropout")},
    [NETWORK_QWEN2] = {SCORES("attention_dropout")},
    [NETWORK_QWEN3] = {SCORES("attention_dropout")},
    [NETWORK_MIXTRAL] = {SCORES("attention_dropout"), {.name = "router_jitter_noise"}},
    [NETWORK_QWEN3_MOE] = {SCORES("attention_dropout")},
    [NETWORK_QWEN2_MOE] = {SCORES("attention_dropout")},
    [NETWORK_GPT_NEOX] = {SCORES("attention_dropout"),
                          {.name = "hidden_dropout", .drops = NETWORK_DROPS_EMBEDDING | NETWORK_DROPS_RESULTS}},
    [NETWORK_GPTJ] = {SCORES("attn_pdrop"), EMBEDDING("embd_pdrop"), RESULTS("resid_pdrop")},
    [NETWORK_PHI] = {SCORES("attention_dropout"), EMBEDDING("embd_pdrop"), RESULTS("resid_pdrop")},
    [NETWORK_BERT] = {{.name = "hidden_dropout_prob", .absent = 0.1}, {.name = "attention_probs_dropout_prob",
                                                                       .absent = 0.1},
                      {.name = "classifier_dropout", .of_classifier = true}},
    [NETWORK_VIT] = {{.name = "hidden_dropout_prob"}, {.name = "attention_probs_dropout_prob"}},
};

double network_dropout(const struct network *n, enum network_dropped of)
{
    for (uint32_t i = 0; i < NETWORK_IGNORED_MAX && keys[n->family][i].name; i++)
        if (keys[n->family][i].drops & of) return n->ignored[i];
    return 0;
}

bool network_drops(const struct network *n)
{
    return network_dropout(n, NETWORK_DROPS_EMBEDDING) > 0 || network_dropout(n, NETWORK_DROPS_SCORES) > 0 ||
           network_dropout(n, NETWORK_DROPS_RESULTS) > 0;
}

void network_drop_nothing(struct network *n)
{
    for (uint32_t i = 0; i < NETWORK_IGNORED_MAX && keys[n->family][i].name; i++)
        if (keys[n->family][i].drops) n->ignored[i] = 0;
}

void network_forget_ignored(struct network *n)
{
    for (uint32_t i = 0; i < NETWORK_IGNORED_MAX && keys[n->family][i].name; i++)
        if (!keys[n->family][i].drops) n->ignored[i] = 0;
}

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
        if (!(n->ignored[i] > 0) || key->drops) continue;
        if (!key->is_switch) snprintf(value, sizeof value, " %g", n->ignored[i]);
        used += (size_t)snprintf(text + used, NETWORK_IGNORED_TEXT_BYTES - used, "%s%s%s", used > 0 ? ", " : "",
                                 key->name, value);
    }
    return text;
}
