#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "base/named_output.h"

namespace stretto::store {

/// The header of a NumPy file, version 1.0 (numpy.lib.format): an array [rows, columns] of
/// little-endian fp32 in C order. Always 128 bytes, so that the number of rows may be filled in
/// when it is known.
std::string npy_header(int64_t rows, int64_t columns);

/// A `.npy` file whose rows come one after the other: `numpy.load` reads an array fp32 [rows,
/// columns]. The file is there when finish() has returned, whole; without it there is none. It is
/// an output that a user names (base/named_output.h): a pipe or a device, too. Members throw
/// Error(kIo).
class NpyFile {
 public:
  NpyFile(std::filesystem::path path, int64_t columns);

  /// @param values  of whole rows, one row after the other
  void append(std::span<const float> values);
  void finish();

 private:
  NamedOutput file_;
  const int64_t columns_;
  int64_t rows_ = 0;
};

}  // namespace stretto::store
