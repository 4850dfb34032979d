#!/usr/bin/python3
"""Golden training runs of a tiny network of each family, written with PyTorch's operations.

Run with Debian's python3-torch (made with 1.13.0):  /usr/bin/python3 make_families.py [FAMILY ...]
Writes FAMILY/ next to itself: initial.safetensors, and for adamw and sgd KIND.json (options, batches,
losses, norms of the last step's gradients and of the weights after it) and adamw.safetensors (those
weights). Names are Hugging Face's, linear weights are (out, in). Training is in float32 throughout. A batch is written as
the executor has it: whole numbers, and for pixels numbers with a point.
"""
import json
import math
import pathlib
import struct
import sys

import torch
import torch.nn.functional as F

HERE = pathlib.Path(__file__).parent
STEPS = 20


def normal(*shape, scale=0.2):
    return torch.randn(*shape) * scale


def write_safetensors(path, tensors):
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for name, tensor in tensors.items():
        raw = tensor.detach().contiguous().numpy().astype("<f4").tobytes()
        header[name] = {"dtype": "F32", "shape": list(tensor.shape),
                        "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def heads_of(x, heads):
    return x.view(x.shape[0], x.shape[1], heads, -1).transpose(1, 2)


def attend(q, k, v, causal, window=0):
    """(B, H, T, D) each; (B, T, H D) out. A window is a number of tokens up to the query's own; 0: all."""
    scores = q @ k.transpose(2, 3) / math.sqrt(q.shape[3])
    if causal:
        ones = torch.ones(q.shape[2], q.shape[2], dtype=torch.bool)
        mask = ones.triu(1) | ones.tril(-window) if window else ones.triu(1)
        scores = scores.masked_fill(mask, -math.inf)
    return (scores.softmax(dim=3) @ v).transpose(1, 2).flatten(2)


class Llama:
    C, H, K, D, FF, BLOCKS, V, T, B, EPSILON = 32, 4, 2, 8, 56, 3, 61, 16, 3, 1e-5
    THETA, FACTOR, LOW, HIGH, ORIGINAL = 100.0, 4.0, 0.25, 1.5, 12
    BIASES, QK_NORM, LESS_ONE, TIED, WINDOW = False, False, False, False, 0

    def parameters(self):
        p = {"model.embed_tokens.weight": normal(self.V, self.C)}
        for i in range(self.BLOCKS):
            block = f"model.layers.{i}."
            for name, out, inner in (("self_attn.q_proj", self.H * self.D, self.C),
                                     ("self_attn.k_proj", self.K * self.D, self.C),
                                     ("self_attn.v_proj", self.K * self.D, self.C),
                                     ("self_attn.o_proj", self.C, self.H * self.D),
                                     ("mlp.gate_proj", self.FF, self.C),
                                     ("mlp.up_proj", self.FF, self.C),
                                     ("mlp.down_proj", self.C, self.FF)):
                p[block + name + ".weight"] = normal(out, inner)
                if self.BIASES and name in ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"):
                    p[block + name + ".bias"] = normal(out)
            for name in ("self_attn.q_norm", "self_attn.k_norm") if self.QK_NORM else ():
                p[block + name + ".weight"] = 1 + normal(self.D)
            for name in ("input_layernorm", "post_attention_layernorm"):
                p[block + name + ".weight"] = self.first_norm() + normal(self.C)
        p["model.norm.weight"] = self.first_norm() + normal(self.C)
        if not self.TIED:
            p["lm_head.weight"] = normal(self.V, self.C)
        return p

    def first_norm(self):
        return 0 if self.LESS_ONE else 1

    def batches(self):
        return [torch.randint(self.V, (self.B, self.T + 1)) for _ in range(STEPS)]

    def written(self, batch):
        return batch.flatten().tolist()

    def norm(self, p, name, x):
        weight = 1 + p[name + ".weight"] if self.LESS_ONE else p[name + ".weight"]
        return weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.EPSILON))

    def turned(self, tokens):
        """Cosines and sines (T, D), with frequencies scaled as rope_type llama3 does if there is a factor."""
        frequencies = []
        for i in range(self.D // 2):
            f = self.THETA ** (-2 * i / self.D)
            length = 2 * math.pi / f
            if self.FACTOR == 1:
                pass
            elif length > self.ORIGINAL / self.LOW:
                f /= self.FACTOR
            elif length >= self.ORIGINAL / self.HIGH:
                smooth = (self.ORIGINAL / length - self.LOW) / (self.HIGH - self.LOW)
                f = (1 - smooth) * f / self.FACTOR + smooth * f
            frequencies.append(f)
        angles = torch.arange(tokens).float()[:, None] * torch.tensor(frequencies)
        angles = torch.cat((angles, angles), dim=1)
        return angles.cos(), angles.sin()

    @staticmethod
    def turn(x, cosines, sines):
        half = x.shape[-1] // 2
        return x * cosines + torch.cat((-x[..., half:], x[..., :half]), dim=-1) * sines

    def logits(self, p, tokens):
        x = p["model.embed_tokens.weight"][tokens]
        if self.LESS_ONE:
            x = x * torch.tensor(self.C ** 0.5)
        cosines, sines = self.turned(tokens.shape[1])
        for i in range(self.BLOCKS):
            block = f"model.layers.{i}."
            normed = self.norm(p, block + "input_layernorm", x)
            q, k, v = (heads_of(F.linear(normed, p[block + f"self_attn.{n}_proj.weight"],
                                         p.get(block + f"self_attn.{n}_proj.bias")), heads)
                       for n, heads in (("q", self.H), ("k", self.K), ("v", self.K)))
            if self.QK_NORM:
                q, k = (self.norm(p, block + f"self_attn.{n}_norm", z) for n, z in (("q", q), ("k", k)))
            q, k = self.turn(q, cosines, sines), self.turn(k, cosines, sines)
            k, v = (z.repeat_interleave(self.H // self.K, dim=1) for z in (k, v))
            attended = attend(q, k, v, True, self.WINDOW)
            x = x + F.linear(attended, p[block + "self_attn.o_proj.weight"])
            normed = self.norm(p, block + "post_attention_layernorm", x)
            gated = self.activation(F.linear(normed, p[block + "mlp.gate_proj.weight"]))
            gated = gated * F.linear(normed, p[block + "mlp.up_proj.weight"])
            x = x + F.linear(gated, p[block + "mlp.down_proj.weight"])
        return F.linear(self.norm(p, "model.norm", x), p["model.embed_tokens.weight" if self.TIED else "lm_head.weight"])

    def activation(self, x):
        return F.gelu(x, approximate="tanh") if self.LESS_ONE else F.silu(x)

    def loss(self, p, tokens):
        logits = self.logits(p, tokens[:, :-1])
        return F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())

    def decays(self, name, value):
        return value.dim() == 2


class Mistral(Llama):
    FACTOR, WINDOW = 1.0, 5


class Qwen2(Llama):
    FACTOR, BIASES = 1.0, True


class Qwen3(Llama):
    FACTOR, QK_NORM = 1.0, True


class Gemma(Llama):
    FACTOR, LESS_ONE, TIED = 1.0, True, True


class GptNeox:
    """Two norms, one tensor of q, k and v head by head, exact GELU; the base of gptj and phi."""
    C, H, K, D, FF, BLOCKS, V, T, B, EPSILON, THETA, TURNED = 32, 4, 4, 8, 56, 3, 61, 16, 3, 1e-5, 100.0, 4
    WORDS, LAYERS, NORM, HEAD = "gpt_neox.embed_in", "gpt_neox.layers.", "gpt_neox.final_layer_norm", "embed_out"
    NORMS, OUT, FC, FC2 = ("input_layernorm", "post_attention_layernorm"), "attention.dense", "mlp.dense_h_to_4h", "mlp.dense_4h_to_h"
    QKV, BIASES, OUT_BIAS, HEAD_BIAS, ADJACENT, GELU = ("attention.query_key_value",), True, True, False, False, "none"

    def parameters(self):
        p = {self.WORDS + ".weight": normal(self.V, self.C)}

        def linear(name, out, inner, bias):
            p[name + ".weight"] = normal(out, inner)
            if bias:
                p[name + ".bias"] = normal(out, scale=0.1)

        def norm(name):
            p[name + ".weight"] = 1 + normal(self.C)
            p[name + ".bias"] = normal(self.C)

        for i in range(self.BLOCKS):
            block = f"{self.LAYERS}{i}."
            norm(block + self.NORMS[0])
            widths = (3 * self.H * self.D,) if len(self.QKV) == 1 else (self.H * self.D, self.K * self.D, self.K * self.D)
            for name, out in zip(self.QKV, widths):
                linear(block + name, out, self.C, self.BIASES)
            linear(block + self.OUT, self.C, self.H * self.D, self.OUT_BIAS)
            if len(self.NORMS) > 1:
                norm(block + self.NORMS[1])
            linear(block + self.FC, self.FF, self.C, True)
            linear(block + self.FC2, self.C, self.FF, True)
        norm(self.NORM)
        linear(self.HEAD, self.V, self.C, self.HEAD_BIAS)
        return p

    batches, written, decays = Llama.batches, Llama.written, Llama.decays

    def norm(self, p, name, x):
        return F.layer_norm(x, (self.C,), p[name + ".weight"], p[name + ".bias"], self.EPSILON)

    @staticmethod
    def linear(p, name, x):
        return F.linear(x, p[name + ".weight"], p.get(name + ".bias"))

    def heads(self, p, block, x):
        if len(self.QKV) > 1:
            return [heads_of(self.linear(p, block + name, x), heads) for name, heads in zip(self.QKV, (self.H, self.K, self.K))]
        qkv = self.linear(p, block + self.QKV[0], x).view(x.shape[0], x.shape[1], self.H, 3, self.D)
        return [part.transpose(1, 2) for part in qkv.unbind(dim=3)]

    def turn(self, x):
        """x(B, H, T, D): the first TURNED numbers of each head turn."""
        angles = torch.arange(x.shape[2]).float()[:, None] * self.THETA ** (-2 * torch.arange(self.TURNED // 2) / self.TURNED)
        part, rest = x[..., :self.TURNED], x[..., self.TURNED:]
        if self.ADJACENT:
            first, second = part[..., 0::2], part[..., 1::2]
        else:
            first, second = part.chunk(2, dim=-1)
        turned = (first * angles.cos() - second * angles.sin(), second * angles.cos() + first * angles.sin())
        part = torch.stack(turned, dim=-1).flatten(-2) if self.ADJACENT else torch.cat(turned, dim=-1)
        return torch.cat((part, rest), dim=-1)

    def logits(self, p, tokens):
        x = p[self.WORDS + ".weight"][tokens]
        for i in range(self.BLOCKS):
            block = f"{self.LAYERS}{i}."
            normed = self.norm(p, block + self.NORMS[0], x)
            q, k, v = self.heads(p, block, normed)
            q, k = self.turn(q), self.turn(k)
            k, v = (z.repeat_interleave(self.H // self.K, dim=1) for z in (k, v))
            attended = self.linear(p, block + self.OUT, attend(q, k, v, True))
            if len(self.NORMS) > 1:
                normed = self.norm(p, block + self.NORMS[1], x)
            x = x + attended + self.linear(p, block + self.FC2, F.gelu(self.linear(p, block + self.FC, normed), approximate=self.GELU))
        return self.linear(p, self.HEAD, self.norm(p, self.NORM, x))

    loss = Llama.loss


class Gptj(GptNeox):
    WORDS, LAYERS, NORM, HEAD = "transformer.wte", "transformer.h.", "transformer.ln_f", "lm_head"
    NORMS, OUT, FC, FC2 = ("ln_1",), "attn.out_proj", "mlp.fc_in", "mlp.fc_out"
    QKV, BIASES, OUT_BIAS, HEAD_BIAS, ADJACENT, GELU = ("attn.q_proj", "attn.k_proj", "attn.v_proj"), False, False, True, True, "tanh"


class Phi(GptNeox):
    K = 2
    WORDS, LAYERS, NORM, HEAD = "model.embed_tokens", "model.layers.", "model.final_layernorm", "lm_head"
    NORMS, OUT, FC, FC2 = ("input_layernorm",), "self_attn.dense", "mlp.fc1", "mlp.fc2"
    QKV, HEAD_BIAS, GELU = ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"), True, "tanh"


class Bert:
    C, H, D, FF, BLOCKS, V, P, TYPES, T, B, EPSILON = 32, 4, 8, 56, 3, 61, 20, 2, 16, 3, 1e-12

    def parameters(self):
        p = {}

        def linear(name, out, inner):
            p[name + ".weight"] = normal(out, inner)
            p[name + ".bias"] = normal(out, scale=0.1)

        def norm(name):
            p[name + ".weight"] = 1 + normal(self.C)
            p[name + ".bias"] = normal(self.C)

        for name, rows in (("word", self.V), ("position", self.P), ("token_type", self.TYPES)):
            p[f"bert.embeddings.{name}_embeddings.weight"] = normal(rows, self.C)
        norm("bert.embeddings.LayerNorm")
        for i in range(self.BLOCKS):
            block = f"bert.encoder.layer.{i}."
            for name in ("query", "key", "value"):
                linear(block + f"attention.self.{name}", self.H * self.D, self.C)
            linear(block + "attention.output.dense", self.C, self.H * self.D)
            norm(block + "attention.output.LayerNorm")
            linear(block + "intermediate.dense", self.FF, self.C)
            linear(block + "output.dense", self.C, self.FF)
            norm(block + "output.LayerNorm")
        p["cls.predictions.bias"] = normal(self.V, scale=0.1)
        linear("cls.predictions.transform.dense", self.C, self.C)
        norm("cls.predictions.transform.LayerNorm")
        return p

    def batches(self):
        """(B, 3, T) each: tokens, labels (-1: not to be guessed), token types."""
        batches = []
        for _ in range(STEPS):
            tokens = torch.randint(self.V, (self.B, self.T))
            labels = torch.randint(self.V, (self.B, self.T))
            labels[torch.rand(self.B, self.T) > 0.3] = -1
            labels[0, 0] = 5
            types = torch.randint(self.TYPES, (self.B, self.T))
            batches.append(torch.stack((tokens, labels, types), dim=1))
        return batches

    def written(self, batch):
        batch = batch.clone()
        batch[:, 2] += self.V + self.P
        return batch.flatten().tolist()

    def norm(self, p, name, x):
        return F.layer_norm(x, (self.C,), p[name + ".weight"], p[name + ".bias"], self.EPSILON)

    @staticmethod
    def linear(p, name, x):
        return F.linear(x, p[name + ".weight"], p[name + ".bias"])

    def loss(self, p, batch):
        tokens, labels, types = batch.unbind(dim=1)
        e = "bert.embeddings."
        x = p[e + "word_embeddings.weight"][tokens] + p[e + "token_type_embeddings.weight"][types]
        x = self.norm(p, e + "LayerNorm", x + p[e + "position_embeddings.weight"][:tokens.shape[1]])
        for i in range(self.BLOCKS):
            block = f"bert.encoder.layer.{i}."
            q, k, v = (heads_of(self.linear(p, block + f"attention.self.{n}", x), self.H)
                       for n in ("query", "key", "value"))
            x = self.norm(p, block + "attention.output.LayerNorm",
                          x + self.linear(p, block + "attention.output.dense",
                                          attend(q, k, v, False)))
            inner = F.gelu(self.linear(p, block + "intermediate.dense", x))
            x = self.norm(p, block + "output.LayerNorm",
                          x + self.linear(p, block + "output.dense", inner))
        x = F.gelu(self.linear(p, "cls.predictions.transform.dense", x))
        x = self.norm(p, "cls.predictions.transform.LayerNorm", x)
        logits = F.linear(x, p[e + "word_embeddings.weight"], p["cls.predictions.bias"])
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=-1)

    def decays(self, name, value):
        return value.dim() == 2


class Vit:
    C, H, D, FF, BLOCKS, IMAGE, PATCH, CHANNELS, CLASSES, B = 32, 3, 12, 56, 3, 8, 4, 3, 7, 3
    EPSILON = 1e-12
    T = (IMAGE // PATCH) ** 2 + 1

    def parameters(self):
        p = {}

        def linear(name, out, inner, bias=True):
            p[name + ".weight"] = normal(out, inner)
            if bias:
                p[name + ".bias"] = normal(out, scale=0.1)

        def norm(name):
            p[name + ".weight"] = 1 + normal(self.C)
            p[name + ".bias"] = normal(self.C)

        e = "vit.embeddings."
        p[e + "cls_token"] = normal(1, 1, self.C)
        p[e + "position_embeddings"] = normal(1, self.T, self.C)
        p[e + "patch_embeddings.projection.weight"] = normal(self.C, self.CHANNELS, self.PATCH,
                                                             self.PATCH)
        p[e + "patch_embeddings.projection.bias"] = normal(self.C, scale=0.1)
        for i in range(self.BLOCKS):
            block = f"vit.encoder.layer.{i}."
            norm(block + "layernorm_before")
            for name in ("query", "key", "value"):
                linear(block + f"attention.attention.{name}", self.H * self.D, self.C)
            linear(block + "attention.output.dense", self.C, self.H * self.D)
            norm(block + "layernorm_after")
            linear(block + "intermediate.dense", self.FF, self.C)
            linear(block + "output.dense", self.C, self.FF)
        norm("vit.layernorm")
        linear("classifier", self.CLASSES, self.C)
        return p

    def batches(self):
        return [(torch.randint(self.CLASSES, (self.B,)),
                 torch.randint(9, (self.B, self.CHANNELS, self.IMAGE, self.IMAGE)) / 4 - 1)
                for _ in range(STEPS)]

    def written(self, batch):
        return batch[0].tolist() + batch[1].flatten().tolist()

    norm, linear = Bert.norm, staticmethod(Bert.linear)

    def loss(self, p, batch):
        labels, images = batch
        e = "vit.embeddings."
        x = F.conv2d(images, p[e + "patch_embeddings.projection.weight"],
                     p[e + "patch_embeddings.projection.bias"], stride=self.PATCH)
        x = x.flatten(2).transpose(1, 2)
        x = torch.cat((p[e + "cls_token"].expand(x.shape[0], 1, self.C), x), dim=1)
        x = x + p[e + "position_embeddings"]
        for i in range(self.BLOCKS):
            block = f"vit.encoder.layer.{i}."
            normed = self.norm(p, block + "layernorm_before", x)
            q, k, v = (heads_of(self.linear(p, block + f"attention.attention.{n}", normed), self.H)
                       for n in ("query", "key", "value"))
            x = x + self.linear(p, block + "attention.output.dense", attend(q, k, v, False))
            normed = self.norm(p, block + "layernorm_after", x)
            inner = F.gelu(self.linear(p, block + "intermediate.dense", normed))
            x = x + self.linear(p, block + "output.dense", inner)
        x = self.norm(p, "vit.layernorm", x)
        return F.cross_entropy(self.linear(p, "classifier", x[:, 0]), labels)

    def decays(self, name, value):
        return value.dim() in (2, 4)


def train(family, kind, options, initial, batches, folder):
    p = {name: value.clone().requires_grad_() for name, value in initial.items()}
    groups = [{"params": [v for n, v in p.items() if family.decays(n, v)],
               "weight_decay": options["weight_decay"]},
              {"params": [v for n, v in p.items() if not family.decays(n, v)],
               "weight_decay": 0.0}]
    if kind == "adamw":
        optimizer = torch.optim.AdamW(groups, lr=options["lr"], eps=options["epsilon"],
                                      betas=(options["beta1"], options["beta2"]))
    else:
        optimizer = torch.optim.SGD(groups, lr=options["lr"])
    losses = []
    for batch in batches:
        optimizer.zero_grad()
        loss = family.loss(p, batch)
        loss.backward()
        losses.append(loss.item())
        optimizer.step()
    if kind == "adamw":
        write_safetensors(folder / f"{kind}.safetensors", p)
    record = {"torch": torch.__version__, "kind": kind, "options": options,
              "batches": [family.written(batch) for batch in batches], "losses": losses,
              "gradient_norms": {name: v.grad.double().norm().item() for name, v in p.items()},
              "weight_norms": {name: v.double().norm().item() for name, v in p.items()}}
    (folder / f"{kind}.json").write_text(json.dumps(record) + "\n")
    print(folder.name, kind, losses[0], losses[-1])


def main():
    families = {"llama": Llama, "mistral": Mistral, "qwen2": Qwen2, "qwen3": Qwen3, "gemma": Gemma,
                "gpt_neox": GptNeox, "gptj": Gptj, "phi": Phi, "bert": Bert, "vit": Vit}
    torch.set_num_threads(1)
    for name in sys.argv[1:] or families:
        family, folder = families[name](), HERE / name
        folder.mkdir(exist_ok=True)
        torch.manual_seed(20261121)
        initial = family.parameters()
        write_safetensors(folder / "initial.safetensors", initial)
        batches = family.batches()
        train(family, "adamw", {"lr": 2e-3, "weight_decay": 0.1, "beta1": 0.9, "beta2": 0.95,
                                "epsilon": 1e-8}, initial, batches, folder)
        train(family, "sgd", {"lr": 0.02, "weight_decay": 0.01}, initial, batches, folder)


if __name__ == "__main__":
    main()
