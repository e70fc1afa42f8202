#include "optim/weight_noise.h"

#include <algorithm>
#include <string>

#include "base/error.h"
#include "optim/group_options.h"
#include "optim/groups.h"
#include "optim/normal_noise.h"

namespace stretto::optim {
namespace {

constexpr int64_t kDrawnAtOnce = int64_t{1} << 20;  // elements: bounds what a draw takes of memory

std::vector<Arena::Slot> slots_with_noise(const OptimOptions& options, const Arena& arena) {
  const auto& patterns = options.weight_noise_tensors;
  const auto names = names_of(arena);
  for (const auto& pattern : patterns) {
    if (const auto problem = matches_nothing(pattern, names)) {
      throw Error(ExitCode::kUsage, "optim.weight_noise_tensors: " + problem->what, problem->hint);
    }
  }
  std::vector<Arena::Slot> found;
  for (const auto& slot : arena.slots()) {
    const bool named = std::any_of(patterns.begin(), patterns.end(), [&](const auto& pattern) {
      return matches(pattern, slot.name);
    });
    if (patterns.empty() ? slot.shape.size() >= 2 : named) found.push_back(slot);
  }
  return found;
}

}  // namespace

WeightNoise::WeightNoise(const OptimOptions& options, Arena& arena)
    : arena_(arena),
      deviation_(options.weight_noise),
      slots_(slots_with_noise(options, arena)),
      kept_(arena, slots_) {}

NoisyWeights WeightNoise::add(uint64_t key, int64_t updates) {
  const torch::NoGradGuard no_grad;
  torch::Tensor& params = arena_.params();
  kept_.keep();
  NoisyWeights noisy([this] { kept_.restore(); });
  for (const auto& slot : slots_) {
    if (slot.begins > updates) continue;
    for (int64_t begin = 0; begin < slot.numel; begin += kDrawnAtOnce) {
      const int64_t end = std::min(slot.numel, begin + kDrawnAtOnce);
      const torch::Tensor noise =
          normal_noise(slot.name, {begin, end}, key, static_cast<float>(deviation_));
      params.narrow(0, slot.offset + begin, end - begin).add_(noise.to(params.options()));
    }
  }
  return noisy;
}

}  // namespace stretto::optim
