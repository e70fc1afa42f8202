#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>

namespace stretto::optim {

/// Norms of one update's gradient at two batch sizes; both are means over their batch.
struct GradientNorms {
  double small_batch = 0, small_norm_sq = 0;  ///< weight, and |gradient|^2 of the part
  double big_batch = 0, big_norm_sq = 0;      ///< weight, and |gradient|^2 of the whole
};

/// One part of an update, a micro-batch or a process, before gradients are added up.
struct GradientPart {
  double weight = 0;       ///< what its loss is divided by: its tokens, its images
  double sum_norm_sq = 0;  ///< |gradient|^2 as backward left it: of the sum, not divided
};

/// The two norms of an update from its parts and from its whole, whose gradients are sums. Parts
/// count by their weights, so that unequal ones leave the estimates unbiased:
/// small_norm_sq = sum_i b_i |G_i|^2 / sum_i b_i has the expectation of one part with the mean
/// weight. Some of the parts do, even one; parts without weight are left out.
///
/// @param loss_scale  by which all gradients were multiplied
GradientNorms norms_of_parts(std::span<const GradientPart> parts, const GradientPart& whole,
                             double loss_scale = 1);

/// The simple gradient noise scale B = tr(Sigma) / |G|^2, in the unit of weights (McCandlish et al.
/// 2018, arXiv:1812.06162, appendix A.1), from norms that accumulation or all-reduce have at hand:
///
///     |G|^2    = (B_big |G_big|^2 - B_small |G_small|^2) / (B_big - B_small)
///     tr Sigma = (|G_small|^2 - |G_big|^2) / (1 / B_small - 1 / B_big)
///
/// both averaged exponentially before they are divided. Batches well below B waste nothing; well
/// above it they save no update.
///
/// Both estimates are unbiased at any two sizes, but their spread is not the same: the wider apart
/// the sizes, the better. Parts of one sample, and samples of a batch that was cut by length, are
/// not independent; B is that of the batches as they are cut.
class NoiseScale {
 public:
  /// @param decay  of the averages, per update
  explicit NoiseScale(double decay = 0.99);
  /// An update without two sizes (small_batch < big_batch) or with a norm that is not finite is
  /// left out: it says nothing, or overflowed.
  void add(const GradientNorms& norms);
  /// nullopt until enough updates were seen or while the estimate of |G|^2 is not positive. 0 while
  /// the estimate of tr(Sigma) is negative: noise too small to be told from none.
  std::optional<double> value() const;
  int64_t count() const { return count_; }  ///< updates that were taken in
  double norm_sq() const;                   ///< estimate of |G|^2; 0 before the first update
  double trace() const;                     ///< estimate of tr(Sigma); 0 before the first update

  /// `count`, `norm_sq`, `trace`: restored, the averages go on with the same bits.
  std::map<std::string, double> state() const;
  /// An empty map (a checkpoint from before it was measured) begins anew. Throws Error(kBadData)
  /// when a key is missing or a value cannot be.
  void restore(const std::map<std::string, double>& state);

  static constexpr int64_t kMinUpdates = 10;  ///< before value() speaks

 private:
  double decay_;
  int64_t count_ = 0;
  double norm_sq_ = 0, trace_ = 0;  // still to be divided by 1 - decay^count
};

}  // namespace stretto::optim
