#include "nn/lora.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/tensor.h>

#include <cmath>
#include <utility>

#include "base/hash.h"
#include "kernels/compute.h"
#include "kernels/kernels.h"
#include "nn/linear.h"
#include "nn/time_convolution.h"

namespace stretto::nn {
namespace {

thread_local const DropoutSource* lora_rows = nullptr;

at::Tensor parts_of(const MergedMap& map, double scale, at::Device device) {
  std::vector<float> numbers;
  for (const int64_t rows : map.rows) {
    numbers.push_back(static_cast<float>(rows));
    numbers.push_back(static_cast<float>(scale));
  }
  const auto count = static_cast<int64_t>(map.rows.size());
  if (device.is_meta()) return at::empty({count, 2}, at::dtype(at::kFloat).device(device));
  return at::tensor(numbers, at::kFloat).view({count, 2}).to(device);
}

/// The LoRA of a linear map or a convolution; null where it has none, and for other modules.
const Lora* lora_of_map(const torch::nn::Module& module) {
  if (const auto* linear = module.as<LinearImpl>()) return linear->lora.get();
  if (const auto* map = module.as<TimeConvolutionImpl>()) return map->lora.get();
  return nullptr;
}

/// weight + scale * the `product(b, a)` of each part.
template <class Product>
at::Tensor merge_parts(const at::Tensor& weight, const at::Tensor& a, const at::Tensor& b,
                       const std::vector<int64_t>& rows, double scale, const Product& product) {
  const int64_t rank = b.size(1);
  std::vector<at::Tensor> deltas;
  int64_t from = 0;
  for (size_t part = 0; part < rows.size(); ++part) {
    deltas.push_back(product(b.narrow(0, from, rows[part]),
                             a.narrow(0, static_cast<int64_t>(part) * rank, rank)));
    from += rows[part];
  }
  return weight + (deltas.size() == 1 ? deltas.front() : at::cat(deltas)) * scale;
}

}  // namespace

Lora::Lora(torch::nn::Module& owner, const Init& init, std::shared_ptr<const LoraOptions> options,
           const MergedMap& map)
    : options_(std::move(options)), rows_(map.rows), site_(xxh3_64(init.path() + ".lora")) {
  const auto count = static_cast<int64_t>(rows_.size());
  int64_t out = 0;
  for (const int64_t rows : rows_) out += rows;
  const InitRule uniform{.distribution = Distribution::kHeUniform, .number = 1 / std::sqrt(6.0)};
  const InitRule zeros{.distribution = Distribution::kConstant, .number = 0};
  a = owner.register_parameter("lora_a",
                               init.matrix("lora_a", count * options_->rank, map.in, uniform));
  // Without rules of initialisation, since another start would change what the model computes.
  b = owner.register_parameter("lora_b",
                               init.with_rules({}).matrix("lora_b", out, options_->rank, zeros));
  parts = owner.register_buffer("lora_parts", parts_of(map, options_->scale(), init.device()));
}

at::Tensor Lora::dropped(const at::Tensor& x) const {
  const bool known = lora_rows != nullptr && lora_rows->row_keys.defined() &&
                     lora_rows->row_keys.size(0) == x.size(0);
  return known ? kernels::dropout(x, lora_rows->at(options_->dropout, site_)) : x;
}

at::Tensor Lora::delta(const at::Tensor& x) const {
  const at::Tensor inner = kernels::linear(dropped(x), a) * options_->scale();
  if (rows_.size() == 1) return kernels::linear(inner, b);
  const int64_t rank = options_->rank;
  std::vector<at::Tensor> outputs;
  int64_t from = 0;
  for (size_t part = 0; part < rows_.size(); ++part) {
    outputs.push_back(kernels::linear(inner.narrow(1, static_cast<int64_t>(part) * rank, rank),
                                      b.narrow(0, from, rows_[part])));
    from += rows_[part];
  }
  return at::cat(outputs, 1);
}

at::Tensor Lora::merged(const at::Tensor& weight) const {
  if (!at::GradMode::is_enabled()) return merge_lora(weight, a, b, rows_, options_->scale());
  // As all products of training: with `dist.deterministic`, our own for any number of threads. What
  // it is merged into is rounded where it is multiplied, and not before.
  const kernels::ComputeScope exact(kernels::Compute::kFp32);
  return merge_parts(weight, a, b, rows_, options_->scale(),
                     [](const at::Tensor& left, const at::Tensor& right) {
                       return kernels::linear(left, right.t());
                     });
}

at::Tensor merge_lora(const at::Tensor& weight, const at::Tensor& a, const at::Tensor& b,
                      const std::vector<int64_t>& rows, double scale) {
  return merge_parts(
      weight, a, b, rows, scale,
      [](const at::Tensor& left, const at::Tensor& right) { return at::matmul(left, right); });
}

std::shared_ptr<const LoraOptions> lora_of(const torch::nn::Module& module) {
  for (const auto& child : module.modules(/*include_self=*/false)) {
    if (const Lora* lora = lora_of_map(*child)) {
      return std::make_shared<const LoraOptions>(lora->options());
    }
  }
  return nullptr;
}

LoraDropoutScope::LoraDropoutScope(DropoutSource source)
    : source_(std::move(source)), before_(lora_rows) {
  lora_rows = &source_;
}

LoraDropoutScope::~LoraDropoutScope() {
  lora_rows = before_;
}

DropoutSource LoraDropoutScope::of_rows(const at::Tensor& row_keys) {
  if (lora_rows == nullptr) return {};
  return {.training = lora_rows->training, .key = lora_rows->key, .row_keys = row_keys};
}

}  // namespace stretto::nn
