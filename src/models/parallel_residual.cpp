#include "models/parallel_residual.h"

namespace stretto::models {
namespace {

/// Gives an adapter the name of its part.
struct AdaptedPart : torch::nn::Module {
  AdaptedPart(const nn::Init& init, int64_t d_model)
      : adapter(nn::make_adapter(*this, init, d_model)) {}

  nn::Adapter adapter;
};

}  // namespace

ParallelResidualImpl::ParallelResidualImpl(const nn::Init& init, const TransformerPart& options,
                                           int64_t d_model, const std::vector<std::string>& parts) {
  norm =
      register_module("norm", make_norm(init.child("norm"), options, d_model, options.zero_gamma));
  for (const std::string& part : parts) {
    const auto adapted = std::make_shared<AdaptedPart>(init.child(part), d_model);
    if (adapted->adapter) register_module(part, adapted);
    adapters.push_back(adapted->adapter);
  }
}

at::Tensor ParallelResidualImpl::forward(const at::Tensor& x,
                                         const std::vector<ParallelPart>& parts) const {
  TORCH_CHECK(parts.size() == adapters.size(), "[parallel_residual] built for ", adapters.size(),
              " parts, got ", parts.size());
  const at::Tensor normed = norm->forward(x);
  at::Tensor sum = x;
  for (size_t i = 0; i < parts.size(); ++i) {
    const at::Tensor output = nn::adapted(adapters[i], parts[i].forward(normed));
    sum = kernels::dropout_add(output, sum, parts[i].dropout);
  }
  return nn::watch(*this, sum);
}

}  // namespace stretto::models
