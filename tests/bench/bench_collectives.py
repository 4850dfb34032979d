#!/usr/bin/env python3
"""All-reduces on the host by bytes and members: ours beside Open MPI's on the same cores.

Usage: bench_collectives.py BUILD [MEMBERS ...]     (default 2 4 8; `ninja benchmarks` first)

Prints bytes over seconds for each, and how many times as fast ours is. Exit code 1 when it is slower from 64 KiB on.
"""
import subprocess, sys


def table(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit code {done.returncode}\n{done.stderr}")
    return {int(bytes_): (float(seconds), float(spread))
            for bytes_, seconds, spread in (line.split() for line in done.stdout.splitlines())}


def main():
    build, members = sys.argv[1], [int(m) for m in sys.argv[2:]] or [2, 4, 8]
    slower = False
    print(f"{'members':>7} {'bytes':>10} {'ours':>11} {'spread':>7} {'MPI':>11} {'spread':>7} {'times':>6}")
    for count in members:
        ours = table([f"{build}/bench_collectives", str(count)])
        theirs = table(["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", str(count), f"{build}/bench_collectives_mpi"])
        for bytes_ in ours:
            own, other = ours[bytes_], theirs[bytes_]
            slower |= bytes_ >= 1 << 16 and own[0] > other[0]
            print(f"{count:7} {bytes_:10} {bytes_ / own[0] / 1e6:7.1f} MB/s {100 * own[1]:6.1f}% {bytes_ / other[0] / 1e6:7.1f} MB/s "
                  f"{100 * other[1]:6.1f}% {other[0] / own[0]:6.2f}", flush=True)
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
