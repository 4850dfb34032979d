#!/usr/bin/env python3
"""What do direct copies between two devices save, predicted and measured?

Usage: bench_p2p.py BUILD HARDWARE.json [--repeat N] [--link RATE] [--p2p RATE]

Three jobs on two host devices whose links to the host are paced so slowly that copies are most of the
time. Planned through the host alone (--no-p2p) and with direct links (--p2p-rate), in residence, where
boundaries and gradients are all that is copied, and streamed. Runs of both plans alternate.
"""
import argparse, json, os, statistics, sys, tempfile

from bench_accuracy import call, gpt, job

CASES = [("model-parallel", "40MiB", []), ("shard-parallel", "40MiB", []),
         ("sharded-lrtf", "40MiB", ["--activations", "recompute", "--shards", "4"])]


def jobs():
    network = gpt(6, 64, 4)
    return [job(f"job-{i}", network, 8, microbatch=8, sequence=128) for i in range(3)]


class Plan:
    def __init__(self, options, folder, policy, memory, link, extra, name):
        self.spillway = os.path.join(options.build, "spillway")
        self.path = f"{folder}/{policy}-{name}.json"
        call([self.spillway, "plan", f"{folder}/jobs.json", "--hw", options.hardware, "--devices", "2",
              "--threads", "1", "--device-memory", memory, "--policy", policy, *extra, *link,
              "-o", self.path, "--json"])
        self.direct = 0
        with open(self.path) as file:
            plan = json.load(file)
        for segment in plan["segments"]:
            self.direct += segment["repeat"] * sum(isinstance(i[1], list) for i in segment["tasks"])
        self.predicted = self.makespan(["simulate", self.path])
        self.measured = []

    def makespan(self, verb):
        return json.loads(call([self.spillway, *verb, "--json"]))["makespan_s"]

    def run(self):
        self.measured.append(self.makespan(["run", self.path, "--no-weights"]))

    def text(self):
        median = statistics.median(self.measured)
        return (f"{self.predicted:6.2f} s predicted, {median:6.2f} s measured "
                f"({min(self.measured):.2f} to {max(self.measured):.2f}), "
                f"error {100 * (self.predicted / median - 1):+.1f} %")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("hardware")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--link", default="5MB/s")
    parser.add_argument("--p2p", default="25MB/s")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/jobs.json", "w") as file:
            json.dump({"spillway_jobs": 1, "jobs": jobs()}, file)
        for policy, memory, extra in CASES:
            link = ["--link-rate", options.link]
            through = Plan(options, folder, policy, memory, link + ["--no-p2p"], extra, "through")
            direct = Plan(options, folder, policy, memory, link + ["--p2p-rate", options.p2p], extra,
                          "direct")
            for _ in range(options.repeat):
                through.run()
                direct.run()
            gains = [a / b for a, b in zip(through.measured, direct.measured)]
            print(f"{policy}, {direct.direct} direct copies:\n  through the host {through.text()}\n"
                  f"  direct           {direct.text()}\n"
                  f"  {through.predicted / direct.predicted:.2f} times as fast predicted, "
                  f"{statistics.median(gains):.2f} measured ({min(gains):.2f} to {max(gains):.2f})",
                  flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
