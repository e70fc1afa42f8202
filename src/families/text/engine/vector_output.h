#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>

namespace stretto::tasks {

/// Where the vectors of `stretto embed` go, one after the other.
class VectorOutput {
 public:
  virtual ~VectorOutput() = default;
  /// @param vectors  fp32 [B, D] on the CPU, contiguous, finite
  virtual void write(const at::Tensor& vectors) = 0;
  /// When there are no more.
  virtual void finish() {}
};

/// A JSON array of D numbers a line on stdout: the shortest digits that read back to the same fp32.
/// Flushed with each call. Throws Error(kIo).
std::unique_ptr<VectorOutput> make_json_output();

/// A `.npy` file (store/npy_file.h), there when finish() has returned.
std::unique_ptr<VectorOutput> make_npy_output(const std::string& path, int64_t width);

/// A line of make_json_output().
std::string json_vector(const float* values, int64_t count);

}  // namespace stretto::tasks
