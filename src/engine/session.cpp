#include "engine/session.h"

#include <malloc.h>
#include <torch/torch.h>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "distributed/cores.h"
#include "distributed/make_group.h"
#include "experiment/experiment_schema.h"
#include "kernels/fallbacks.h"
#include "kernels/gemm/gemm.h"

namespace stretto::engine {
namespace {

// Tensors of a step are freed and asked for again. Left to itself glibc gives large ones back to
// the system each time and takes the page faults anew.
void keep_freed_memory() {
#if defined(__GLIBC__)
  constexpr int kOneGibibyte = 1 << 30;
  mallopt(M_MMAP_THRESHOLD, kOneGibibyte);
  mallopt(M_TRIM_THRESHOLD, kOneGibibyte);
#endif
}

void require_device(const experiment::Experiment& experiment) {
  if (experiment.run.device != "cuda" || torch::cuda::is_available()) return;
  throw Error(
      ExitCode::kUsage, "run.device: \"cuda\", but this process sees no CUDA device",
      "use run.device=auto, or build with ./dev build --preset cuda on a machine with a GPU");
}

}  // namespace

distributed::DeviceKind device_kind(const experiment::Experiment& experiment) {
  const bool on_gpu = experiment.run.device != "cpu" && torch::cuda::is_available();
  return on_gpu ? distributed::DeviceKind::kCuda : distributed::DeviceKind::kCpu;
}

distributed::ProcessGroup join_processes(const experiment::Experiment& experiment) {
  // Else NCCL says that it is missing, and advises the device that the run asks for already.
  if (experiment.dist.backend == "nccl") require_device(experiment);
  return distributed::make_process_group(experiment.dist, device_kind(experiment));
}

bool may_differ_by_rank(const config::Key& key) {
  return key.meta.is_path || key.meta.per_process;
}

void require_same_start(const experiment::Experiment& experiment,
                        const distributed::ProcessGroup& group) {
  if (group.size() == 1) return;
  experiment::Experiment options = experiment;
  std::vector<distributed::Fact> facts{{"libtorch", TORCH_VERSION}};
  for (const auto& key : experiment::experiment_schema(options).keys) {
    if (!may_differ_by_rank(key)) facts.push_back({key.path, config::value_text(key.value)});
  }
  distributed::require_agreement(group, facts);
}

at::Device gpu_of(const distributed::ProcessGroup& group) {
  if (!group.on_device()) return at::kCUDA;
  return {at::kCUDA, static_cast<at::DeviceIndex>(group.device())};
}

at::Device prepare_process(const experiment::Experiment& experiment,
                           const distributed::ProcessGroup& group) {
  at::set_num_threads(static_cast<int>(distributed::threads_for(group, experiment.run.threads)));
  kernels::gemm::take_always(experiment.dist.deterministic);  // for any number of threads
  keep_freed_memory();
  // Denormal numbers make a processor many times slower and mean nothing in training.
  at::globalContext().setFlushDenormal(true);
  // cuBLAS may else cut a product of half types along what is summed, round each part's sum to half
  // and add these: an error that no scale makes smaller.
  at::globalContext().setAllowFP16ReductionCuBLAS(false);
  at::globalContext().setAllowBF16ReductionCuBLAS(false);
  require_device(experiment);
  const bool on_gpu = device_kind(experiment) == distributed::DeviceKind::kCuda;
  return on_gpu ? gpu_of(group) : at::Device(at::kCPU);
}

std::string text_of_fallbacks(const std::vector<std::string>& operators) {
  if (operators.empty()) return "";
  return "operators without a kernel on a GPU, which run as plain libtorch operations there: " +
         join(operators, ", ");
}

optim::Precision agreed_precision(const std::string& option, const std::string& key,
                                  at::Device device, const distributed::ProcessGroup& group) {
  auto chosen = optim::choose_precision(option, device, key);
  distributed::require_agreement(group, {{key, chosen.name}});
  return chosen;
}

optim::Precision scoring_precision(const experiment::Experiment& experiment, at::Device device,
                                   const distributed::ProcessGroup& group) {
  const std::string key = "eval.precision";
  auto chosen = agreed_precision(experiment.eval.precision, key, device, group);
  if (group.is_root() && (chosen.remarkable || chosen.compute != kernels::Compute::kFp32)) {
    log::info(key + ": " + chosen.name + ": " + chosen.why);
  }
  return chosen;
}

void tell_of_fallbacks(at::Device device, const distributed::ProcessGroup& group) {
  const std::string text = text_of_fallbacks(kernels::fallbacks(device));
  if (group.is_root() && !text.empty()) log::info(text);
}

}  // namespace stretto::engine
