#include "losses/registry.h"

#include <array>
#include <string>
#include <string_view>

#include "base/error.h"
#include "losses/sampled_softmax.h"

namespace stretto::losses {
namespace {

struct Loss {
  std::string_view name;
  nn::OutputLoss (*make)(const CrossEntropyOptions&);
  nn::OutputLoss (*make_of_pairs)(const CrossEntropyOptions&);
  DistributionLoss (*make_of_distributions)(const CrossEntropyOptions&);
};

constexpr std::array<Loss, 1> kLosses{{
    {"cross_entropy", &cross_entropy, &cross_entropy_of_pairs, &cross_entropy_of_distributions},
}};

const Loss& loss_called(const CrossEntropyOptions& options) {
  std::string known;
  for (const auto& loss : kLosses) {
    if (loss.name == options.name) return loss;
    known += (known.empty() ? "" : ", ") + std::string(loss.name);
  }
  throw Error(ExitCode::kUsage, "loss.name: unknown loss `" + options.name + "`",
              "known: " + known);
}

}  // namespace

nn::OutputLoss make_loss(const CrossEntropyOptions& options) {
  return loss_called(options).make(options);
}

nn::OutputLoss make_pair_loss(const CrossEntropyOptions& options) {
  return loss_called(options).make_of_pairs(options);
}

DistributionLoss make_distribution_loss(const CrossEntropyOptions& options) {
  return loss_called(options).make_of_distributions(options);
}

nn::OutputLoss make_next_token_loss(const NextTokenLossOptions& options) {
  const nn::OutputLoss whole = make_loss(options.cross_entropy());
  return options.sampled_tokens > 0 ? sampled_softmax(options.sampled_tokens, whole) : whole;
}

}  // namespace stretto::losses
