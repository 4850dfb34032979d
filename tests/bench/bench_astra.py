#!/usr/bin/env python3
"""Do ASTRA-sim and Spillway say the same of one plan, and how long do they take to?

Usage: bench_astra.py BUILD ASTRA_SIM [--repeat N]

ASTRA_SIM is ASTRA-sim's analytical program for many dimensions, AstraSim_Analytical_Congestion_Unaware. Plans
are exported (`trace chakra`) and simulated by both: durations of computations are in the traces, copies and
collectives are each program's own. Networks are switches with the bandwidths of Spillway's preset and, over
two hops, its latencies. Durations of nodes are whole microseconds for ASTRA-sim. Processor time is of the
whole program, reading included; runs alternate.

A device of ASTRA-sim sends or takes part in a collective one at a time. So a boundary waits there for a chunk's
sum of gradients, which it passes on NVLink and other streams here: that is where the two differ by more than a
few per cent. On two cores that others kept busy, three runs of each:

    PLAN                                 NODES   SPILLWAY  ASTRA-SIM          processor seconds
    tensor 8                             13464   2.0857 s   2.0783 s  -0.35 %  0.02 (0.02 to 0.03) beside 0.29 (0.28 to 0.31)
    tensor 2, data 4                      3392   1.8670 s   1.8694 s  +0.12 %  0.01 (0.01 to 0.01) beside 0.04 (0.04 to 0.04)
    pipeline 8                             728   2.7410 s   2.7394 s  -0.06 %  0.00 (0.00 to 0.01) beside 0.01 (0.01 to 0.01)
    pipeline 8 of 2 chunks                1520   2.3964 s   2.3961 s  -0.01 %  0.00 (0.00 to 0.01) beside 0.02 (0.02 to 0.02)
    tensor 8, pipeline 8                165056   2.7078 s   2.5744 s  -4.93 %  0.28 (0.28 to 0.31) beside 5.06 (4.50 to 5.31)
    tensor 8, data 8                    107776   2.3544 s   2.3317 s  -0.96 %  0.17 (0.14 to 0.18) beside 4.15 (4.15 to 4.20)
    pipeline 8, data 8                    5888   2.8004 s   2.9825 s  +6.50 %  0.01 (0.01 to 0.02) beside 0.07 (0.07 to 0.10)
    tensor 8, pipeline 8 of 2, data 8   925696  16.1608 s  20.0539 s +24.09 %  1.87 (1.65 to 1.96) beside 28.99 (28.90 to 31.43)
"""
import argparse, json, os, re, resource, statistics, subprocess, tempfile

NODE, CLUSTER = "dgx-a100-80gb", "8x dgx-a100-80gb"
SMALL, LARGE = 6144, 25600  # width
CASES = [  # name, machine, network's width, microbatches, what is planned
    ("tensor 8", NODE, SMALL, 16, ["--parallel", "tp=8"]),
    ("tensor 2, data 4", NODE, SMALL, 16, ["--parallel", "tp=2,dp=4"]),
    ("pipeline 8", NODE, SMALL, 16, ["--parallel", "pp=8", "--schedule", "1f1b"]),
    ("pipeline 8 of 2 chunks", NODE, SMALL, 16, ["--parallel", "pp=8,v=2", "--schedule", "interleaved"]),
    ("tensor 8, pipeline 8", CLUSTER, SMALL, 128, ["--parallel", "tp=8,pp=8", "--schedule", "1f1b"]),
    ("tensor 8, data 8", CLUSTER, SMALL, 128, ["--parallel", "tp=8,dp=8"]),
    ("pipeline 8, data 8", CLUSTER, SMALL, 128, ["--parallel", "pp=8,dp=8", "--schedule", "1f1b"]),
    ("tensor 8, pipeline 8 of 2, data 8", "64x dgx-a100-80gb", LARGE, 512,
     ["--parallel", "tp=8,pp=8,dp=8,v=2", "--schedule", "interleaved"]),
]
SYSTEM = {"scheduling-policy": "LIFO", "endpoint-delay": 0, "active-chunks-per-dimension": 2,
          "preferred-dataset-splits": 1, "collective-optimization": "localBWAware", "local-mem-bw": 3350,
          "boost-mode": 0, **{f"{kind}-implementation": ["ring"] for kind in
                              ("all-reduce", "all-gather", "reduce-scatter", "all-to-all")}}


def write(path, value):
    with open(path, "w") as file:
        file.write(value if isinstance(value, str) else json.dumps(value))
    return path


def network(nodes):
    """NVLink's 250 GB/s and a NIC's 25 GB/s for each device; two hops take 5 and 20 us."""
    sizes, rates, latencies = ([8], [250.0], [2500.0]) if nodes == 1 else \
        ([8, nodes], [250.0, 25.0], [2500.0, 10000.0])
    return (f"topology: {json.dumps(['Switch'] * len(sizes)).replace(chr(34), '')}\nnpus_count: {sizes}\n"
            f"bandwidth: {rates}\nlatency: {latencies}\n")


def timed(command, folder=None):
    """What it prints, and its processor time in seconds. In that folder: ASTRA-sim leaves its log where it runs."""
    def used():
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime
    before = used()
    result = subprocess.run(command, capture_output=True, text=True, check=True, cwd=folder)
    return result.stdout, used() - before


def spread(values):
    return f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("astra_sim")
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    spillway = os.path.join(options.build, "spillway")
    print(f"{'PLAN':34} {'NODES':>7} {'SPILLWAY':>10} {'ASTRA-SIM':>10} {'':>7}  processor seconds")
    for name, machine, width, microbatches, how in CASES:
        with tempfile.TemporaryDirectory() as folder:
            config = {"model_type": "gpt2", "vocab_size": 51200, "n_positions": 2048, "n_embd": width,
                      "n_layer": 16, "n_head": width // 128 if width == SMALL else 160}
            jobs = {"spillway_jobs": 1, "jobs": [
                {"name": "gpt", "network": config, "sequence": 2048, "microbatch": 1, "microbatches": microbatches,
                 "minibatches": 1, "precision": "bf16", "optimizer": {"kind": "adamw", "lr": 1e-4}}]}
            plan, prefix = f"{folder}/plan.json", f"{folder}/trace"
            timed([spillway, "plan", write(f"{folder}/jobs.json", jobs), "--hw", machine, *how,
                   "--recompute", "full", "-o", plan, "-q"])
            written, _ = timed([spillway, "trace", "chakra", plan, "-o", prefix])
            nodes = int(re.search(r"(\d+) nodes", written).group(1))
            count = 1 if machine == NODE else int(machine.split("x")[0])
            astra = [os.path.abspath(options.astra_sim), f"--workload-configuration={prefix}",
                     f"--system-configuration={write(f'{folder}/system.json', SYSTEM)}",
                     f"--remote-memory-configuration="
                     f"{write(f'{folder}/memory.json', {'memory-type': 'NO_MEMORY_EXPANSION'})}",
                     f"--network-configuration={write(f'{folder}/network.yml', network(count))}"]
            if os.path.exists(f"{prefix}.groups.json"):
                astra.append(f"--comm-group-configuration={prefix}.groups.json")
            ours_s, theirs_s = [], []
            for _ in range(options.repeat):
                report, seconds = timed([spillway, "trace", "simulate", prefix, "--hw", machine, "--json"])
                ours_s.append(seconds)
                text, seconds = timed(astra, folder)
                theirs_s.append(seconds)
            ours = json.loads(report)["makespan_s"]
            theirs = max(int(cycles) for cycles in re.findall(r"finished, (\d+) cycles", text)) * 1e-9
            print(f"{name:34} {nodes:7} {ours:8.4f} s {theirs:8.4f} s {100 * (theirs / ours - 1):+6.2f} %  "
                  f"{spread(ours_s)} beside {spread(theirs_s)}", flush=True)


if __name__ == "__main__":
    main()
