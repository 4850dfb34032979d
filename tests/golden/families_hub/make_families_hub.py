#!/usr/bin/python3
"""Golden folders of the Hub's kind, trained with the modules of transformers: FAMILY/ next to this file.

Run with transformers 5.23 and torch 2.15 (CPU):  make_families_hub.py [FAMILY ...]
Each folder has config.json and sharded weights as save_pretrained() writes them, gradients.safetensors (of the first batch, under
the names of the weights' files) and golden.json: batches of tokens and the losses of 20 steps of AdamW, of which only matrices
decay. No weight is zero or one, so that each of them counts. Everything is float32.
"""
import json
import os
import pathlib
import shutil
import sys

os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_VERBOSITY="error")
import torch
import transformers as hub
from safetensors.torch import load_file, save_file

HERE = pathlib.Path(__file__).parent
STEPS, SAMPLES, TOKENS, WORDS = 20, 3, 13, 40

SHAPE = dict(vocab_size=WORDS, hidden_size=16, num_hidden_layers=3, num_attention_heads=4, max_position_embeddings=24)
GATED = dict(SHAPE, intermediate_size=24, num_key_value_heads=2, head_dim=6, attn_implementation="eager")
EXPERTS = dict(num_experts_per_tok=2, output_router_logits=False)
FAMILIES = {
    "gemma2": lambda: hub.Gemma2Config(**GATED, sliding_window=5, query_pre_attn_scalar=9, attn_logit_softcapping=2.0,
                                       final_logit_softcapping=3.0),
    "gemma3_text": lambda: hub.Gemma3TextConfig(
        **GATED, sliding_window=5, query_pre_attn_scalar=9,
        layer_types=["sliding_attention", "full_attention", "sliding_attention"],
        rope_parameters={"full_attention": {"rope_theta": 300.0, "rope_type": "linear", "factor": 4.0},
                         "sliding_attention": {"rope_theta": 20.0, "rope_type": "default"}}),
    "opt": lambda: hub.OPTConfig(**SHAPE, ffn_dim=24, word_embed_proj_dim=16, dropout=0, attn_implementation="eager"),
    "gpt_neox": lambda: hub.GPTNeoXConfig(**SHAPE, intermediate_size=24, use_parallel_residual=False, attn_implementation="eager",
                                          rope_parameters=dict(rope_theta=300.0, rope_type="default", partial_rotary_factor=0.5)),
    "mixtral": lambda: hub.MixtralConfig(**GATED, **EXPERTS, num_local_experts=5, sliding_window=7),
    "qwen3_moe": lambda: hub.Qwen3MoeConfig(**GATED, **EXPERTS, num_experts=5, moe_intermediate_size=12, norm_topk_prob=True,
                                            mlp_only_layers=[1]),
    "qwen2_moe": lambda: hub.Qwen2MoeConfig(**{k: v for k, v in GATED.items() if k != "head_dim"}, **EXPERTS, num_experts=5,
                                            moe_intermediate_size=12, shared_expert_intermediate_size=14,
                                            norm_topk_prob=False, decoder_sparse_step=2),
}


def randomize(model, name):
    """Matrices of gain one; vectors around zero, or around one where the module multiplies by them."""
    with torch.no_grad():
        for key, p in model.named_parameters():
            around = 1.0 if "norm" in key and key.endswith("weight") and "gemma" not in name else 0.0
            scale = p.shape[-1] ** -0.5 if p.dim() > 1 else 0.2
            p.copy_(torch.randn_like(p) * scale + around)


def save_gradients(model, folder):
    """Saves gradients in the place of weights, which gives them the names of the files."""
    weights = {key: p.detach().clone() for key, p in model.named_parameters()}
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.zeros_like(p) if p.grad is None else p.grad)
    model.save_pretrained(folder / "gradients")
    with torch.no_grad():
        for key, p in model.named_parameters():
            p.copy_(weights[key])
    save_file(load_file(folder / "gradients" / "model.safetensors"), folder / "gradients.safetensors", {"format": "pt"})
    shutil.rmtree(folder / "gradients")


def loss_of(model, tokens):
    return model(input_ids=tokens, labels=tokens, use_cache=False).loss


def make(name):
    folder = HERE / name
    shutil.rmtree(folder, ignore_errors=True)
    torch.manual_seed(20261129)
    model = hub.AutoModelForCausalLM.from_config(FAMILIES[name](), attn_implementation="eager").train()
    randomize(model, name)
    model.save_pretrained(folder, max_shard_size="20KB")
    (folder / "generation_config.json").unlink(missing_ok=True)
    batches = [torch.randint(2, WORDS, (SAMPLES, TOKENS)) for _ in range(STEPS)]
    loss_of(model, batches[0]).backward()
    save_gradients(model, folder)
    matrices = [p for p in model.parameters() if p.dim() > 1]
    vectors = [p for p in model.parameters() if p.dim() == 1]
    options = dict(lr=2e-3, weight_decay=0.1, beta1=0.9, beta2=0.95, epsilon=1e-8)
    optimizer = torch.optim.AdamW([dict(params=matrices), dict(params=vectors, weight_decay=0.0)], lr=options["lr"],
                                  weight_decay=options["weight_decay"], betas=(options["beta1"], options["beta2"]),
                                  eps=options["epsilon"])
    losses = []
    for tokens in batches:
        optimizer.zero_grad()
        loss = loss_of(model, tokens)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    golden = {"transformers": hub.__version__, "torch": torch.__version__, "options": options,
              "batches": [tokens.flatten().tolist() for tokens in batches], "losses": losses}
    (folder / "golden.json").write_text(json.dumps(golden) + "\n")
    print(name, losses[0], losses[-1], sum(f.stat().st_size for f in folder.iterdir()) // 1024, "KiB")


if __name__ == "__main__":
    torch.set_num_threads(1)
    for family in sys.argv[1:] or FAMILIES:
        make(family)
