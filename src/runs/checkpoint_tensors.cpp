#include "runs/checkpoint_tensors.h"

#include <torch/torch.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "optim/weight_average.h"
#include "runs/stored_masks.h"

namespace stretto::runs {
namespace {

// All of `wanted` or, when anything does not fit, nothing.
void load_all(const store::SafetensorsFile& file, const std::string& where,
              const std::string& prefix, const std::vector<StoredTarget>& wanted,
              const std::set<std::string>& left_out = {}) {
  require_all_fit(file, where, prefix, wanted, left_out);
  copy_all(file, wanted);
}

bool is_average(const optim::StateTensor& tensor) {
  return tensor.name == optim::kWeightAverage;
}

// In place of the average, which is the model, stand the weights that were trained.
std::string prefix_of(const optim::StateTensor& tensor) {
  return (is_average(tensor) ? "trained" : tensor.name) + "/";
}

// What the file may have of tensors that have no such state: earlier versions wrote zeros for
// Muon's matrices.
std::set<std::string> names_without(const optim::StateTensor& tensor, const optim::Arena& arena) {
  std::set<std::string> names;
  for (const auto& slot : arena.slots()) {
    const optim::Slice elements{slot.offset, slot.offset + slot.numel};
    if (!tensor.held.has(elements)) names.insert(prefix_of(tensor) + slot.name);
  }
  return names;
}

void exchange(at::Tensor& one, at::Tensor other) {
  const torch::NoGradGuard no_grad;
  const at::Tensor kept = one.clone();
  one.copy_(other);
  other.copy_(kept);
}

void require_whole(const optim::StateTensor& tensor, const optim::Arena& arena) {
  const int64_t size = tensor.held.count_before(arena.size());
  TORCH_CHECK(!tensor.flat || tensor.values.numel() == size, "[checkpoint] state `", tensor.name,
              "` has ", tensor.values.numel(), " elements, the arena ", size,
              "; a checkpoint takes the state of the whole arena, not of a slice");
}

// `source` as it stands now, in `host`.
void copy_to_host(const at::Tensor& source, Snapshot::Bytes bytes, at::Tensor& host) {
  if (bytes == Snapshot::Bytes::kBorrowed) {
    host = source.detach().cpu().contiguous();  // itself where nothing is to be done
    return;
  }
  if (!host.defined() || host.sizes() != source.sizes()) {
    host = at::empty(source.sizes(), at::dtype(source.scalar_type()));
  }
  host.copy_(source);  // one pass over flat memory, on all threads
}

store::TensorView view_of(const std::string& name, const at::Tensor& host, int64_t offset,
                          std::vector<int64_t> shape, int64_t numel) {
  const char* begin = reinterpret_cast<const char*>(host.const_data_ptr<float>() + offset);
  return {name,
          store::DType::kF32,
          std::move(shape),
          {begin, static_cast<size_t>(numel) * sizeof(float)}};
}

void add_slots(const std::vector<optim::Arena::Slot>& slots, const at::Tensor& host,
               const std::string& prefix, std::vector<store::TensorView>& views) {
  for (const auto& slot : slots) {
    views.push_back(view_of(prefix + slot.name, host, slot.offset, slot.shape, slot.numel));
  }
}

}  // namespace

void load_weights(const store::SafetensorsFile& file, const std::string& where, optim::Arena& arena,
                  const std::vector<MatchedTable>& matched) {
  load_all(file, where, "", weight_targets(arena, matched));
}

void load_optimizer_state(const store::SafetensorsFile& file, const std::string& where,
                          optim::Arena& arena, const std::vector<optim::StateTensor>& state) {
  for (const auto& tensor : state) {
    require_whole(tensor, arena);
    if (tensor.flat) {
      const std::string prefix = prefix_of(tensor);
      load_all(file, where, prefix,
               slot_targets(prefix, optim::slots_in(tensor.held, arena.slots()), tensor.values),
               names_without(tensor, arena));
      if (is_average(tensor)) exchange(arena.params(), tensor.values);
      continue;
    }
    const auto problem = mismatch(file, tensor.name, tensor.name, {tensor.values.numel()});
    if (problem) require_fit({*problem}, where);
    copy_into(*file.find(tensor.name), tensor.values.view({-1}));
  }
}

void Snapshot::take(const optim::Arena& arena, const std::vector<optim::StateTensor>& state,
                    Bytes bytes, std::shared_ptr<const compress::PackedMasks> masks) {
  const torch::NoGradGuard no_grad;
  masks_ = std::move(masks);
  for (const auto& tensor : state) require_whole(tensor, arena);
  slots_ = arena.slots();
  // Bytes that were borrowed must not be written to.
  if (bytes == Bytes::kBorrowed || !owns_bytes_) {
    params_ = at::Tensor();
    buffers_.clear();
    state_.clear();
  }
  owns_bytes_ = bytes == Bytes::kOwn;
  copy_to_host(arena.params(), bytes, params_);
  buffers_.resize(arena.buffers().size());
  for (size_t i = 0; i < buffers_.size(); ++i) {
    buffers_[i].name = arena.buffers()[i].name;
    copy_to_host(arena.buffers()[i].values, bytes, buffers_[i].values);
  }
  state_.resize(state.size());
  for (size_t i = 0; i < state.size(); ++i) {
    state_[i].name = state[i].name;
    state_[i].flat = state[i].flat;
    state_[i].held = state[i].held;
    copy_to_host(state[i].values, bytes, state_[i].values);
  }
}

std::vector<std::pair<std::string, std::vector<store::TensorView>>> Snapshot::files() const {
  std::vector<store::TensorView> model, optimizer;
  const auto average = std::find_if(state_.begin(), state_.end(), is_average);
  add_slots(slots_, average == state_.end() ? params_ : average->values, "", model);
  for (const auto& buffer : buffers_) {
    model.push_back(
        view_of(buffer.name, buffer.values, 0, buffer.values.sizes().vec(), buffer.values.numel()));
  }
  for (const auto& tensor : state_) {
    if (tensor.flat) {
      add_slots(optim::slots_in(tensor.held, slots_), is_average(tensor) ? params_ : tensor.values,
                prefix_of(tensor), optimizer);
    } else {
      const int64_t numel = tensor.values.numel();
      optimizer.push_back(view_of(tensor.name, tensor.values, 0, {numel}, numel));
    }
  }
  std::vector<std::pair<std::string, std::vector<store::TensorView>>> files;
  files.emplace_back("model", std::move(model));
  files.emplace_back("optimizer", std::move(optimizer));
  if (masks_ && !masks_->empty()) files.emplace_back(kMasksFile, mask_views(*masks_));
  return files;
}

}  // namespace stretto::runs
