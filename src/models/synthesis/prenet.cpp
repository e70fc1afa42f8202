#include "models/synthesis/prenet.h"

#include <ATen/ATen.h>

#include <string>

#include "base/random.h"
#include "models/synthesis/synthesis_part.h"
#include "nn/watch.h"

namespace stretto::models {
namespace {

/// A key for each step of all sentences.
at::Tensor step_keys(const at::Tensor& sentence_keys, const kernels::Offsets& steps) {
  const at::Tensor keys = sentence_keys.to(at::kCPU).contiguous();
  const at::Tensor bounds = steps.values.to(at::kCPU, at::kLong).contiguous();
  const int64_t* bound = bounds.const_data_ptr<int64_t>();
  TORCH_CHECK(keys.numel() + 1 == bounds.numel(), "[synthesis] there are ", keys.numel(),
              " keys of sentences for ", bounds.numel() - 1, " sentences");
  at::Tensor all = at::empty({bound[keys.numel()]}, at::kLong);
  auto* out = all.mutable_data_ptr<int64_t>();
  for (int64_t i = 0; i < keys.numel(); ++i) {
    for (int64_t step = 0; step < bound[i + 1] - bound[i]; ++step) {
      *out++ = prenet_step_key(keys.const_data_ptr<int64_t>()[i], step);
    }
  }
  return all.to(steps.values.device());
}

}  // namespace

PreNetImpl::PreNetImpl(const nn::Init& init, const PreNetOptions& options) : options_(options) {
  int64_t in = options.in;
  for (int64_t i = 0; i < options.num_layers; ++i) {
    const std::string name = "layer" + std::to_string(i);
    layers_.push_back(register_module(
        name, nn::Linear(init.child(name), in, options.dim, nn::LinearOptions{.bias = false})));
    in = options.dim;
  }
}

kernels::Dropout PreNetImpl::mask(const nn::DropoutSource& masks, size_t layer) const {
  return masks.at(options_.dropout, kSynthesisPrenet + layer);
}

at::Tensor PreNetImpl::forward(const at::Tensor& x, const nn::DropoutSource& masks) const {
  at::Tensor rows = x;
  for (size_t i = 0; i < layers_.size(); ++i) {
    rows = kernels::dropout(layers_[i]->forward(rows).relu(), mask(masks, i));
  }
  return nn::watch(*this, rows);
}

int64_t prenet_step_key(int64_t sentence_key, int64_t step) {
  return static_cast<int64_t>(
      mix64(static_cast<uint64_t>(sentence_key), static_cast<uint64_t>(step)));
}

nn::DropoutSource prenet_masks_of_step(uint64_t prenet_seed, const at::Tensor& row_keys) {
  return {.training = true, .key = prenet_seed, .row_keys = row_keys};
}

nn::DropoutSource prenet_masks(const SynthesisInput& input, const nn::PackedRows& steps,
                               const ForwardContext& context) {
  if (context.training) return context.dropout(steps.row_keys);
  TORCH_CHECK(input.sentence_keys.defined(),
              "[synthesis] the pre-net drops outside of training too: give sentence_keys()");
  return prenet_masks_of_step(input.prenet_seed, step_keys(input.sentence_keys, steps.offsets));
}

}  // namespace stretto::models
