#!/usr/bin/env python3
"""Golden adapters, trained by PEFT on the networks of make_families.py.

Run with peft, transformers and torch (made with peft 0.21.2, transformers 5.24.0, float32, one thread):  make_lora.py [FAMILY ...]
The folder of gpt2 is ../gpt2_torch. Reads FAMILY/initial.safetensors and the batches of FAMILY/adamw.json. Writes
FAMILY/config.json, the folders lora_before and lora_after as PEFT writes them, and lora.json: the loss without
adapters and the losses of five steps of AdamW.
"""
import json
import os
import pathlib
import sys
import warnings

os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_VERBOSITY="error")
warnings.filterwarnings("ignore")
import torch
import transformers
from peft import LoraConfig, get_peft_model
from safetensors.torch import load_file

import make_families as families

HERE = pathlib.Path(__file__).parent
STEPS, RATE = 5, 1e-2
LLAMA = {"rope_theta": 100.0, "rms_norm_eps": 1e-5, "num_key_value_heads": 2, "head_dim": 8}
SCALED = {"rope_type": "llama3", "rope_theta": 100.0, "factor": 4.0, "low_freq_factor": 0.25, "high_freq_factor": 1.5,
          "original_max_position_embeddings": 12}


class Gpt2:
    C, H, FF, BLOCKS, V, T, B, P = 48, 4, 192, 3, 97, 16, 3, 20


CASES = {
    "gpt2": (Gpt2, {}, ["c_attn", "c_fc"], {}),
    "llama": (families.Llama, {**LLAMA, "rope_scaling": SCALED, "rope_parameters": SCALED}, ["q_proj", "v_proj", "down_proj"], {}),
    "mistral": (families.Mistral, {**LLAMA, "sliding_window": 5}, ["q_proj", "layers.1.mlp.up_proj"], {"use_rslora": True}),
    "qwen2": (families.Qwen2, LLAMA, ["k_proj", "v_proj", "o_proj"], {}),
    "qwen3": (families.Qwen3, LLAMA, "all-linear", {"use_rslora": True}),
    "gemma": (families.Gemma, {**LLAMA, "hidden_activation": "gelu_pytorch_tanh"}, None, {}),
    "gpt_neox": (families.GptNeox, {"rotary_pct": 0.5, "rotary_emb_base": 100, "layer_norm_eps": 1e-5, "use_parallel_residual": True},
                 ["query_key_value", "dense_h_to_4h"], {}),
    "gptj": (families.Gptj, {"rotary_dim": 4, "layer_norm_epsilon": 1e-5}, ["q_proj", "fc_in", "fc_out"], {"use_rslora": True}),
    "phi": (families.Phi, {**LLAMA, "partial_rotary_factor": 0.5, "layer_norm_eps": 1e-5}, ["v_proj", "dense", "fc2"], {}),
}


def configure(name, family, extra):
    sizes = {"vocab_size": family.V, "hidden_size": family.C, "num_hidden_layers": family.BLOCKS, "num_attention_heads": family.H,
             "intermediate_size": family.FF, "max_position_embeddings": family.T, "tie_word_embeddings": name in ("gemma", "gpt2"),
             "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0,
             "attention_dropout": 0.0, "hidden_dropout": 0.0}
    if name in ("gpt2", "gptj"):
        sizes.update(n_embd=family.C, n_layer=family.BLOCKS, n_head=family.H, n_inner=family.FF, n_positions=getattr(family, "P", family.T))
        for key in ("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "max_position_embeddings"):
            del sizes[key]
    return transformers.AutoConfig.for_model(name, **{**sizes, **extra})


def read(folder, name):
    """Names of transformers, version 5."""
    weights = load_file(folder / "initial.safetensors")
    return {("transformer." if name == "gpt2" else "") + key.replace("embed_out", "lm_head"): value for key, value in weights.items()}


def loss_of(model, tokens):
    logits = model(input_ids=tokens[:, :-1]).logits
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())


def main():
    torch.set_num_threads(1)
    for name in sys.argv[1:] or CASES:
        family, extra, targets, options = CASES[name]
        folder = HERE.parent / "gpt2_torch" if name == "gpt2" else HERE / name
        config = configure(name, family, extra)
        model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager", dtype=torch.float32)
        weights = read(folder, name)
        found = model.load_state_dict(weights, strict=False)
        assert not found.unexpected_keys and set(found.missing_keys) <= {"lm_head.weight"} and (
            not found.missing_keys or config.tie_word_embeddings), found
        config.architectures = [type(model).__name__]
        config.save_pretrained(folder)
        record = json.loads((folder / "adamw.json").read_text())
        batches = [torch.tensor(batch).view(family.B, family.T + 1) for batch in record["batches"][:STEPS]]
        with torch.no_grad():
            first = loss_of(model, batches[0]).item()
        torch.manual_seed(20261129)
        lora = LoraConfig(r=4, lora_alpha=6, target_modules=targets, lora_dropout=0.0, task_type="CAUSAL_LM", **options)
        model = get_peft_model(model, lora).train()
        with torch.no_grad():  # A has gradients at once
            for key, value in model.named_parameters():
                if "lora_B" in key:
                    value.normal_(0, 0.1)
        model.save_pretrained(folder / "lora_before")
        trained = [value for value in model.parameters() if value.requires_grad]
        optimizer = torch.optim.AdamW(trained, lr=RATE, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0)
        losses = []
        for batch in batches:
            optimizer.zero_grad()
            loss = loss_of(model, batch)
            loss.backward()
            losses.append(loss.item())
            optimizer.step()
        model.save_pretrained(folder / "lora_after")
        for case in ("lora_before", "lora_after"):
            (folder / case / "README.md").unlink(missing_ok=True)
        (folder / "generation_config.json").unlink(missing_ok=True)
        (folder / "lora.json").write_text(json.dumps({"lr": RATE, "first_loss": first, "losses": losses}) + "\n")
        print(name, first, losses)


if __name__ == "__main__":
    main()
