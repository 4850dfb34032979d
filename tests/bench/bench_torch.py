#!/usr/bin/env python3
"""A training step of GPT-2 124M by PyTorch and by Spillway on the same processors.

Usage: bench_torch.py BUILD [--microbatch 4] [--sequence 64] [--threads 2] [--rounds 3]

PyTorch runs the same network (its own modules, tied head, AdamW) with all it offers on a CPU: the
kernels of the widest vectors and the BLAS core type of the machine, which it does not choose by
itself. Rounds of both alternate; the ratio is taken round by round. Needs Debian's python3-torch and
libopenblas0-pthread.
"""
import argparse, os, re, statistics, subprocess, sys, time

WIDTH, HEADS, LAYERS, WORDS, POSITIONS = 768, 12, 12, 50257, 1024


def torch_step(options):
    """Print the seconds of some steps; runs in a process of its own, whose variables are set."""
    import torch
    from torch import nn
    from torch.nn import functional as F

    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    square = torch.randn(512, 512)
    begin = time.monotonic()
    square @ square
    if 2 * 512**3 / (time.monotonic() - begin) < 5e9:
        sys.exit("PyTorch multiplies by the reference BLAS: install libopenblas0-pthread first")

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
            self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
            self.wide, self.narrow = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

        def forward(self, x, mask):
            b, t, c = x.shape
            q, k, v = (part.view(b, t, HEADS, c // HEADS).transpose(1, 2)
                       for part in self.qkv(self.norm1(x)).split(c, dim=2))
            scores = (q @ k.transpose(2, 3)) * (c // HEADS) ** -0.5
            weights = scores.masked_fill(mask, float("-inf")).softmax(dim=-1)
            x = x + self.out((weights @ v).transpose(1, 2).reshape(b, t, c))
            return x + self.narrow(F.gelu(self.wide(self.norm2(x)), approximate="tanh"))

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.places = nn.Embedding(WORDS, WIDTH), nn.Embedding(POSITIONS, WIDTH)
            self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
            self.norm = nn.LayerNorm(WIDTH)

        def forward(self, tokens, targets):
            t = tokens.shape[1]
            mask = torch.triu(torch.ones(t, t, dtype=torch.bool), 1)
            x = self.words(tokens) + self.places(torch.arange(t))
            for block in self.blocks:
                x = block(x, mask)
            logits = F.linear(self.norm(x), self.words.weight)
            return F.cross_entropy(logits.view(-1, WORDS), targets.reshape(-1))

    network = Network()
    step = torch.optim.AdamW(network.parameters(), lr=1e-4)
    batch = torch.randint(0, WORDS, (options.microbatch, options.sequence + 1))
    for i in range(3):
        begin = time.monotonic()
        loss = network(batch[:, :-1], batch[:, 1:])
        step.zero_grad()
        loss.backward()
        step.step()
        if i > 0:
            print(f"step {time.monotonic() - begin:.4f}")


def run_torch(options):
    best = dict(os.environ, OMP_NUM_THREADS=str(options.threads))
    flags = open("/proc/cpuinfo").read()
    if "avx512f" in flags:
        best.update(OPENBLAS_CORETYPE="SKYLAKEX", ATEN_CPU_CAPABILITY="avx512")
    arguments = ["--microbatch", str(options.microbatch), "--sequence", str(options.sequence),
                 "--threads", str(options.threads)]
    out = subprocess.run([options.python, __file__, options.build, "--inside", *arguments],
                         env=best, check=True, stdout=subprocess.PIPE, text=True).stdout
    return statistics.median(float(x) for x in re.findall(r"step ([0-9.]+)", out))


def run_spillway(options):
    out = subprocess.run([f"{options.build}/bench_gpt2", "--microbatch", str(options.microbatch),
                          "--sequence", str(options.sequence), "--threads", str(options.threads),
                          "--rounds", "3"], check=True, capture_output=True, text=True).stdout
    return float(re.search(r"step\s+([0-9.]+) ms", out).group(1)) / 1000


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--microbatch", type=int, default=4)
    parser.add_argument("--sequence", type=int, default=64)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--python", default="/usr/bin/python3", help="one that has torch")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        torch_step(options)
        return 0
    pairs = [(run_torch(options), run_spillway(options)) for _ in range(options.rounds)]
    ratios = sorted(torch / own for torch, own in pairs)
    print(f"B {options.microbatch}, T {options.sequence}, {options.threads} threads: PyTorch "
          f"{statistics.median(t for t, _ in pairs):.3f} s, Spillway "
          f"{statistics.median(s for _, s in pairs):.3f} s a step; ratio "
          f"{statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
