#include "models/heads/token.h"

#include <ATen/ops/log_softmax.h>

#include <utility>

#include "nn/watch.h"

namespace stretto::models {

TokenHead::TokenHead(const TokenHeadSetup& setup, nn::OutputLosses losses)
    : tied_(setup.tied),
      num_classes_(setup.num_classes),
      softcap_(setup.softcap),
      matrix_name_(setup.matrix_name),
      losses_(std::move(losses)) {
  // The table itself is no part of the model: nobody looks rows up in it.
  if (!tied_) {
    const nn::Embedding table(setup.init, setup.rows, setup.width, /*pad=*/-1, setup.first_rows);
    weight_ = register_parameter("weight", table->weight);
  }
  if (setup.bias) bias_ = register_parameter("bias", setup.init.constant("bias", setup.rows, 0.0));
  TORCH_CHECK(!bias_.defined() || bias_.size(0) == matrix().size(0),
              "[token_head] a bias must have an entry for each of ", matrix().size(0),
              " rows, got ", setup.rows);
  TORCH_CHECK(matrix().size(1) == setup.width, "[token_head] a tied table must be ", setup.width,
              " wide, as the rows are, got ", matrix().sizes());
  TORCH_CHECK(num_classes_ > 0 && num_classes_ <= matrix().size(0),
              "[token_head] num_classes must be in 1..", matrix().size(0), ", got ", num_classes_);
}

kernels::CrossEntropy TokenHead::loss(const at::Tensor& rows, const HeadTargets& targets) {
  const nn::OutputLoss& minimised = targets.of_pairs ? losses_.pair : losses_.one;
  TORCH_CHECK(minimised, "[token_head] was built without a loss",
              targets.of_pairs ? " of pairs" : "");
  // Named as if it were never tied, since a tied table's gradient also holds that of its lookups.
  const at::Tensor weight = nn::watch_use(matrix_name_, matrix());
  return minimised(rows, weight, targets.labels, num_classes_, bias_, softcap_);
}

at::Tensor TokenHead::class_bias() const {
  return bias_.defined() ? bias_.narrow(0, 0, num_classes_) : at::Tensor();
}

at::Tensor TokenHead::logits(const at::Tensor& rows) const {
  const at::Tensor classes = matrix().narrow(0, 0, num_classes_);
  return kernels::softcapped(kernels::linear(rows, classes, class_bias()).to(at::kFloat), softcap_);
}

kernels::TopClasses TokenHead::top(const at::Tensor& rows, const kernels::TopQuery& query) {
  return kernels::linear_top(rows, matrix().narrow(0, 0, num_classes_), class_bias(), softcap_,
                             query);
}

std::shared_ptr<const kernels::ClassRows> TokenHead::classes(const std::vector<int64_t>& ids) {
  return std::make_shared<const kernels::ClassRows>(ids, matrix().narrow(0, 0, num_classes_),
                                                    class_bias());
}

kernels::TopClasses TokenHead::top(const at::Tensor& rows, const kernels::ClassRows& classes,
                                   const kernels::TopQuery& query) {
  return kernels::linear_top(rows, classes, softcap_, query);
}

Head::Scores TokenHead::scores(const at::Tensor& rows) {
  const at::Tensor all = logits(rows), log_probs = at::log_softmax(all, 1);
  // Any column tells what was subtracted.
  return {.log_probs = log_probs, .normalisers = all.select(1, 0) - log_probs.select(1, 0)};
}

double TokenHead::operations() const {
  return 2 * static_cast<double>(matrix().numel());
}

}  // namespace stretto::models
