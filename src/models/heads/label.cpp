#include "models/heads/label.h"

#include <ATen/ATen.h>
#include <ATen/core/Reduction.h>

#include "kernels/loss/smoothing.h"
#include "models/operations.h"
#include "models/packed.h"
#include "nn/watch.h"

namespace stretto::models {
namespace {

at::Tensor in_fp32(const at::Tensor& x) {
  return x.scalar_type() == at::kDouble ? x : x.to(at::kFloat);
}

int64_t pooled_width(const std::string& pooling, int64_t width) {
  if (pooling == "concat") return 3 * width;
  return pooling == "state" ? 2 * width : width;
}

at::Tensor ones_for(const at::Tensor& logits) {
  return at::ones({logits.size(0)}, logits.options().requires_grad(false));
}

}  // namespace

LabelHead::LabelHead(const BertOptions& options, const LabelHeadSetup& setup)
    : pooling_(options.pooling),
      dropout_(options.head_dropout),
      first_site_(setup.first_site),
      num_labels_(setup.num_labels) {
  const int64_t d = sizes_of(options).d_model;
  if (has_pooler(options)) {
    pooler_ = register_module("pooler", nn::Linear(setup.init.child("pooler"), d, d));
  }
  if (num_labels_ > 0) {
    output_ = register_module("output", nn::Linear(setup.init.child("output"), d, num_labels_));
  }
}

LabelHead::LabelHead(const CausalPool& pool, int64_t width, const LabelHeadSetup& setup)
    : pooling_(pool.pooling),
      dropout_(pool.head_dropout),
      hidden_dropout_(pool.dropout_of_units()),
      first_site_(setup.first_site),
      num_labels_(setup.num_labels) {
  if (num_labels_ == 0) return;
  int64_t in = pooled_width(pooling_, width);
  const auto add_norm = [&](const char* name, nn::BatchNorm& norm) {
    if (!pool.has_batch_norm()) return;
    norm = register_module(name, nn::BatchNorm(setup.init.child(name), in,
                                               nn::BatchNormOptions{.single_by_running = true}));
  };
  add_norm("norm", norm_);
  if (pool.head_units > 0) {
    hidden_ =
        register_module("hidden", nn::Linear(setup.init.child("hidden"), in, pool.head_units));
    in = pool.head_units;
    add_norm("hidden_norm", hidden_norm_);
  }
  output_ = register_module("output", nn::Linear(setup.init.child("output"), in, num_labels_));
}

bool LabelHead::reads_one_row() const {
  return pooling_ == "last" || pooling_.starts_with("cls");
}

at::Tensor LabelHead::places_of_rows(const kernels::Offsets& offsets) const {
  return pooling_ == "last" ? last_places(offsets) : first_places(offsets);
}

at::Tensor LabelHead::pool(const at::Tensor& rows, const kernels::Offsets& offsets) const {
  TORCH_CHECK(!reads_states(), "[label] \"state\" pools no rows");
  if (reads_one_row()) return rows.index_select(0, places_of_rows(offsets));
  if (pooling_ == "mean") return mean_rows(rows, offsets);
  if (pooling_ == "max") return max_rows(rows, offsets);
  return at::cat({last_rows(rows, offsets), max_rows(rows, offsets), mean_rows(rows, offsets)}, 1);
}

at::Tensor LabelHead::pooled(const at::Tensor& rows, const nn::PackedRows& input,
                             const ForwardContext& context) const {
  return behind_pooling(pool(rows, input.offsets), input, context);
}

at::Tensor LabelHead::behind_pooling(const at::Tensor& row_of_each, const nn::PackedRows& input,
                                     const ForwardContext& context) const {
  at::Tensor x = row_of_each;
  if (pooler_) {
    x = pooler_->forward(x);
    x = pooling_ == "cls_relu" ? at::relu(x) : at::tanh(x);
  }
  if (norm_) x = norm_->forward(x);
  const bool drops = context.training && dropout_ > 0;
  const bool drops_units = context.training && hidden_ && hidden_dropout_ > 0;
  nn::DropoutSource source;
  if (drops || drops_units) {
    source = context.dropout(first_rows(input.row_keys, input.offsets));
  }
  if (drops) x = kernels::dropout(x, source.at(dropout_, first_site_));
  if (!hidden_) return x;
  x = at::relu(hidden_->forward(x));
  if (hidden_norm_) x = hidden_norm_->forward(x);
  return drops_units ? kernels::dropout(x, source.at(hidden_dropout_, first_site_ + 1)) : x;
}

at::Tensor LabelHead::logits(const at::Tensor& pooled) const {
  TORCH_CHECK(output_, "[label] the model has no labels: it ends at its pooled rows");
  return in_fp32(output_->forward(pooled));
}

double LabelHead::operations() const {
  return weight_operations(*this);
}

at::Tensor label_predictions(LabelTarget target, const at::Tensor& logits) {
  switch (target) {
    case LabelTarget::kSeveral:
      return logits.sigmoid();
    case LabelTarget::kOne:
      return logits.softmax(1);
    case LabelTarget::kValue:
      break;
  }
  return logits;
}

at::Tensor mean_label_logits(LabelTarget target, const std::vector<at::Tensor>& logits) {
  if (logits.size() == 1) return logits.front();
  at::Tensor sum = at::zeros_like(logits.front(), at::kDouble);
  for (const auto& one : logits) sum += label_predictions(target, one.to(at::kDouble));
  const at::Tensor mean = sum / static_cast<double>(logits.size());
  switch (target) {
    case LabelTarget::kSeveral:
      return at::logit(mean);
    case LabelTarget::kOne:
      return mean.log();
    case LabelTarget::kValue:
      break;
  }
  return mean;
}

at::Tensor num_labels_right(LabelTarget target, const at::Tensor& logits,
                            const at::Tensor& labels) {
  switch (target) {
    case LabelTarget::kValue:
      return at::zeros({}, logits.options());
    case LabelTarget::kSeveral:
      return (logits >= 0).eq(labels > 0).all(1).sum().to(logits.scalar_type());
    case LabelTarget::kOne:
      break;
  }
  return logits.argmax(1).eq(labels).sum().to(logits.scalar_type());
}

at::Tensor is_in_top(const at::Tensor& logits, const at::Tensor& labels, int64_t k) {
  const at::Tensor column = labels.unsqueeze(1), own = logits.gather(1, column);
  const at::Tensor before = at::arange(logits.size(1), labels.options()).unsqueeze(0).lt(column);
  const at::Tensor ahead = logits.gt(own).logical_or(logits.eq(own).logical_and(before));
  return ahead.sum(1).lt(k).logical_and(logits.isnan().any(1).logical_not());
}

LabelLosses label_losses(LabelTarget target, const at::Tensor& logits, const at::Tensor& labels,
                         const LabelWeights& weights) {
  switch (target) {
    case LabelTarget::kSeveral:
      return models::binary_cross_entropy(logits, labels, weights.of_classes);
    case LabelTarget::kValue:
      return squared_error(logits, labels);
    case LabelTarget::kOne:
      break;
  }
  return label_cross_entropy(logits, labels, weights);
}

LabelLosses label_cross_entropy(const at::Tensor& logits, const at::Tensor& labels,
                                const LabelWeights& weights) {
  TORCH_CHECK(logits.dim() == 2 && labels.dim() == 1 && labels.size(0) == logits.size(0),
              "[label] logits must be [B, L] and labels [B], got ", logits.sizes(), " and ",
              labels.sizes());
  const at::Tensor log_p = at::log_softmax(logits, 1);
  at::Tensor each = -log_p.gather(1, labels.unsqueeze(1)).squeeze(1);
  if (weights.smoothing > 0) {
    const kernels::SmoothingWeights share(weights.smoothing, logits.size(1));
    each = share.extra * each - share.each * log_p.sum(1);
  }
  if (!weights.of_classes.defined()) return {.each = each, .weight = ones_for(logits)};
  const at::Tensor weight = weights.of_classes.to(each.options()).index_select(0, labels);
  return {.each = each * weight, .weight = weight};
}

LabelLosses binary_cross_entropy(const at::Tensor& logits, const at::Tensor& labels,
                                 const at::Tensor& weights) {
  TORCH_CHECK(logits.dim() == 2 && labels.sizes() == logits.sizes(),
              "[label] logits and labels must both be [B, L], got ", logits.sizes(), " and ",
              labels.sizes());
  at::Tensor parts = at::binary_cross_entropy_with_logits(logits, labels.to(logits.scalar_type()),
                                                          {}, {}, at::Reduction::None);
  if (weights.defined()) parts = parts * weights.to(parts.options());
  return {.each = parts.mean(1), .weight = ones_for(logits)};
}

LabelLosses squared_error(const at::Tensor& logits, const at::Tensor& values) {
  TORCH_CHECK(logits.dim() == 2 && logits.size(1) == 1 && values.dim() == 1 &&
                  values.size(0) == logits.size(0),
              "[label] logits must be [B, 1] and values [B], got ", logits.sizes(), " and ",
              values.sizes());
  const at::Tensor difference = logits.squeeze(1) - values.to(logits.scalar_type());
  return {.each = difference.square(), .weight = ones_for(logits)};
}

}  // namespace stretto::models
