#include "tasks/session.h"

#include <malloc.h>
#include <torch/torch.h>

#include "base/error.h"
#include "base/log.h"
#include "base/system_info.h"
#include "optim/arena.h"
#include "train/average.h"
#include "train/checkpointer.h"

namespace stretto::tasks {
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

}  // namespace

at::Device prepare_process(const experiment::Experiment& experiment) {
  const int threads =
      experiment.run.threads > 0 ? static_cast<int>(experiment.run.threads) : usable_cores();
  at::set_num_threads(threads);
  keep_freed_memory();
  // Denormal numbers make a processor many times slower and mean nothing in training.
  at::globalContext().setFlushDenormal(true);
  const bool has_cuda = torch::cuda::is_available();
  if (experiment.run.device == "cuda" && !has_cuda) {
    throw Error(
        ExitCode::kUsage, "run.device: \"cuda\", but this process sees no CUDA device",
        "use run.device=auto, or build with ./dev build --preset cuda on a machine with a GPU");
  }
  const bool use_cuda = has_cuda && experiment.run.device != "cpu";
  return use_cuda ? at::Device(at::kCUDA) : at::Device(at::kCPU);
}

LoadedRun load_run(const experiment::Experiment& experiment, const train::RunFolder& folder,
                   const std::string& checkpoints) {
  const auto assets = folder.read_assets();
  if (assets.empty()) {
    throw Error(ExitCode::kUsage, folder.directory().string() + " has no tokenizer yet",
                "training never came so far; run `stretto train` first");
  }
  LoadedRun run;
  run.tokenizers = text::load_tokenizers(experiment.tokenizer, assets);
  const at::Device device = prepare_process(experiment);
  run.checkpoints = train::find_checkpoints(folder.directory(), checkpoints);
  for (const auto& path : run.checkpoints) {
    auto model = make_translation_model(experiment, run.tokenizers, device).model;
    const auto checkpoint = store::CheckpointStore::load(path);
    optim::Arena arena(*model);
    train::load_weights(checkpoint.file("model"), path.string() + "/model.safetensors", arena);
    model->eval();
    run.models.push_back(std::move(model));
  }
  return run;
}

}  // namespace stretto::tasks
