#!/usr/bin/python3
"""Golden training runs of a tiny GPT-2, written from scratch with PyTorch's operations.

Run with Debian's python3-torch (made with 1.13.0):  /usr/bin/python3 make.py
Writes next to itself: initial.safetensors, and for adamw, sgd and momentum KIND.json (options, tokens,
losses, learning rates, norms of the last step's gradients and of the weights after it) and
adamw.safetensors (those weights); clip.json, the same with gradients clipped in some steps and not in
others, and their norms; and rates.json, learning rates of PyTorch's schedulers.
Weights are stored (in, out) as Hugging Face's GPT-2 does. Training is in float32 throughout.
"""
import json
import math
import pathlib
import struct

import torch
import torch.nn.functional as F

C, BLOCKS, HEADS, V, T, B, P, STEPS = 48, 3, 4, 97, 16, 3, 20, 20
HERE = pathlib.Path(__file__).parent
torch.manual_seed(20261121)
torch.set_num_threads(1)


def parameters():
    def normal(*shape, scale=0.2):
        return torch.randn(*shape) * scale

    p = {"wte.weight": normal(V, C), "wpe.weight": normal(P, C)}
    for i in range(BLOCKS):
        for name, inner, outer in (("attn.c_attn", C, 3 * C), ("attn.c_proj", C, C),
                                   ("mlp.c_fc", C, 4 * C), ("mlp.c_proj", 4 * C, C)):
            p[f"h.{i}.{name}.weight"] = normal(inner, outer)
            p[f"h.{i}.{name}.bias"] = normal(outer, scale=0.1)
        for name in ("ln_1", "ln_2"):
            p[f"h.{i}.{name}.weight"] = 1 + normal(C)
            p[f"h.{i}.{name}.bias"] = normal(C)
    p["ln_f.weight"] = 1 + normal(C)
    p["ln_f.bias"] = normal(C)
    return p


def linear(p, name, x):
    return x @ p[name + ".weight"] + p[name + ".bias"]


def norm(p, name, x):
    return F.layer_norm(x, (C,), p[name + ".weight"], p[name + ".bias"], 1e-5)


def gelu(x):
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3)))


def attention(p, name, x):
    q, k, v = linear(p, name + ".c_attn", x).split(C, dim=2)
    q, k, v = (z.view(B, T, HEADS, C // HEADS).transpose(1, 2) for z in (q, k, v))
    scores = q @ k.transpose(2, 3) / math.sqrt(C // HEADS)
    mask = torch.ones(T, T, dtype=torch.bool).triu(1)
    weights = scores.masked_fill(mask, -math.inf).softmax(dim=3)
    return linear(p, name + ".c_proj", (weights @ v).transpose(1, 2).reshape(B, T, C))


def loss_of(p, tokens):
    x = p["wte.weight"][tokens[:, :-1]] + p["wpe.weight"][:T]
    for i in range(BLOCKS):
        x = x + attention(p, f"h.{i}.attn", norm(p, f"h.{i}.ln_1", x))
        inner = gelu(linear(p, f"h.{i}.mlp.c_fc", norm(p, f"h.{i}.ln_2", x)))
        x = x + linear(p, f"h.{i}.mlp.c_proj", inner)
    logits = norm(p, "ln_f", x) @ p["wte.weight"].T
    return F.cross_entropy(logits.view(B * T, V), tokens[:, 1:].reshape(B * T))


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


def scheduler_of(optimizer, schedule, steps):
    """Warm-up from lr / warmup to lr, then a fall towards floor * lr, made of PyTorch's own."""
    kinds = torch.optim.lr_scheduler
    warmup, floor, lr = schedule["warmup"], schedule["floor"], optimizer.param_groups[0]["lr"]
    if schedule["kind"] == "cosine":
        fall = kinds.CosineAnnealingLR(optimizer, steps - warmup, eta_min=floor * lr)
    elif schedule["kind"] == "linear":
        fall = kinds.LinearLR(optimizer, 1, floor, steps - warmup)
    else:
        fall = kinds.ConstantLR(optimizer, 1, 1)
    if warmup == 0:
        return fall
    climb = kinds.LinearLR(optimizer, 1 / warmup, 1, warmup - 1)
    return kinds.SequentialLR(optimizer, [climb, fall], [warmup])


def rates_of(kind, warmup, floor, steps, lr):
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=lr)
    scheduler = scheduler_of(optimizer, {"kind": kind, "warmup": warmup, "floor": floor}, steps)
    rates = []
    for _ in range(steps):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    return {"kind": kind, "warmup": warmup, "floor": floor, "steps": steps, "lr": lr, "rates": rates}


def train(kind, options, initial, batches, name=None):
    p = {name: value.clone().requires_grad_() for name, value in initial.items()}
    decayed = [v for v in p.values() if v.dim() == 2]
    others = [v for v in p.values() if v.dim() != 2]
    groups = [{"params": decayed, "weight_decay": options["weight_decay"]},
              {"params": others, "weight_decay": 0.0}]
    if kind == "adamw":
        optimizer = torch.optim.AdamW(groups, lr=options["lr"], eps=options["epsilon"],
                                      betas=(options["beta1"], options["beta2"]))
    else:
        optimizer = torch.optim.SGD(groups, lr=options["lr"], momentum=options.get("momentum", 0),
                                    nesterov=options.get("nesterov", False))
    schedule = options.get("schedule")
    scheduler = scheduler_of(optimizer, schedule, len(batches)) if schedule else None
    losses, rates, norms = [], [], []
    for tokens in batches:
        optimizer.zero_grad()
        loss = loss_of(p, tokens)
        loss.backward()
        losses.append(loss.item())
        rates.append(optimizer.param_groups[0]["lr"])
        if "clip" in options:
            norms.append(torch.nn.utils.clip_grad_norm_(p.values(), options["clip"]).item())
        optimizer.step()
        if scheduler:
            scheduler.step()
    gradient_norms = {name: value.grad.double().norm().item() for name, value in p.items()}
    weight_norms = {name: value.double().norm().item() for name, value in p.items()}
    if kind == "adamw":
        write_safetensors(HERE / f"{kind}.safetensors", p)
    record = {"torch": torch.__version__, "kind": kind, "options": options,
              "width": C, "blocks": BLOCKS, "heads": HEADS, "vocabulary": V, "sequence": T,
              "microbatch": B, "positions": P, "batches": [b.flatten().tolist() for b in batches],
              "losses": losses, **({"rates": rates} if schedule else {}), **({"norms": norms} if norms else {}),
              "gradient_norms": gradient_norms,
              "weight_norms": weight_norms}
    (HERE / f"{name or kind}.json").write_text(json.dumps(record) + "\n")
    print(name or kind, losses[0], losses[-1])


def main():
    initial = parameters()
    write_safetensors(HERE / "initial.safetensors", initial)
    batches = [torch.randint(V, (B, T + 1)) for _ in range(STEPS)]
    train("adamw", {"lr": 2e-3, "weight_decay": 0.1, "beta1": 0.9, "beta2": 0.95,
                    "epsilon": 1e-8}, initial, batches)
    train("sgd", {"lr": 0.02, "weight_decay": 0.01}, initial, batches)
    train("momentum", {"lr": 0.01, "weight_decay": 0.01, "momentum": 0.9, "nesterov": True,
                       "schedule": {"kind": "cosine", "warmup": 4, "floor": 0.1}}, initial, batches)
    train("momentum", {"lr": 0.02, "weight_decay": 0.01, "momentum": 0.9, "clip": 3.6}, initial,
          batches, "clip")
    rows = [rates_of(kind, warmup, floor, 37, 3e-4) for kind in ("constant", "linear", "cosine")
            for warmup in (0, 5) for floor in (0, 0.125)]
    (HERE / "rates.json").write_text(json.dumps(rows) + "\n")


if __name__ == "__main__":
    main()
