#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/head.h"
#include "nn/compressed.h"
#include "nn/embedding.h"
#include "nn/init.h"
#include "nn/output_loss.h"

namespace stretto::models {

/// What a TokenHead is built from beside what it minimises.
struct TokenHeadSetup {
  nn::Init init;                 ///< already at the head's own name: "output"
  int64_t width = 0;             ///< D of the rows
  int64_t rows = 0;              ///< V of a matrix of its own; may be rounded up
  int64_t num_classes = 0;       ///< the real vocabulary, at most V; the rest has p = 0
  nn::Embedding tied = nullptr;  ///< the table [V, D] of another part to project with; null = own
  bool bias = false;             ///< whether it has one, [V], that starts at zero
  double softcap = 0;            ///< bends the logits into ± it; 0 = as they are
  /// How a matrix of its own starts; nothing: as below.
  std::optional<nn::InitRule> first_rows = std::nullopt;
  std::string matrix_name = "output.weight";  ///< as watchers are told, tied or not (nn::watch_use)
};

/// The next token: a projection to a vocabulary, and the loss behind it.
///
///     p(token | row) = softmax(c tanh((row W^T + b) / c)) over the first C of V rows of W
///
/// b [V] is a parameter, `bias`, or there is none. With a softcap of 0, logits are row W^T + b.
///
/// W [V, D] is a parameter of its own, `weight`, that starts as a table of embeddings does
/// (normal with deviation D^-0.5), or the table of another part (Press and Wolf 2017,
/// arXiv:1608.05859). In a loss, rows beyond C have no part and no gradient.
class TokenHead : public Head, public nn::TakesCodes {
 public:
  /// @param losses  as `losses` makes them; none for a model that only decodes
  /// Throws c10::Error where num_classes is not in 1..V, or a tied table is not D wide.
  TokenHead(const TokenHeadSetup& setup, nn::OutputLosses losses);

  kernels::CrossEntropy loss(const at::Tensor& rows, const HeadTargets& targets) override;
  bool learns_from_pairs() const override { return static_cast<bool>(losses_.pair); }
  at::Tensor log_probs(const at::Tensor& rows) override { return scores(rows).log_probs; }
  Scores scores(const at::Tensor& rows) override;
  kernels::TopClasses top(const at::Tensor& rows, const kernels::TopQuery& query) override;
  std::shared_ptr<const kernels::ClassRows> classes(const std::vector<int64_t>& ids) override;
  kernels::TopClasses top(const at::Tensor& rows, const kernels::ClassRows& classes,
                          const kernels::TopQuery& query) override;
  int64_t num_classes() const override { return num_classes_; }
  double operations() const override;
  c10::Device device() const override { return matrix().device(); }

  const at::Tensor& matrix() const { return tied_ ? tied_->weight : weight_; }  ///< W [V, D]

 private:
  at::Tensor logits(const at::Tensor& rows) const;  ///< [L, D] -> fp32 [L, C]
  at::Tensor class_bias() const;                    ///< [C], undefined where there is none

  at::Tensor weight_;  // undefined where it is tied
  at::Tensor bias_;    // undefined where there is none
  nn::Embedding tied_;
  int64_t num_classes_;
  double softcap_;
  std::string matrix_name_;
  nn::OutputLosses losses_;
};

}  // namespace stretto::models
