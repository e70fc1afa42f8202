#include "train/checkpointer.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"

namespace stretto::train {
namespace {

constexpr int kFailuresBeforeStop = 3;

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) {
    text += (i > 0 ? ", " : "") + std::to_string(shape[i]);
  }
  return text + "]";
}

void copy_into(const store::TensorView& source, torch::Tensor target) {
  torch::NoGradGuard no_grad;
  // from_blob wants a mutable pointer; the copy only reads.
  const auto stored = torch::from_blob(const_cast<char*>(source.bytes.data()),
                                       torch::IntArrayRef(source.shape), torch::kFloat32);
  target.copy_(stored);
}

// What does not fit, one entry per tensor; empty when all is well.
std::vector<std::string> mismatches(const store::SafetensorsFile& file, const optim::Arena& arena,
                                    const std::string& prefix) {
  std::vector<std::string> wrong;
  std::set<std::string> wanted;
  for (const auto& slot : arena.slots()) {
    wanted.insert(prefix + slot.name);
    const auto* found = file.find(prefix + slot.name);
    if (found == nullptr) {
      wrong.push_back("`" + slot.name + "` is missing");
    } else if (found->shape != slot.shape) {
      wrong.push_back("`" + slot.name + "` is " + shape_text(found->shape) + ", the model wants " +
                      shape_text(slot.shape));
    } else if (found->dtype != store::DType::kF32) {
      wrong.push_back("`" + slot.name + "` is " + std::string(name_of(found->dtype)) +
                      ", expected F32");
    }
  }
  for (const auto& tensor : file.tensors()) {
    if (tensor.name.starts_with(prefix) && !wanted.contains(tensor.name)) {
      wrong.push_back("`" + tensor.name + "` is not in the model");
    }
  }
  return wrong;
}

void load_buffer(const store::SafetensorsFile& file, const std::string& where,
                 const std::string& prefix, const optim::Arena& arena, torch::Tensor& buffer) {
  auto wrong = mismatches(file, arena, prefix);
  if (!wrong.empty()) {
    const size_t count = wrong.size();
    if (count > 5) {
      wrong.resize(5);
      wrong.push_back("and " + std::to_string(count - 5) + " more");
    }
    throw Error(ExitCode::kBadData,
                where + ": the checkpoint does not fit this model: " + join(wrong, "; "),
                "the checkpoint has another architecture or vocabulary: use the configuration it "
                "was trained with, or another --run folder");
  }
  for (const auto& slot : arena.slots()) {
    copy_into(*file.find(prefix + slot.name), optim::Arena::view(buffer, slot));
  }
}

}  // namespace

void load_weights(const store::SafetensorsFile& file, const std::string& where,
                  optim::Arena& arena) {
  load_buffer(file, where, "", arena, arena.params());
}

std::vector<store::TensorView> weight_views(const optim::Arena& arena, const torch::Tensor& buffer,
                                            const std::string& prefix, torch::Tensor& host) {
  host = buffer.cpu();  // no copy when it is on the CPU already
  std::vector<store::TensorView> views;
  for (const auto& slot : arena.slots()) {
    const char* begin = reinterpret_cast<const char*>(host.const_data_ptr<float>() + slot.offset);
    views.push_back({prefix + slot.name,
                     store::DType::kF32,
                     slot.shape,
                     {begin, static_cast<size_t>(slot.numel) * sizeof(float)}});
  }
  return views;
}

Checkpointer::Checkpointer(std::filesystem::path run_directory, RunIdentity identity,
                           TrainOptions options)
    : run_directory_(std::move(run_directory)),
      identity_(std::move(identity)),
      options_(std::move(options)),
      store_(run_directory_) {}

std::optional<TrainState> Checkpointer::restore(optim::Arena& arena, optim::Optimizer& optimizer) {
  store_.remove_stale();
  auto loaded = store_.load_newest(/*quarantine=*/true);
  if (!loaded) return std::nullopt;
  const std::string where = loaded->directory.string();
  load_weights(loaded->file("model"), where + "/model.safetensors", arena);
  for (auto& [name, buffer] : optimizer.state()) {
    load_buffer(loaded->file("optimizer"), where + "/optimizer.safetensors", name + "/", arena,
                buffer);
  }
  return TrainState::from_json(loaded->state_json, where + "/state.json");
}

bool Checkpointer::save(const optim::Arena& arena, optim::Optimizer& optimizer,
                        const TrainState& state) {
  std::vector<torch::Tensor> hosts(1 + optimizer.state().size());
  store::CheckpointContent content{.step = state.step,
                                   .run_id = identity_.run_id,
                                   .config_hash = identity_.config_hash,
                                   .files = {},
                                   .state_json = state.to_json()};
  content.files.emplace_back("model", weight_views(arena, arena.params(), "", hosts[0]));
  std::vector<store::TensorView> optimizer_views;
  size_t next_host = 1;
  for (auto& [name, buffer] : optimizer.state()) {
    for (auto& view : weight_views(arena, buffer, name + "/", hosts[next_host])) {
      optimizer_views.push_back(std::move(view));
    }
    ++next_host;
  }
  content.files.emplace_back("optimizer", std::move(optimizer_views));
  try {
    store_.save(content);
    failures_in_a_row_ = 0;
  } catch (const Error& error) {
    if (error.code() != ExitCode::kIo) throw;
    if (++failures_in_a_row_ >= kFailuresBeforeStop) throw;
    log::warn("checkpoint of step " + std::to_string(state.step) +
              " could not be saved, training goes on: " + error.message());
    return false;
  }
  try {
    store_.prune(steps_to_keep(store_.steps(), state, options_));
  } catch (const Error& error) {
    log::warn("old checkpoints could not be removed: " + error.message());
  }
  return true;
}

std::vector<int64_t> Checkpointer::steps_to_keep(const std::vector<int64_t>& steps,
                                                 const TrainState& state,
                                                 const TrainOptions& options) {
  std::set<int64_t> keep;
  const auto newest = static_cast<size_t>(std::max(options.keep_last, options.average_last));
  for (size_t i = steps.size() - std::min(steps.size(), newest); i < steps.size(); ++i) {
    keep.insert(steps[i]);
  }
  std::vector<std::pair<double, int64_t>> ranked;  // best first; of equals the earlier
  for (const int64_t step : steps) {
    if (const auto found = state.quality.find(step); found != state.quality.end()) {
      ranked.emplace_back(-found->second, step);
    }
    if (options.keep_every > 0 && step % options.keep_every == 0) keep.insert(step);
  }
  std::sort(ranked.begin(), ranked.end());
  for (size_t i = 0; i < ranked.size() && i < static_cast<size_t>(options.keep_best); ++i) {
    keep.insert(ranked[i].second);
  }
  return {keep.begin(), keep.end()};
}

}  // namespace stretto::train
