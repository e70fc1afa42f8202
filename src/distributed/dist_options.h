#pragma once

#include <cstdint>
#include <string>

#include "config/field.h"

namespace stretto::distributed {

/// `[dist]`: processes that train one model together.
struct DistOptions {
  std::string backend = "auto";
  std::string strategy = "all_reduce";
  int64_t bucket_bytes = 0;
  bool overlap = true;
  std::string compress = "none";
  bool deterministic = false;
  std::string batch_norm = "worker";
  double timeout_seconds = 60;
  double stall_seconds = 1800;
  int64_t check_every = 100;

  static auto fields() {
    using namespace config;
    using O = DistOptions;
    return Fields{
        field(
            &O::backend, "backend",
            "how processes talk; auto: MPI for a job started by mpirun or srun, NCCL between GPUs",
            one_of({"auto", "single", "mpi", "nccl"}), {.change = Change::kFree})
            .also_called({"distributed_backend", "ddp_type"})
            .value_also_called("mpi", {"gloo", "openmpi", "horovod"})
            .value_also_called("single", {"none"})
            .value_also_called("nccl", {"cuda"}),
        field(&O::strategy, "strategy",
              "all_reduce: every process steps; sharded: each steps its slice and keeps only that "
              "slice's optimizer state; parameter_server: process 0 steps",
              one_of({"all_reduce", "sharded", "parameter_server"}), {.change = Change::kFree})
            .also_called({"ddp_backend", "ddp_strategy", "data_parallel", "zero_sharding", "fsdp"})
            .value_also_called("all_reduce", {"ddp", "legacy_ddp", "no_c10d", "pytorch_ddp"})
            .value_also_called("sharded", {"zero", "zero1", "os", "fully_sharded"})
            .value_also_called("sharded", {"fsdp"},
                               "of the optimizer state alone: weights stay whole")
            .value_also_called("parameter_server", {"ps"}),
        field(
            &O::bucket_bytes, "bucket_bytes",
            "gradients are sent in buckets of about this size as they become ready; 0 = 2 MiB over "
            "MPI, 25 MiB over NCCL",
            at_least(0), {.unit = "bytes", .change = Change::kFree})
            .also_called({"bucket_cap_mb", "ddp_bucket_cap_mb", "tensor_fusion_threshold",
                          "bucket_size_mb"}),
        field(&O::overlap, "overlap", "send gradients while backward still runs", any(),
              {.change = Change::kFree})
            .also_called({"overlap_comm", "overlap_communication"}),
        field(&O::compress, "compress", "gradients are sent in this type",
              one_of({"none", "bf16", "fp16"}), {.change = Change::kFree})
            .also_called({"gradient_compression", "compression", "fp16_compression"})
            .value_also_called("fp16", {"float16", "half"})
            .value_also_called("bf16", {"bfloat16", "true"})
            .value_also_called("none", {"off", "false"}),
        field(&O::deterministic, "deterministic",
              "sum gradients in the order of micro-batches, so that any number of processes, and "
              "on a "
              "CPU of threads, gives the same bits; slower"),
        field(&O::batch_norm, "batch_norm",
              "whose rows a batch norm takes mean and variance of: worker: one micro-batch's, "
              "whoever has it; all: those of all processes' micro-batches together",
              one_of({"worker", "all"}))
            .also_called({"sync_batch_norm", "sync_bn"})
            .value_also_called("all", {"sync", "synchronized", "global", "true"})
            .value_also_called("worker", {"local", "false"}),
        field(&O::timeout_seconds, "timeout_seconds",
              "a process that is not heard of for so long is lost, and all others leave",
              at_least(1), {.unit = "seconds", .change = Change::kFree})
            .also_called({"timeout", "ddp_timeout", "heartbeat_timeout"}),
        field(&O::stall_seconds, "stall_seconds",
              "a process that lives but hangs, while others wait for it so long in a collective, "
              "ends the job; 0 = never",
              at_least(0), {.unit = "seconds", .change = Change::kFree}),
        field(
            &O::check_every, "check_every",
            "updates between comparisons of the weights of all processes, which are also compared "
            "before each checkpoint; 0 = never",
            at_least(0), {.unit = "updates", .change = Change::kFree}),
    };
  }
};

/// What `dist.bucket_bytes` = 0 means. Between processors the first bucket is to leave early, and
/// 2 MiB were the fastest over 1 Gbit/s (benchmarks/scale_epyc-zen5_2026-11-21.md). Between many
/// GPUs a ring passes each bucket on so often that its latency decides: the 25 MiB of PyTorch's
/// DistributedDataParallel (Li et al. 2020, arXiv:2006.15704).
inline constexpr int64_t kMpiBucketBytes = 2 << 20, kNcclBucketBytes = 25 << 20;

/// Least bytes of a bucket that is given.
inline constexpr int64_t kLeastBucketBytes = 4096;

/// Bytes of a bucket; what trains, plans and checks asks here.
///
/// @param nccl  whether NCCL carries them, which is between GPUs
constexpr int64_t bucket_bytes_of(const DistOptions& options, bool nccl) {
  if (options.bucket_bytes > 0) return options.bucket_bytes;
  return nccl ? kNcclBucketBytes : kMpiBucketBytes;
}

}  // namespace stretto::distributed
