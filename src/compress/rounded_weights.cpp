#include "compress/rounded_weights.h"

#include <torch/torch.h>

#include <cmath>
#include <string>

#include "base/error.h"
#include "base/hash.h"
#include "base/random.h"
#include "compress/chosen_slots.h"
#include "compress/quantise.h"

namespace stretto::compress {
namespace {

// The groups of a tensor that are rounded, bool [count]: group i is where word i % 4 of
// Philox(key, XXH3-64 of the name, i / 4) is below share * 2^32.
torch::Tensor drawn_groups(const std::string& name, int64_t count, double share, uint64_t key) {
  constexpr int64_t kWords = 4;  // of one block of Philox
  const auto bound = static_cast<uint64_t>(std::ldexp(share, 32));
  torch::Tensor drawn = torch::empty({count}, torch::kBool);
  bool* out = drawn.data_ptr<bool>();
  const uint64_t tensor = xxh3_64(name);
  for (int64_t i = 0; i < count; i += kWords) {
    const auto words = Philox::at(key, tensor, static_cast<uint64_t>(i / kWords));
    for (int64_t word = 0; word < kWords && i + word < count; ++word) {
      out[i + word] = words[static_cast<size_t>(word)] < bound;
    }
  }
  return drawn;
}

std::vector<optim::Arena::Slot> slots_to_round(const QuantiseOptions& options,
                                               const optim::Arena& arena) {
  std::vector<optim::Arena::Slot> slots;
  const auto format = format_of(options);
  for (const size_t place :
       chosen_slots(arena, options.tensors, options.except, "compress.quantise")) {
    const auto& slot = arena.slots()[place];
    const std::string problem = store::packing_problem(format, slot.shape);
    if (!problem.empty()) {
      throw Error(ExitCode::kUsage, "compress.quantise: `" + slot.name + "`: " + problem,
                  "choose another compress.quantise.group, or leave the tensor out with "
                  "compress.quantise.except");
    }
    slots.push_back(slot);
  }
  return slots;
}

}  // namespace

store::QuantFormat format_of(const QuantiseOptions& options) {
  return {.bits = options.bits,
          .symmetric = options.symmetric,
          .scope = options.group == 0 ? store::QuantScope::kRow : store::QuantScope::kGroup,
          .group_size = options.group};
}

RoundedWeights::RoundedWeights(const QuantiseOptions& options, optim::Arena& arena)
    : options_(options),
      format_(format_of(options)),
      arena_(arena),
      slots_(slots_to_round(options, arena)),
      kept_(arena, slots_) {}

optim::NoisyWeights RoundedWeights::round(uint64_t key, int64_t updates) {
  if (updates < options_.begin) return {};
  return rounded(options_.noise, key);
}

optim::NoisyWeights RoundedWeights::round_all(int64_t updates) {
  if (!options_.validate || updates < options_.begin) return {};
  return rounded(/*share=*/1, /*key=*/0);
}

optim::NoisyWeights RoundedWeights::rounded(double share, uint64_t key) {
  kept_.keep();
  optim::NoisyWeights weights([this] { kept_.restore(); });
  for (const auto& slot : slots_) round_slot(slot, share, key);
  return weights;
}

void RoundedWeights::round_slot(const optim::Arena::Slot& slot, double share, uint64_t key) {
  const torch::NoGradGuard no_grad;
  torch::Tensor weights = optim::Arena::view(arena_.params(), slot);
  const torch::Tensor codes = nearest(weights, format_);
  if (share >= 1) {
    weights.copy_(codes);
    return;
  }
  const store::QuantLayout layout = store::layout_of(format_, slot.shape);
  const std::vector<int64_t> groups{layout.rows, layout.columns / layout.group_columns,
                                    layout.group_columns};
  const torch::Tensor drawn = drawn_groups(slot.name, groups[0] * groups[1], share, key)
                                  .to(weights.device())
                                  .view({groups[0], groups[1], 1});
  weights.copy_(torch::where(drawn, codes.reshape(groups), weights.view(groups)).view(slot.shape));
}

}  // namespace stretto::compress
