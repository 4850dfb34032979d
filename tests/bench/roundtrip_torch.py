#!/usr/bin/python3
"""A config.json and a model.safetensors, read here and by PyTorch: do both see the same network?

usage: /usr/bin/python3 tests/bench/roundtrip_torch.py [BUILD]      (Debian's python3-torch; not part of ctest)

For a small GPT-2 and a small Llama with random weights, and every word w of the vocabulary, a job
takes one step at a rate of nothing on a text whose last word is w. T times its loss is a constant less
the logit of w at the last place, so the losses of all jobs are the logits, which are compared with
PyTorch's. The weights that a job writes must be those that it read, bit by bit.
"""
import json
import pathlib
import struct
import subprocess
import sys
import tempfile

import torch
import torch.nn.functional as F

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/golden/families_torch"))
from make_families import Llama, attend, heads_of, normal, write_safetensors  # noqa: E402

WORDS, TOKENS = 48, 12
TOLERANCE = 1e-4  # T times the rounding of a loss of about 5


class Gpt2:
    """Reads what transformers' GPT2LMHeadModel reads of a config.json."""

    CONFIG = {"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "n_embd": 24,
              "n_layer": 3, "n_head": 4, "n_positions": 16, "vocab_size": WORDS,
              "layer_norm_epsilon": 1e-5, "activation_function": "gelu_new",
              "torch_dtype": "float32", "n_inner": None}

    def __init__(self, config):
        self.c, self.blocks = config["n_embd"], config["n_layer"]
        self.heads, self.epsilon = config["n_head"], config["layer_norm_epsilon"]
        self.v, self.positions = config["vocab_size"], config["n_positions"]

    def parameters(self):
        c = self.c
        p = {"wte.weight": normal(self.v, c), "wpe.weight": normal(self.positions, c)}
        for i in range(self.blocks):
            for name, inner, outer in (("attn.c_attn", c, 3 * c), ("attn.c_proj", c, c),
                                       ("mlp.c_fc", c, 4 * c), ("mlp.c_proj", 4 * c, c)):
                p[f"h.{i}.{name}.weight"] = normal(inner, outer)
                p[f"h.{i}.{name}.bias"] = normal(outer, scale=0.1)
            for name in ("ln_1", "ln_2"):
                p[f"h.{i}.{name}.weight"] = 1 + normal(c)
                p[f"h.{i}.{name}.bias"] = normal(c)
        p["ln_f.weight"], p["ln_f.bias"] = 1 + normal(c), normal(c)
        return p

    def logits(self, p, tokens):
        def linear(name, x):
            return x @ p[name + ".weight"] + p[name + ".bias"]

        def norm(name, x):
            return F.layer_norm(x, (self.c,), p[name + ".weight"], p[name + ".bias"], self.epsilon)

        x = p["wte.weight"][tokens] + p["wpe.weight"][:tokens.shape[1]]
        for i in range(self.blocks):
            qkv = linear(f"h.{i}.attn.c_attn", norm(f"h.{i}.ln_1", x)).split(self.c, dim=2)
            x = x + linear(f"h.{i}.attn.c_proj",
                           attend(*(heads_of(z, self.heads) for z in qkv), True))
            inner = linear(f"h.{i}.mlp.c_fc", norm(f"h.{i}.ln_2", x))
            inner = 0.5 * inner * (1 + torch.tanh((2 / torch.pi) ** 0.5
                                                  * (inner + 0.044715 * inner ** 3)))
            x = x + linear(f"h.{i}.mlp.c_proj", inner)
        return norm("ln_f", x) @ p["wte.weight"].T


class LlamaOfConfig(Llama):
    """Reads what transformers' LlamaForCausalLM reads of a config.json, in the spelling of 5."""

    CONFIG = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 24,
              "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2,
              "head_dim": 8, "intermediate_size": 40, "vocab_size": WORDS, "rms_norm_eps": 1e-5,
              "max_position_embeddings": 64, "hidden_act": "silu", "tie_word_embeddings": False,
              "rope_parameters": {"rope_type": "llama3", "rope_theta": 300.0, "factor": 8.0,
                                  "low_freq_factor": 0.5, "high_freq_factor": 2.0,
                                  "original_max_position_embeddings": 16},
              "dtype": "float32", "attention_bias": False, "mlp_bias": False}

    def __init__(self, config):
        rope = config["rope_parameters"]
        self.C, self.FF = config["hidden_size"], config["intermediate_size"]
        self.H, self.K = config["num_attention_heads"], config["num_key_value_heads"]
        self.D, self.BLOCKS, self.V = config["head_dim"], config["num_hidden_layers"], WORDS
        self.EPSILON, self.THETA = config["rms_norm_eps"], rope["rope_theta"]
        self.FACTOR, self.LOW = rope["factor"], rope["low_freq_factor"]
        self.HIGH, self.ORIGINAL = rope["high_freq_factor"], rope["original_max_position_embeddings"]


def run(build, folder, *arguments):
    subprocess.run([build / "spillway", *arguments], cwd=folder, check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def logits_of(build, folder, prompt):
    """By way of losses; less their mean."""
    jobs = []
    for word in range(WORDS):
        data = struct.pack(f"<{TOKENS + 1}H", *prompt, word)
        (folder / f"{word}.bin").write_bytes(data)
        jobs.append({"name": f"word-{word}", "data": f"{word}.bin"})
    jobs[0]["weights_out"] = "written.safetensors"
    defaults = {"network": "config.json", "sequence": TOKENS, "minibatches": 1,
                "data_format": "nanogpt", "weights_in": "model.safetensors",
                "optimizer": {"kind": "sgd", "lr": 1e-30}}
    (folder / "jobs.json").write_text(json.dumps(
        {"spillway_jobs": 1, "defaults": defaults, "jobs": jobs}))
    run(build, folder, "plan", "jobs.json", "--hw", "../hardware.json", "--devices", "1",
        "--device-memory", "2MiB", "-o", "plan.json")
    run(build, folder, "run", "plan.json", "--log", "run.jsonl")
    losses = {}
    for line in (folder / "run.jsonl").read_text().splitlines():
        entry = json.loads(line)
        if "loss" in entry:
            losses[entry["job"]] = entry["loss"]
    logits = -TOKENS * torch.tensor([losses[f"word-{w}"] for w in range(WORDS)], dtype=torch.double)
    return logits - logits.mean()


def compare(build, top, name, family):
    folder = top / name
    folder.mkdir()
    torch.manual_seed(7)
    (folder / "config.json").write_text(json.dumps(family.CONFIG))
    network = family(json.loads((folder / "config.json").read_text()))
    p = network.parameters()
    write_safetensors(folder / "model.safetensors", p)
    prompt = torch.randint(WORDS, (1, TOKENS))
    expected = network.logits(p, prompt)[0, -1].double()
    expected -= expected.mean()
    found = logits_of(build, folder, prompt[0].tolist())
    error = (found - expected).abs().max().item()
    same = tensors(folder / "written.safetensors") == tensors(folder / "model.safetensors")
    print(f"{name}: {WORDS} logits of {expected.abs().max():.3g} at most differ by {error:.1e} at "
          f"most; weights written {'are' if same else 'are NOT'} those read")
    return error <= TOLERANCE and same


def tensors(path):
    raw = path.read_bytes()
    length = struct.unpack("<Q", raw[:8])[0]
    header = json.loads(raw[8:8 + length])
    header.pop("__metadata__", None)
    return {name: (entry["dtype"], entry["shape"],
                   raw[8 + length + entry["data_offsets"][0]:8 + length + entry["data_offsets"][1]])
            for name, entry in header.items()}


def main():
    build = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build").resolve()
    with tempfile.TemporaryDirectory() as top:
        top = pathlib.Path(top)
        run(build, top, "measure", "-o", "hardware.json", "--budget", "2s")
        good = [compare(build, top, "gpt2", Gpt2), compare(build, top, "llama", LlamaOfConfig)]
    sys.exit(0 if all(good) else 1)


if __name__ == "__main__":
    main()
