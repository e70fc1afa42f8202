#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "kernels/cpu/table.h"

/// Location features of attention on the CPU, a row at a time (AttentiveWeights::location), for
/// attentive() and steps of decoding. All tensors are fp32 and contiguous.
namespace stretto::kernels {

class Location {
 public:
  /// None: is_on() is false.
  Location() = default;
  /// @param weight  U [A, 2 * K], or undefined: none
  explicit Location(const at::Tensor& weight);

  bool is_on() const { return kernel_ > 0; }
  int64_t kernel() const { return kernel_; }
  int64_t width() const { return width_; }

  /// `item` with keys, powers and peaks that have seen the weights of the step before and their
  /// sum, [item.count] each. They are this thread's until its next call.
  cpu::AttendRow seen(const cpu::AttendRow& item, const float* last, const float* sum) const;

  /// A place for the slopes of keys that seen() made, [item.count, A] of zeroes; this thread's.
  float* key_slopes(const cpu::AttendRow& item) const;

  /// Slopes in backward, of a row whose item seen() made.
  struct Slopes {
    const float* keys;  ///< [count, A]: in
    float* filters;     ///< [2 * K, A]: what this row brings is added
    float* last;        ///< [count]: written
    float* sum;         ///< [count]: what this row brings is added
  };
  void backward(const cpu::AttendRow& item, const float* last, const float* sum,
                const Slopes& slopes) const;

  /// From the filters' slopes of all sequences [B, 2 * K * A] to those of U [A, 2 * K].
  at::Tensor weight_slopes(const at::Tensor& filters) const;

 private:
  /// The lines of one row with zeroes at either end, in this thread's memory.
  cpu::LocateRow lines(int64_t count, const float* last, const float* sum) const;

  int64_t kernel_ = 0, width_ = 0, padded_ = 0;
  at::Tensor filters_;    // [2 * K, A]
  at::Tensor transpose_;  // [A, 2, padded]
};

}  // namespace stretto::kernels
