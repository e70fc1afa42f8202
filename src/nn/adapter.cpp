#include "nn/adapter.h"

#include <utility>

#include "nn/feed_forward.h"
#include "nn/watch.h"

namespace stretto::nn {
namespace {

constexpr double kDownDeviation = 1e-2;

}  // namespace

AdapterImpl::AdapterImpl(const Init& init, int64_t width,
                         std::shared_ptr<const AdapterOptions> options)
    : options_(std::move(options)), activation_(activation_named(options_->activation)) {
  const Init own = init.with_lora({});
  const InitRule small{.distribution = Distribution::kTruncatedNormal, .number = kDownDeviation};
  const InitRule zeros{.distribution = Distribution::kConstant, .number = 0};
  down = register_module("down", Linear(own.with_linear_rule(small).child("down"), width,
                                        options_->dim, LinearOptions{}));
  // Without rules, since another start would change what the model computes.
  const Init identity = own.with_rules({}).with_linear_rule(zeros);
  up = register_module("up", Linear(identity.child("up"), options_->dim, width, LinearOptions{}));
}

at::Tensor AdapterImpl::forward(const at::Tensor& x) const {
  // The bias of `down` joins the activation in one pass.
  const at::Tensor inner = watch(*down, down->product(x));
  const at::Tensor active =
      kernels::bias_activation_dropout(inner, down->bias, activation_, kernels::Dropout{});
  return watch(*this, kernels::dropout_add(up->forward(active), x, kernels::Dropout{}));
}

Adapter make_adapter(torch::nn::Module& owner, const Init& place, int64_t width) {
  auto options = place.adapter();
  if (!options) return nullptr;
  return owner.register_module("adapter",
                               Adapter(place.child("adapter"), width, std::move(options)));
}

at::Tensor adapted(const Adapter& adapter, const at::Tensor& h) {
  return adapter ? adapter->forward(kernels::widened(h)) : h;
}

std::shared_ptr<const AdapterOptions> adapter_of(const torch::nn::Module& module) {
  for (const auto& child : module.modules(/*include_self=*/false)) {
    if (const auto* adapter = child->as<AdapterImpl>()) {
      return std::make_shared<const AdapterOptions>(adapter->options());
    }
  }
  return nullptr;
}

}  // namespace stretto::nn
