#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "kernels/gemm/gemm.h"
#include "kernels/quantised/quantised.h"

/// The likeliest classes behind an output projection, for a step of search. Logits are made and
/// looked through a block of classes at a time, so that neither they nor their log-softmax [N, V]
/// ever exist as a whole. No gradient.
///
/// Letters: N rows, D their width, C classes, K wanted of each row.
namespace stretto::kernels {

/// What is wanted of each row.
struct TopQuery {
  int64_t count = 1;                    ///< K
  std::span<const int64_t> never = {};  ///< classes that are not wanted of any row
  /// [N] or empty: further ones of each row. They count in the sum of probabilities all the same.
  std::vector<std::vector<int64_t>> never_of_rows = {};
  std::vector<int64_t> asked =
      {};  ///< [N] or empty: a class whose probability is wanted; -1 = none
};

/// What was found. Where the sum of a row's probabilities is no number, its log-probabilities are
/// NaN.
struct TopClasses {
  int64_t count = 0;             ///< K
  std::vector<int64_t> classes;  ///< [N, K], likeliest first, equal ones by number; -1 = no more
  std::vector<float> log_probs;  ///< [N, K], natural log
  std::vector<float> asked_log_probs;  ///< [N] or empty; -infinity where none was asked for
  std::vector<double> log_sums;        ///< [N]: logits less this are log-probabilities

  std::span<const int64_t> classes_of(int64_t row) const {
    return {classes.data() + row * count, static_cast<size_t>(count)};
  }
  std::span<const float> log_probs_of(int64_t row) const {
    return {log_probs.data() + row * count, static_cast<size_t>(count)};
  }
};

/// The likeliest of all classes: logits are x [N, D] times weight [C, D] transposed, plus bias [C]
/// (may be undefined), bent by `softcap` (0: as they are), as kernels::linear() makes them.
TopClasses linear_top(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                      double softcap, const TopQuery& query);

/// The same of logits fp32 [N, C] on the CPU, dense, which hold something else afterwards.
TopClasses top_of_logits(at::Tensor& logits, const TopQuery& query);

/// The rows of some classes, laid out for many products.
class ClassRows {
 public:
  /// @param ids   ascending, each once, below the rows of weight [C, D]
  /// @param bias  [C], may be undefined
  ClassRows(std::vector<int64_t> ids, const at::Tensor& weight, const at::Tensor& bias);

  const std::vector<int64_t>& ids() const { return ids_; }
  at::Tensor logits(const at::Tensor& x) const;  ///< [N, D] -> fp32 [N, ids] on the CPU

 private:
  std::vector<int64_t> ids_;
  at::Tensor weight_, bias_;
  std::shared_ptr<const gemm::Packed> packed_;    ///< null where libtorch's product is taken
  std::shared_ptr<const QuantisedMatrix> codes_;  ///< where the projection has codes of few bits
};

/// The likeliest among these classes, whose probabilities alone sum to one. Classes in query and
/// result are those of the whole projection; one that is asked for and not among them has
/// -infinity.
TopClasses linear_top(const at::Tensor& x, const ClassRows& classes, double softcap,
                      const TopQuery& query);

}  // namespace stretto::kernels
