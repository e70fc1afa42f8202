#include <array>
#include <cmath>
#include <string_view>

#include "base/error.h"
#include "kernels/kernels.h"
#include "optim/adam.h"
#include "optim/optimizer.h"
#include "optim/sgd.h"

namespace stretto::optim {
namespace {

using MakeOptimizer = std::unique_ptr<Optimizer> (*)(const OptimOptions&, const Arena&);

template <class T>
std::unique_ptr<Optimizer> make(const OptimOptions& options, const Arena& arena) {
  return std::make_unique<T>(options, arena);
}

constexpr std::array<std::pair<std::string_view, MakeOptimizer>, 3> kOptimizers{{
    {"adam", &make<Adam>},
    {"adamw", &make<Adam>},
    {"sgd", &make<Sgd>},
}};

}  // namespace

std::unique_ptr<Optimizer> make_optimizer(const OptimOptions& options, const Arena& arena) {
  std::string known;
  for (const auto& [name, create] : kOptimizers) {
    if (name == options.name) return create(options, arena);
    known += (known.empty() ? "" : ", ") + std::string(name);
  }
  throw Error(ExitCode::kUsage, "optim.name: unknown optimizer `" + options.name + "`",
              "known: " + known);
}

double gradient_norm(const torch::Tensor& grads, double grad_scale) {
  return std::sqrt(kernels::sum_of_squares(grads)) * grad_scale;
}

double clip_factor(double norm, double clip_norm) {
  if (clip_norm <= 0) return 1.0;
  return std::min(1.0, clip_norm / (norm + 1e-6));
}

}  // namespace stretto::optim
