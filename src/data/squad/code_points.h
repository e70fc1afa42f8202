#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace stretto::data {

/// Where the code points of a text begin: SQuAD's offsets count code points, and text is bytes
/// here.
class CodePoints {
 public:
  /// @param text  well-formed UTF-8, which must outlive this
  explicit CodePoints(std::string_view text);

  int64_t size() const { return static_cast<int64_t>(begins_.size()) - 1; }
  /// The byte at which a code point begins. @param code_point  in [0, size()]; size() is the end
  int64_t byte_at(int64_t code_point) const {
    return static_cast<int64_t>(begins_[static_cast<size_t>(code_point)]);
  }
  /// The code point that has this byte. @param byte  in [0, bytes]; the end gives size()
  int64_t code_point_at(int64_t byte) const;
  /// The code points [begin, end), with 0 <= begin <= end <= size().
  std::string_view slice(int64_t begin, int64_t end) const;

 private:
  std::string_view text_;
  std::vector<size_t> begins_;  ///< of each code point, then the end of the text
};

}  // namespace stretto::data
