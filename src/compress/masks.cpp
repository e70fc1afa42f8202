#include "compress/masks.h"

#include <torch/torch.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "compress/chosen_slots.h"
#include "compress/magnitude.h"

namespace stretto::compress {
namespace {

// A tensor that is pruned: fp32 on the CPU, contiguous.
struct Candidate {
  std::string name;
  torch::Tensor weights;
  int64_t columns = 0;  ///< of its matrix
  std::vector<uint8_t> pruned;

  PrunedWeights view() {
    const auto numel = static_cast<size_t>(weights.numel());
    return {.weights = {weights.const_data_ptr<float>(), numel}, .pruned = pruned};
  }
};

void require_something_left(const std::vector<Candidate>& tensors, double sparsity,
                            const std::string& scope) {
  for (const Candidate& tensor : tensors) {
    if (tensor.pruned.empty() ||
        count_pruned(tensor.pruned) < static_cast<int64_t>(tensor.pruned.size())) {
      continue;
    }
    const std::string other =
        scope == "global" && sparsity < 1
            ? ", prune the same share of each tensor (--prune-scope layer, compress.prune.scope)"
            : "";
    throw Error(
        ExitCode::kUsage,
        "pruning to a share of " + shortest(sparsity) + " leaves nothing of `" + tensor.name + "`",
        "prune less" + other + ", or leave the tensor out (--keep, compress.prune.except)");
  }
}

void prune_candidates(std::vector<Candidate>& tensors, double sparsity, const std::string& scope) {
  std::vector<PrunedWeights> views;
  int64_t numel = 0;
  for (Candidate& tensor : tensors) {
    views.push_back(tensor.view());
    numel += tensor.weights.numel();
  }
  if (scope == "layer" || scope == "block") {
    for (size_t i = 0; i < views.size(); ++i) {
      const int64_t count = num_pruned(tensors[i].weights.numel(), sparsity);
      if (scope == "block") {
        prune_smallest_blocks(views[i], tensors[i].columns, count);
      } else {
        prune_smallest({&views[i], 1}, count);
      }
    }
  } else {
    prune_smallest(views, num_pruned(numel, sparsity));
  }
  require_something_left(tensors, sparsity, scope);
}

}  // namespace

std::string pack_mask(std::span<const uint8_t> pruned) {
  std::string bits(static_cast<size_t>(mask_bytes(static_cast<int64_t>(pruned.size()))), '\0');
  for (size_t i = 0; i < pruned.size(); ++i) {
    if (pruned[i] == 0) continue;
    bits[i / 8] = static_cast<char>(static_cast<unsigned char>(bits[i / 8]) | (1U << (i % 8)));
  }
  return bits;
}

std::vector<uint8_t> unpack_mask(std::string_view bits, int64_t numel) {
  TORCH_CHECK(static_cast<int64_t>(bits.size()) == mask_bytes(numel), "[masks] ", bits.size(),
              " bytes are no mask of ", numel, " weights");
  std::vector<uint8_t> pruned(static_cast<size_t>(numel));
  for (size_t i = 0; i < pruned.size(); ++i) {
    pruned[i] = (static_cast<unsigned char>(bits[i / 8]) >> (i % 8)) & 1U;
  }
  return pruned;
}

std::string joined_masks(const PackedMasks& masks) {
  std::string bytes;
  const auto add = [&](std::string_view text) {
    const uint64_t size = text.size();
    bytes.append(reinterpret_cast<const char*>(&size), sizeof(size));
    bytes += text;
  };
  for (const auto& [name, bits] : masks) {
    add(name);
    add(bits);
  }
  return bytes;
}

PackedMasks split_masks(std::string_view bytes) {
  const auto take = [&] {
    uint64_t size = 0;
    TORCH_CHECK(bytes.size() >= sizeof(size), "[masks] bytes of masks end early");
    std::memcpy(&size, bytes.data(), sizeof(size));
    bytes.remove_prefix(sizeof(size));
    TORCH_CHECK(bytes.size() >= size, "[masks] bytes of masks end early");
    std::string text(bytes.substr(0, size));
    bytes.remove_prefix(size);
    return text;
  };
  PackedMasks masks;
  while (!bytes.empty()) {
    const std::string name = take();
    masks[name] = take();
  }
  return masks;
}

PackedMasks masks_that_hold(PackedMasks masks, const optim::Arena& arena) {
  const torch::NoGradGuard no_grad;
  std::vector<std::string> others;
  for (const auto& slot : arena.slots()) {
    const auto found = masks.find(slot.name);
    if (found == masks.end() ||
        mask_bytes(slot.numel) != static_cast<int64_t>(found->second.size())) {
      continue;
    }
    const auto pruned = unpack_mask(found->second, slot.numel);
    const torch::Tensor weights =
        arena.params().narrow(0, slot.offset, slot.numel).to(torch::kFloat).cpu();
    const float* values = weights.const_data_ptr<float>();
    bool holds = true;
    for (size_t i = 0; i < pruned.size(); ++i) holds = holds && (pruned[i] == 0 || values[i] == 0);
    if (holds) continue;
    others.push_back(slot.name);
    masks.erase(found);
  }
  if (!others.empty()) {
    log::info(
        "tensors that were pruned elsewhere and begin with other weights here train all of "
        "them: " +
        join(others, ", "));
  }
  return masks;
}

void apply_mask(std::string_view bits, std::span<float> weights) {
  const auto pruned = unpack_mask(bits, static_cast<int64_t>(weights.size()));
  for (size_t i = 0; i < weights.size(); ++i) {
    if (pruned[i] != 0) weights[i] = 0;
  }
}

PackedMasks prune_tensors(const std::vector<std::pair<std::string, torch::Tensor>>& tensors,
                          double sparsity, const std::string& scope) {
  std::vector<Candidate> candidates;
  for (const auto& [name, weights] : tensors) {
    TORCH_CHECK(
        weights.is_cpu() && weights.is_contiguous() && weights.scalar_type() == torch::kFloat,
        "[prune] `", name, "` is not fp32, contiguous and on the CPU");
    const int64_t rows = weights.dim() > 0 ? std::max<int64_t>(1, weights.size(0)) : 1;
    candidates.push_back({.name = name,
                          .weights = weights.detach(),
                          .columns = weights.numel() / rows,
                          .pruned = std::vector<uint8_t>(static_cast<size_t>(weights.numel()))});
  }
  prune_candidates(candidates, sparsity, scope);
  PackedMasks masks;
  for (Candidate& tensor : candidates) {
    if (count_pruned(tensor.pruned) == 0) continue;
    masks[tensor.name] = pack_mask(tensor.pruned);
    float* weights = tensor.weights.data_ptr<float>();
    for (size_t i = 0; i < tensor.pruned.size(); ++i) {
      if (tensor.pruned[i] != 0) weights[i] = 0;
    }
  }
  return masks;
}

/// A tensor with a mask.
struct Masks::Masked {
  size_t slot = 0;
  torch::Tensor pruned;  ///< bool [numel], on the arena's device
};

Masks::Masks(const PruneOptions& options, const optim::Arena& arena)
    : scope_(options.scope), slots_(arena.slots()) {
  for (const auto& buffer : arena.buffers()) {
    if (buffer.is_parameter) frozen_[buffer.name] = buffer.values.numel();
  }
  if (!options.prunes()) return;
  prunable_ = chosen_slots(arena, options.tensors, options.except, "compress.prune");
  for (const size_t slot : prunable_) num_prunable_ += slots_[slot].numel;
}

Masks::~Masks() = default;

bool Masks::prune(optim::Arena& arena, double sparsity, int64_t updates) {
  const torch::NoGradGuard no_grad;
  std::map<size_t, std::vector<uint8_t>> before;
  for (const Masked& masked : masked_) {
    const auto& slot = slots_[masked.slot];
    before[masked.slot] = unpack_mask(packed_->at(slot.name), slot.numel);
  }
  std::vector<Candidate> candidates;
  std::vector<size_t> places;
  for (const size_t place : prunable_) {
    const auto& slot = slots_[place];
    if (slot.begins > updates) continue;
    const auto found = before.find(place);
    candidates.push_back(
        {.name = slot.name,
         .weights = arena.params().narrow(0, slot.offset, slot.numel).to(torch::kFloat).cpu(),
         .columns = slot.shape.empty() ? slot.numel
                                       : slot.numel / std::max<int64_t>(1, slot.shape.front()),
         .pruned = found != before.end() ? found->second
                                         : std::vector<uint8_t>(static_cast<size_t>(slot.numel))});
    places.push_back(place);
  }
  prune_candidates(candidates, sparsity, scope_);
  auto pruned = before;
  for (size_t i = 0; i < places.size(); ++i) pruned[places[i]] = std::move(candidates[i].pruned);
  const int64_t num_before = num_pruned_;
  take(pruned, arena.params().device());
  apply(arena.params());
  return num_pruned_ != num_before;
}

// Tensors without a pruned weight have no mask.
void Masks::take(const std::map<size_t, std::vector<uint8_t>>& pruned, at::Device device) {
  masked_.clear();
  num_pruned_ = 0;
  auto packed = std::make_shared<PackedMasks>(of_frozen_);
  for (const auto& [place, marks] : pruned) {
    const int64_t count = count_pruned(marks);
    if (count == 0) continue;
    num_pruned_ += count;
    (*packed)[slots_[place].name] = pack_mask(marks);
    torch::Tensor mask = torch::empty({slots_[place].numel}, torch::kBool);
    std::transform(marks.begin(), marks.end(), mask.data_ptr<bool>(),
                   [](uint8_t mark) { return mark != 0; });
    masked_.push_back({.slot = place, .pruned = mask.to(device)});
  }
  packed_ = packed->empty() ? nullptr : std::move(packed);
  count_weights();
}

// Of the tensors that may be pruned, and of those that were elsewhere.
void Masks::count_weights() {
  std::vector<size_t> counted = prunable_;
  for (const Masked& masked : masked_) {
    if (std::find(counted.begin(), counted.end(), masked.slot) == counted.end()) {
      counted.push_back(masked.slot);
    }
  }
  num_prunable_ = 0;
  for (const size_t slot : counted) num_prunable_ += slots_[slot].numel;
}

std::vector<std::string> Masks::set(const PackedMasks& masks, at::Device device) {
  std::map<size_t, std::vector<uint8_t>> pruned;
  std::vector<std::string> left_out;
  of_frozen_.clear();
  for (const auto& [name, bits] : masks) {
    const auto frozen = frozen_.find(name);
    if (frozen != frozen_.end() &&
        mask_bytes(frozen->second) == static_cast<int64_t>(bits.size())) {
      of_frozen_[name] = bits;
      continue;
    }
    const auto slot = std::find_if(
        slots_.begin(), slots_.end(),
        [&wanted = name](const optim::Arena::Slot& one) { return one.name == wanted; });
    if (slot == slots_.end() || mask_bytes(slot->numel) != static_cast<int64_t>(bits.size())) {
      left_out.push_back(name);
      continue;
    }
    pruned[static_cast<size_t>(slot - slots_.begin())] = unpack_mask(bits, slot->numel);
  }
  take(pruned, device);
  return left_out;
}

void Masks::apply(torch::Tensor part, optim::Slice slice) const {
  const torch::NoGradGuard no_grad;
  for (const Masked& masked : masked_) {
    const auto& slot = slots_[masked.slot];
    const optim::Slice common = optim::part_in(slot, slice);
    if (common.size() == 0) continue;
    part.narrow(0, common.begin - slice.begin, common.size())
        .masked_fill_(masked.pruned.narrow(0, common.begin - slot.offset, common.size()), 0);
  }
}

void Masks::apply(const optim::StateTensor& state, optim::Slice slice) const {
  if (!state.flat) return;
  const torch::NoGradGuard no_grad;
  const int64_t first = state.held.count_before(slice.begin);
  for (const Masked& masked : masked_) {
    const auto& slot = slots_[masked.slot];
    const optim::Slice common = optim::part_in(slot, slice);
    if (common.size() == 0 || !state.held.has(common)) continue;
    state.values.narrow(0, state.held.count_before(common.begin) - first, common.size())
        .masked_fill_(masked.pruned.narrow(0, common.begin - slot.offset, common.size()), 0);
  }
}

}  // namespace stretto::compress
