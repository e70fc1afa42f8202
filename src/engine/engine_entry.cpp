#include "engine/engine_entry.h"

#include <ATen/Version.h>
#include <torch/torch.h>

#include "base/build_id.h"
#include "base/error.h"
#include "engine/commands.h"
#include "kernels/cuda/cuda.h"
#include "kernels/fallbacks.h"
#include "parallel/out_of_memory.h"
#include "tasks/registry.h"

namespace stretto::engine {
namespace {

const char* describe_engine() {
  static const std::string text =
      c10::str("libtorch ", TORCH_VERSION, ", ", at::get_cpu_capability(), ", ",
               torch::cuda::is_available() ? "CUDA available" : "no CUDA device");
  return text.c_str();
}

std::vector<std::string> gpu_fallbacks() {
  return kernels::fallbacks(at::kCUDA);
}

uint64_t gpu_memory() {
  return static_cast<uint64_t>(
      kernels::cuda::total_memory_bytes(at::Device(at::kCUDA, 0)).value_or(0));
}

// How much was asked for, and on which device, without the stack that libtorch prints below it.
std::string reason_of(const std::exception& error) {
  const auto* told = dynamic_cast<const c10::Error*>(&error);
  if (told == nullptr) return "out of memory";
  const std::string text = told->what_without_backtrace();
  return "out of memory: " + text.substr(0, text.find('\n'));
}

template <class Request>
std::string advice_of(const Request& request, tasks::MemoryUse use) {
  return tasks::family_of(request.experiment.options).memory_advice(use);
}

int train(const TrainRequest& request) {
  return with_memory_advice(advice_of(request, tasks::MemoryUse::kTrain),
                            [&] { return run_train(request); });
}

int eval(const EvalRequest& request) {
  return with_memory_advice(advice_of(request, tasks::MemoryUse::kEval),
                            [&] { return run_eval(request); });
}

int infer(const InferRequest& request) {
  return with_memory_advice(advice_of(request, tasks::MemoryUse::kInfer),
                            [&] { return run_infer(request); });
}

int embed(const EmbedRequest& request) {
  return with_memory_advice("lower --batch-tokens and --max-tokens",
                            [&] { return run_embed(request); });
}

int average(const AverageRequest& request) {
  return with_memory_advice("stop what else takes the memory of this machine",
                            [&] { return run_average(request); });
}

int import_model(const ImportRequest& request) {
  return with_memory_advice("a model needs twice its size here; stop what else takes memory",
                            [&] { return run_import(request); });
}

int export_model(const ExportRequest& request) {
  return with_memory_advice("a model needs twice its size here; stop what else takes memory",
                            [&] { return run_export(request); });
}

int compress_model(const CompressRequest& request) {
  return with_memory_advice("a model needs twice its size here; stop what else takes memory",
                            [&] { return run_compress(request); });
}

int bench(const BenchRequest& request) {
  return with_memory_advice(advice_of(request, tasks::MemoryUse::kEval),
                            [&] { return run_bench(request); });
}

int replay(const ReplayRequest& request) {
  return with_memory_advice(
      "stop what else takes this memory; of a GPU's there is less than the machine's, which "
      "run.device=cpu takes",
      [&] { return run_replay(request); });
}

}  // namespace

int with_memory_advice(const std::string& advice, const std::function<int()>& command) {
  try {
    return command();
  } catch (const std::exception& error) {
    if (!parallel::is_out_of_memory(error)) throw;
    throw Error(ExitCode::kOutOfMemory, reason_of(error), advice);
  }
}

}  // namespace stretto::engine

const stretto::engine::EngineApi stretto_engine{
    .build_id = stretto::build_id(),
    .train = &stretto::engine::train,
    .eval = &stretto::engine::eval,
    .infer = &stretto::engine::infer,
    .embed = &stretto::engine::embed,
    .average = &stretto::engine::average,
    .replay = &stretto::engine::replay,
    .import_model = &stretto::engine::import_model,
    .export_model = &stretto::engine::export_model,
    .compress = &stretto::engine::compress_model,
    .bench = &stretto::engine::bench,
    .check = &stretto::engine::run_check,
    .tensor_names = &stretto::engine::tensor_names,
    .model_cost = &stretto::engine::model_cost,
    .describe = &stretto::engine::describe_engine,
    .gpu_fallbacks = &stretto::engine::gpu_fallbacks,
    .gpu_memory = &stretto::engine::gpu_memory,
};
