#include "losses/registry.h"

#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "losses/cross_entropy.h"

namespace stretto::losses {
namespace {

using MakeLoss = nn::OutputLoss (*)(const CrossEntropyOptions&);

constexpr std::array<std::pair<std::string_view, MakeLoss>, 1> kLosses{{
    {"cross_entropy", &cross_entropy},
}};

}  // namespace

nn::OutputLoss make_loss(const CrossEntropyOptions& options) {
  std::string known;
  for (const auto& [name, make] : kLosses) {
    if (name == options.name) return make(options);
    known += (known.empty() ? "" : ", ") + std::string(name);
  }
  throw Error(ExitCode::kUsage, "loss.name: unknown loss `" + options.name + "`",
              "known: " + known);
}

}  // namespace stretto::losses
