#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>

/// Products with weights of 2 to 8 bits on the CPU. Rows x are rounded to 8 bits when they come
/// (dynamically), products of whole numbers are summed in int32, and scales are applied behind the
/// sums. No gradient.
///
/// A row of x has a scale of its own, its largest magnitude / 127, and each number goes to the
/// nearest of -127 … 127, ties to even. Rows below 1e-30 count as zero; one with a number that is
/// not finite gives NaN. A row of a result depends neither on the rows beside it nor on threads,
/// and its sums of whole numbers are the same on every processor.
///
/// Letters: N rows of x, I inputs, O outputs, G groups of a row's inputs.
namespace stretto::kernels {

/// weight[o, i] = scales[o, i / group] * (codes[o, i] - zeros[o, i / group])
struct QuantisedWeights {
  int bits = 8;           ///< 2 … 8: codes and zeros are in -2^(bits - 1) … 2^(bits - 1) - 1
  int64_t group = 0;      ///< inputs that share a scale; 0: all of a row
  at::Tensor codes;       ///< int8 [O, I]
  at::Tensor scales;      ///< fp32 [O, G], or [1, G] for all rows
  at::Tensor zeros = {};  ///< int8 in the shape of the scales; undefined: 0
};

/// Such weights, laid out for products once: a byte each from 5 bits on, half a byte below. Threads
/// may share it. Where whole blocks of kPanel outputs and kBlock inputs are zero, as block pruning
/// leaves them, groups are made as small as these blocks, and products leave the empty ones out.
class QuantisedMatrix {
 public:
  /// Throws c10::Error for what `problem` names, shapes that do not fit each other, and codes or
  /// zeros that so many bits do not have.
  explicit QuantisedMatrix(const QuantisedWeights& weights);

  /// Why there is no matrix like this, such as "groups of 12 inputs: a multiple of 8 is needed";
  /// null when there is one.
  static const char* problem(int bits, int64_t inputs, int64_t group);

  int bits() const { return bits_; }
  int64_t outputs() const { return outputs_; }
  int64_t inputs() const { return inputs_; }
  /// Inputs that share a scale: of a whole row, I; kBlock where blocks are left out.
  int64_t group() const { return group_; }
  int64_t groups() const { return groups_; }
  bool is_symmetric() const { return !zeros_.defined(); }
  int64_t bytes() const;  ///< in memory

  /// The weights as fp32 [O, I].
  at::Tensor dense() const { return dense(0, outputs_); }
  /// Rows [first, first + count) of them.
  at::Tensor dense(int64_t first, int64_t count) const;
  /// Those of `ids`, int64 [M] on the CPU, in 0 … O - 1 -> fp32 [M, I].
  at::Tensor rows(const at::Tensor& ids) const;
  /// A matrix of those rows, which has the results that these have here to the bit.
  QuantisedMatrix selected(const at::Tensor& ids) const;

  /// Weights stand in panels of so many outputs, depth in steps of so many inputs.
  static constexpr int64_t kPanel = 32, kStep = 8;
  static constexpr int64_t kBlock = 32;     ///< inputs
  int64_t steps() const { return steps_; }  ///< of depth: I / kStep, rounded up
  /// Whether two inputs share a byte. A panel is [steps, 2, kPanel, 4] bytes, or with half bytes
  /// [steps, kPanel, 4], where the lower halves are the first four inputs of a step.
  bool has_halves() const { return bits_ <= 4; }
  const uint8_t* codes() const { return codes_.const_data_ptr<uint8_t>(); }
  const float* scales() const { return scales_.const_data_ptr<float>(); }  ///< [panels, G, kPanel]
  /// As the scales; null: zero() for all. Codes and zeros are here from 0 on.
  const int32_t* zeros() const {
    return zeros_.defined() ? zeros_.const_data_ptr<int32_t>() : nullptr;
  }
  /// [panels, G]: not 0 where a group has but zeros in each output of a panel, which products leave
  /// out; null where few are so.
  const uint8_t* empty() const {
    return empty_.defined() ? empty_.const_data_ptr<uint8_t>() : nullptr;
  }
  int32_t zero() const { return 1 << (bits_ - 1); }

 private:
  struct Form {
    int bits;
    int64_t outputs, inputs, group;
    bool is_symmetric, leaves_out;
  };
  explicit QuantisedMatrix(const Form& form);
  static Form checked(const QuantisedWeights& weights);
  int64_t panels() const { return (outputs_ + kPanel - 1) / kPanel; }
  int64_t panel_bytes() const { return steps_ * kStep * kPanel / (has_halves() ? 2 : 1); }
  /// Of four inputs of an output, from input 4 * `quad` on; with half bytes those of a whole step.
  int64_t place(int64_t output, int64_t quad) const;
  void lay_out(const QuantisedWeights& weights);
  void lay_out_codes(const uint8_t* bytes, int64_t output);
  void lay_out_scales(const float* scales, const int8_t* zeros, int64_t group, int64_t output);
  void find_empty_groups();
  void dense_row(int64_t output, float* to) const;

  int bits_;
  int64_t outputs_, inputs_, group_, groups_, steps_;
  at::Tensor codes_;   // uint8
  at::Tensor scales_;  // fp32 [panels, G, kPanel], 0 behind the last output
  at::Tensor zeros_;   // int32, as the scales; undefined where all are zero()
  at::Tensor empty_;   // uint8 [panels, G]; undefined where none is left out
};

/// x [N, I] fp32 on the CPU times rows [first, first + count) of the matrix transposed, plus bias
/// [count] (may be undefined) -> [N, count].
/// @param count  -1: all from `first` on
at::Tensor quantised_linear(const at::Tensor& x, const QuantisedMatrix& matrix,
                            const at::Tensor& bias = {}, int64_t first = 0, int64_t count = -1);
/// The same with as many outputs as `out` [N, count] has, fp32 and dense.
void quantised_linear_out(const at::Tensor& x, const QuantisedMatrix& matrix,
                          const at::Tensor& bias, int64_t first, at::Tensor& out);

/// Whether products with such weights are faster than those of fp32 by 1.15 at least, by
/// processor, bits and group (as in QuantisedWeights) alone; README.md has the reasons. Elsewhere
/// they save memory.
bool quantised_is_faster(int bits, int64_t group);

// --------------------------------------------------------------------------------------------
// A tensor that stands for a matrix of codes, so that a parameter of a model can be one.

/// fp32 [O, I] with no memory of its own but O numbers: what reads it finds NaN. The operators of
/// kernels.h that take a matrix of weights know it and the rows that are cut from it with
/// narrow(0, …): linear, embed, the losses with a projection and recurrent layers. Others ask
/// dense_weight().
at::Tensor stand_in(std::shared_ptr<const QuantisedMatrix> matrix);

/// Rows [first, first + count) of a matrix.
struct StoodFor {
  const QuantisedMatrix* matrix;  ///< lives as long as the tensor
  int64_t first, count;
};
/// What a tensor stands for; nothing for a usual one. Costs a look at its storage.
std::optional<StoodFor> stood_for(const at::Tensor& weight);

/// The numbers of a weight [rows, I]: itself, or those that it stands for, computed anew, or once
/// within a PackedWeightsScope.
at::Tensor dense_weight(const at::Tensor& weight);
/// The same of its rows `ids`, int64 [M]: as index_select(0, ids).
at::Tensor weight_rows(const at::Tensor& weight, const at::Tensor& ids);

}  // namespace stretto::kernels
