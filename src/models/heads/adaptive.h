#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/head.h"
#include "models/heads/adaptive_options.h"
#include "nn/embedding.h"
#include "nn/init.h"
#include "nn/linear.h"
#include "nn/output_loss.h"

namespace stretto::models {

/// What an AdaptiveHead is built from beside what it minimises.
struct AdaptiveHeadSetup {
  nn::Init init;            ///< already at the head's own name: "output"
  int64_t width = 0;        ///< D of the rows
  int64_t num_classes = 0;  ///< C, the real vocabulary
  AdaptiveOptions groups;   ///< how it is divided
  nn::Embedding tied =
      nullptr;  ///< the table [>= C, D] to project with; null = matrices of its own
  /// How its own matrices start, but for `down`; nothing: as rows of a table (nn/embedding.h).
  std::optional<nn::InitRule> first_rows = std::nullopt;
  std::string matrix_name = "output.weight";  ///< as watchers are told, tied or not (nn::watch_use)
};

/// Adaptive softmax (Grave et al. 2017, arXiv:1609.04309) for large vocabularies whose ids are in
/// order of frequency, the frequent ones first. A first softmax has the c frequent tokens, and one
/// class for each of K clusters of rarer ones; a cluster's softmax is computed for those rows alone
/// whose target is in it:
///
///     log p(token) = log p_head(token)                                     of the shortlist
///     log p(token) = log p_head(cluster k) + log p_k(token)                of cluster k
///
/// With matrices of its own, as torch.nn.AdaptiveLogSoftmaxWithLoss without biases: `weight`
/// [c + K, D], and of cluster k `tails.k.down.weight` [D / div^(k+1), D] and `tails.k.weight`
/// [tokens, D / div^(k+1)]. With the table of another part, all tokens are projected at full width
/// (Merity et al. 2018, arXiv:1803.08240): `clusters` [K, D] is the only parameter, and div_value
/// is not read.
///
/// The loss is that of `losses` in each softmax, summed: label smoothing stays within a softmax.
/// `right_sum` is undefined.
class AdaptiveHead : public Head {
 public:
  /// Throws c10::Error where the vocabulary cannot be divided so (AdaptiveOptions::problem), or a
  /// tied table is not D wide or has too few rows.
  AdaptiveHead(const AdaptiveHeadSetup& setup, nn::OutputLosses losses);

  kernels::CrossEntropy loss(const at::Tensor& rows, const HeadTargets& targets) override;
  at::Tensor log_probs(const at::Tensor& rows) override;
  int64_t num_classes() const override { return num_classes_; }
  /// For a row whose target is drawn by Zipf's law: token r, from 0, in proportion to 1 / (r + 1).
  double operations() const override;
  c10::Device device() const override { return matrix().device(); }

 private:
  /// What the softmaxes project with.
  struct Matrices {
    at::Tensor head;                ///< [c + K, D]
    std::vector<at::Tensor> tails;  ///< of each cluster
  };
  struct Cluster {
    int64_t begin, end;         ///< its tokens
    nn::Linear down = nullptr;  ///< null where it is tied
    at::Tensor weight = {};     ///< undefined where it is tied
    int64_t size() const { return end - begin; }
  };

  void add_matrices(const AdaptiveHeadSetup& setup);
  Matrices matrices() const;
  /// [c + K, D] of a tied table, whose rows of the shortlist are given.
  at::Tensor tied_head(const at::Tensor& shortlist) const;
  const at::Tensor& matrix() const { return tied_ ? tied_->weight : weight_; }
  /// rows [N, D] as the softmax of a cluster reads them.
  static at::Tensor projected(const Cluster& cluster, const at::Tensor& rows);
  /// Adds the loss of the rows whose target is in the cluster.
  void add_cluster(const Cluster& cluster, const at::Tensor& tail, const at::Tensor& rows,
                   const at::Tensor& labels, kernels::CrossEntropy& sums) const;

  int64_t num_classes_, shortlist_;
  at::Tensor weight_;    // undefined where it is tied
  at::Tensor clusters_;  // undefined where it is not
  nn::Embedding tied_;
  std::vector<Cluster> groups_;
  std::string matrix_name_;
  nn::OutputLosses losses_;
};

}  // namespace stretto::models
