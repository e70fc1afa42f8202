#include "models/heads/masked_token.h"

#include <ATen/ops/log_softmax.h>

#include <string>
#include <utility>

#include "losses/cross_entropy.h"
#include "models/encoders/bert.h"
#include "models/operations.h"
#include "nn/feed_forward.h"
#include "nn/watch.h"

namespace stretto::models {
namespace {

kernels::Activation activation_of_dense(const std::string& activation) {
  const bool is_gated = activation == "geglu" || activation == "swiglu";
  return nn::activation_named(is_gated ? "gelu" : activation);
}

nn::OutputLoss masked_token_loss(const MaskedTokenHeadSetup& setup) {
  losses::CrossEntropyOptions options;
  options.label_smoothing = setup.label_smoothing;
  auto own = losses::cross_entropy(options);
  return setup.teacher ? losses::with_teacher(std::move(own), *setup.teacher) : own;
}

}  // namespace

MaskedTokenHead::MaskedTokenHead(const BertOptions& options, const MaskedTokenHeadSetup& setup)
    : tied_(setup.tied),
      activation_(activation_of_dense(options.activation)),
      num_classes_(setup.num_classes),
      loss_(masked_token_loss(setup)) {
  const int64_t d = sizes_of(options).d_model;
  dense_ = register_module("dense", nn::Linear(setup.init.child("dense"), d, d));
  norm_ = register_module("norm", make_norm(setup.init.child("norm"), options, d));
  if (!tied_) {
    own_ = register_module("output", nn::Linear(setup.init.child("output"), d, setup.rows,
                                                nn::LinearOptions{.bias = false}));
  }
  bias = register_parameter("bias", setup.init.constant("bias", setup.rows, 0.0));
  TORCH_CHECK(matrix().size(0) == setup.rows && matrix().size(1) == d,
              "[masked_token] a tied table must be [", setup.rows, ", ", d, "], got ",
              matrix().sizes());
  TORCH_CHECK(num_classes_ > 1 && num_classes_ <= setup.rows,
              "[masked_token] num_classes must be in 2..", setup.rows, ", got ", num_classes_);
}

at::Tensor MaskedTokenHead::transformed(const at::Tensor& rows) const {
  // The bias of `dense` joins the activation in one pass.
  const at::Tensor inner = nn::watch(*dense_, dense_->product(rows));
  return norm_->forward(
      kernels::bias_activation_dropout(inner, dense_->bias, activation_, /*dropout=*/{}));
}

kernels::CrossEntropy MaskedTokenHead::loss(const at::Tensor& rows,
                                            const at::Tensor& labels) const {
  const at::Tensor x = transformed(rows);
  // Named as if it were never tied, since a tied table's gradient also holds that of its lookups.
  const at::Tensor weight = nn::watch_use("head.output.weight", projection());
  return loss_(x, weight, labels, num_classes_, bias, /*softcap=*/0);
}

at::Tensor MaskedTokenHead::log_probs(const at::Tensor& rows) const {
  const at::Tensor logits = kernels::linear(
      transformed(rows), projection().narrow(0, 0, num_classes_), bias.narrow(0, 0, num_classes_));
  return at::log_softmax(logits.scalar_type() == at::kDouble ? logits : logits.to(at::kFloat), 1);
}

double MaskedTokenHead::operations() const {
  return weight_operations(*this) + (tied_ ? 2 * static_cast<double>(tied_->weight.numel()) : 0);
}

}  // namespace stretto::models
