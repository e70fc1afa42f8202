#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

namespace stretto::nn {

/// Where a parameter is born: its dotted name, the seed of the run and the device.
///
/// Each row of a parameter is one Philox stream keyed by (seed, hash of the name, row). First
/// weights therefore depend on nothing but seed, name and shape: not on the device, the number of
/// threads, or the order in which modules are built. On the meta device nothing is drawn or
/// allocated.
///
///     Init root(seed, at::kCPU);
///     Linear projection(root.child("encoder").child("output"), 512, 512);
class Init {
 public:
  Init(uint64_t seed, at::Device device) : seed_(seed), device_(device) {}

  /// Matrices are left unset, for a model whose weights are loaded at once: drawing them takes
  /// longer than reading them.
  static Init unset(at::Device device);

  /// The place called `name` inside this one.
  Init child(const std::string& name) const;

  /// Uniform in ±gain * sqrt(6 / (fan_in + fan_out)) (Glorot and Bengio 2010), fp32 [rows, cols].
  ///
  /// @param parts  the rows are so many equal matrices merged into one; each has its own fan_out
  at::Tensor xavier_uniform(const std::string& name, int64_t rows, int64_t cols, int64_t parts = 1,
                            double gain = 1.0) const;

  /// The same of matrices with these numbers of rows, merged into one; each has its own fan_out.
  at::Tensor xavier_uniform(const std::string& name, const std::vector<int64_t>& part_rows,
                            int64_t cols, double gain) const;

  /// Normal with mean 0, fp32 [rows, cols].
  at::Tensor normal(const std::string& name, int64_t rows, int64_t cols, double stddev) const;

  /// fp32 [size], every element `value`.
  at::Tensor constant(int64_t size, double value) const;

  at::Device device() const { return device_; }

 private:
  uint64_t key(const std::string& name) const;
  bool draws() const { return draws_ && !device_.is_meta(); }

  uint64_t seed_;
  at::Device device_;
  bool draws_ = true;
  std::string path_;
};

}  // namespace stretto::nn
