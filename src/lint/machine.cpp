#include "base/text.h"
#include "config/schema.h"
#include "data/rank_batches.h"
#include "lint/rules.h"
#include "optim/precision_options.h"

namespace stretto::lint::rules {
namespace {

using config::number_text;

constexpr double kLargestHalf = 65504;
constexpr double kLargeScale = 32768;
constexpr int64_t kTinyBucket = 65536;
constexpr double kIdleShare = 0.01;

}  // namespace

void half_without_loss_scale(const Subject& s, Remarks& out) {
  const auto& scale = s.e.train.loss_scale;
  if (!optim::may_be_fp16(s.e.train.precision)) return;
  if (scale.name != "none" && !(scale.name == "static" && scale.init == 1)) return;
  out.push_back(
      {"train.loss_scale.name",
       "fp16 has no numbers below 6e-8: without a loss scale small gradients become zero",
       "train.loss_scale.name = \"auto\", or train.precision = \"mixed_bf16\", which needs "
       "no scale"});
}

void static_scale_too_large(const Subject& s, Remarks& out) {
  const auto& scale = s.e.train.loss_scale;
  if (!optim::may_be_fp16(s.e.train.precision) || scale.name != "static") return;
  if (scale.init <= kLargeScale) return;
  out.push_back({"train.loss_scale.init",
                 "at a fixed scale of " + number_text(scale.init) + " a gradient above " +
                     number_text(kLargestHalf / scale.init) +
                     " overflows fp16, and nothing lowers the scale",
                 "128 to 8192 are usual; \"fairseq\" and \"backoff\" find the scale themselves"});
}

void scale_without_half(const Subject& s, Remarks& out) {
  const auto& name = s.e.train.loss_scale.name;
  if (optim::may_be_fp16(s.e.train.precision) || name == "auto" || name == "none") return;
  out.push_back({"train.loss_scale.name",
                 "train.precision = \"" + s.e.train.precision +
                     "\" has the range of fp32: a loss scale only adds work and, when it is not a "
                     "power of two, rounding",
                 "train.loss_scale.name = \"auto\""});
}

void half_precision_wire(const Subject& s, Remarks& out) {
  if (s.e.dist.compress != "fp16" || optim::may_be_fp16(s.e.train.precision)) return;
  out.push_back({"dist.compress",
                 "gradients without a loss scale are sent in fp16, where those below 6e-8 become "
                 "zero",
                 "dist.compress = \"bf16\" keeps the range of fp32"});
}

void tiny_buckets(const Subject& s, Remarks& out) {
  const int64_t bytes = distributed::bucket_bytes_of(s.e.dist, s.e.run.device == "cuda");
  if (bytes >= kTinyBucket) return;
  out.push_back({"dist.bucket_bytes",
                 "in buckets of " + human_bytes(static_cast<uint64_t>(bytes)) +
                     " the time goes to the latency of each reduction",
                 "leave it out, or set 0: 2 MiB over MPI, 25 MiB over NCCL"});
}

void idle_processes(const Subject& s, Remarks& out) {
  const int64_t processes = s.context.processes, work = s.e.train.update_freq;
  if (processes < 2) return;
  const bool cut = experiment::may_cut_micro_batches(s.e);
  const double idle =
      1 - static_cast<double>(work) /
              (data::rounds_of_update(work, processes, cut) * static_cast<double>(processes));
  if (idle <= kIdleShare) return;
  const std::string& bound = s.micro_batch.key;
  const std::string kept =
      bound.empty() ? "" : " (and lower " + bound + " in proportion to keep the batch)";
  out.push_back({"train.update_freq",
                 with_thousands(processes) + " processes cannot share " +
                     counted(work, "micro-batch") + " evenly: they stand idle " +
                     fixed(100 * idle, 0) + " % of the time" +
                     (cut                      ? ""
                      : s.e.dist.deterministic ? " (dist.deterministic cuts no micro-batch)"
                                               : " (with batch norm no micro-batch is cut)"),
                 "make it a multiple of the number of processes" + kept});
}

}  // namespace stretto::lint::rules
