#!/usr/bin/env python3
"""How fast PyTorch multiplies matrices of given shapes here: what no training step in the same precision can exceed.

    python benchmarks/product_rate.py 3840x256x8000 280x256x1024 [--threads 2]

needs torch. MxKxN is [M, K] times [K, N] in fp32: 2·M·K·N operations. The best of five windows of about 0.2 s.
"""
import argparse
import time

import torch


def rate(m, k, n):
    """GFLOP/s."""
    a, b, out = torch.randn(m, k), torch.randn(k, n), torch.empty(m, n)
    begin = time.perf_counter()
    torch.mm(a, b, out=out)
    torch.mm(a, b, out=out)
    repeats = max(1, int(0.4 / (time.perf_counter() - begin)))
    best = 0.0
    for _ in range(5):
        begin = time.perf_counter()
        for _ in range(repeats):
            torch.mm(a, b, out=out)
        best = max(best, 2e-9 * m * k * n * repeats / (time.perf_counter() - begin))
    return best


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shape", nargs="+", metavar="MxKxN", type=lambda text: tuple(map(int, text.split("x", 2))))
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    for shape in options.shape:
        print(f"{'x'.join(map(str, shape))}: {rate(*shape):.0f} GFLOP/s")


if __name__ == "__main__":
    main()
