#!/usr/bin/env python3
"""What do two training runs gain by running together when one waits for the link and the other computes?

Usage: bench_pooled.py BUILD HARDWARE.json [--repeat N] [--policy NAME] [--time-limit TIME]

One device, spilled. "wide" moves many bytes for few tokens, "deep" the other way round; their steps
are such that each alone takes as long. One after the other, each leaves idle what binds the other.
Together they pool their work, and no plan is faster than the stream with the most to do:

    pooled = max(compute, h2d, d2h, cpu)        busy seconds of both

Alone, together and pooled are predicted and measured; rounds of all three runs alternate.
"""
import argparse, json, os, statistics, sys, tempfile

from bench_accuracy import call, gpt, job

MACHINE = ["--devices", "1", "--device-memory", "96MiB", "--link-rate", "1GB/s"]
NETWORK = gpt(8, 512, 8)


def busy_of(path):
    """Busy seconds by stream kind."""
    with open(path) as file:
        trace = json.load(file)
    stream = trace["operation_columns"].index("stream")
    busy = {}
    for _, index, _, start, end in trace["spans"]:
        kind = trace["streams"][trace["operations"][index][stream]]["kind"]
        busy[kind] = busy.get(kind, 0.0) + end - start
    return busy


class Case:
    def __init__(self, options, folder, name, jobs):
        self.spillway = os.path.join(options.build, "spillway")
        self.path = f"{folder}/{name}"
        with open(f"{self.path}.json", "w") as file:
            json.dump({"spillway_jobs": 1, "jobs": jobs}, file)
        report = json.loads(call([self.spillway, "plan", f"{self.path}.json", "--hw", options.hardware,
                                  *MACHINE, "--policy", options.policy, *options.limit,
                                  "-o", f"{self.path}.plan", "--json"]))
        self.clock_gap = report["order"]["gap"]

    def simulate(self):
        return self.timed(["simulate", f"{self.path}.plan"])

    def run(self):
        return self.timed(["run", f"{self.path}.plan", "--no-weights"])

    def timed(self, verb):
        trace = f"{self.path}.trace"
        report = json.loads(call([self.spillway, *verb, "--trace", trace, "--json"]))
        return report["makespan_s"], busy_of(trace)


def wide(steps):
    return job("wide", NETWORK, steps, microbatch=1, sequence=16)


def deep(steps):
    return job("deep", NETWORK, steps, microbatch=4, sequence=64)


def report(label, alone, together):
    """Both as (makespan, busy); returns what running together saves, and what it could at best."""
    sequence = sum(makespan for makespan, _ in alone)
    makespan, busy = together
    pooled = max(busy.values())
    print(f"  {label:10} one after the other {sequence:6.2f} s, together {makespan:6.2f} s "
          f"({sequence / makespan:.2f} times as fast); pooled bound {pooled:6.2f} s "
          f"({max(busy, key=busy.get)}), together / bound {makespan / pooled:.3f}")
    return sequence / makespan


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("hardware")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--policy", default="optimal")
    parser.add_argument("--time-limit", help="of each plan by policy optimal, such as 20s")
    options = parser.parse_args()
    options.limit = ["--time-limit", options.time_limit] if options.time_limit else []
    with tempfile.TemporaryDirectory() as folder:
        of_wide = Case(options, folder, "w", [wide(10)]).simulate()[0] / 10
        of_deep = Case(options, folder, "d", [deep(10)]).simulate()[0] / 10
        deep_steps = 10
        wide_steps = round(deep_steps * of_deep / of_wide)
        cases = [Case(options, folder, "wide", [wide(wide_steps)]),
                 Case(options, folder, "deep", [deep(deep_steps)]),
                 Case(options, folder, "both", [wide(wide_steps), deep(deep_steps)])]
        print(f"{wide_steps} steps of 16 tokens, {deep_steps} of 256")
        simulated = [case.simulate() for case in cases]
        for name, (makespan, busy) in zip(("wide", "deep", "both"), simulated):
            print(f"  {name}: {makespan:.2f} s, " +
                  ", ".join(f"{kind} {s:.2f}" for kind, s in busy.items()))
        print(f"  the order of both is within {100 * cases[2].clock_gap:.1f} % of the best by the planner's clock")
        predicted = report("simulated", simulated[:2], simulated[2])
        gains = []
        for _ in range(options.repeat):
            runs = [case.run() for case in cases]
            gains.append(report("measured", runs[:2], runs[2]))
        print(f"together: {predicted:.2f} times as fast as one after the other predicted, "
              f"{statistics.median(gains):.2f} measured ({min(gains):.2f} to {max(gains):.2f})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
