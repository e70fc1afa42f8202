#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace stretto {

/// The memory that one reading of untrusted files may take in all: eight times the bytes that are
/// read, and 256 MiB, which is enough for every vocabulary that is in use.
///
/// A reader states what it is about to hold before it allocates. A small file that would become a
/// large structure is therefore refused early, and no limit on a single part is needed. The bytes
/// of the files themselves and those of tensors are not counted.
class Allowance {
 public:
  static constexpr uint64_t kFactor = 8;
  static constexpr uint64_t kSpare = uint64_t{256} << 20;

  /// @param where  the file or the folder, for the message
  explicit Allowance(std::string where, uint64_t num_read = 0)
      : where_(std::move(where)), num_read_(num_read) {}

  /// One more file, or part of one, is read.
  void add_read(uint64_t num_bytes) { num_read_ += num_bytes; }
  /// Takes `num_bytes` of memory for `what`, such as "its pieces".
  /// Throws Error(kBadData) with both sizes when that is more than is left.
  void take(uint64_t num_bytes, std::string_view what) {
    taken_ += num_bytes;
    if (taken_ > limit()) exceed(what);
  }
  /// What was taken and is free again.
  void give_back(uint64_t num_bytes) { taken_ -= num_bytes; }

  uint64_t num_read() const { return num_read_; }
  uint64_t taken() const { return taken_; }
  uint64_t limit() const { return kFactor * num_read_ + kSpare; }

 private:
  [[noreturn]] void exceed(std::string_view what) const;

  std::string where_;
  uint64_t num_read_;
  uint64_t taken_ = 0;
};

}  // namespace stretto
