#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/kernels.h"
#include "nn/adapter_options.h"
#include "nn/init.h"
#include "nn/linear.h"

/// What parts of a layer learn behind their frozen weights (nn/adapter_options.h).
///
/// Shape letters: N rows, D model width, F inner width (`model.adapter.dim`).
namespace stretto::nn {

/// x + up(activation(down(x))); x [N, D] -> [N, D].
///
/// `down` [F, D] starts normal with deviation 0.01, drawn again beyond twice of it, as in section
/// 3.6 of Houlsby et al.; `model.init` may name it. `up` [D, F] starts as zeros, so that a new
/// adapter is the identity. An adapter has no LoRA of its own.
class AdapterImpl : public torch::nn::Module {
 public:
  AdapterImpl(const Init& init, int64_t width, std::shared_ptr<const AdapterOptions> options);
  at::Tensor forward(const at::Tensor& x) const;

  const AdapterOptions& options() const { return *options_; }

  Linear down{nullptr}, up{nullptr};

 private:
  std::shared_ptr<const AdapterOptions> options_;
  kernels::Activation activation_;
};
TORCH_MODULE(Adapter);

/// The adapter of the part of a layer that has the name of `owner`, registered as `adapter`; null
/// where `model.adapter` names none here.
/// @param place  of the owner
/// @param width  of the part's output
Adapter make_adapter(torch::nn::Module& owner, const Init& place, int64_t width);

/// The output h of a part, [N, width], as its adapter gives it on; h itself where that is null.
at::Tensor adapted(const Adapter& adapter, const at::Tensor& h);

/// The options of the first adapter in `module`; null when there is none.
std::shared_ptr<const AdapterOptions> adapter_of(const torch::nn::Module& module);

}  // namespace stretto::nn
