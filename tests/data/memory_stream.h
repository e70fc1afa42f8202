#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>

#include "data/byte_stream.h"

namespace stretto::testing {

/// A file in memory. Gives its bytes in chunks of odd sizes, so that lines straddle them.
class MemoryStream final : public data::ByteStream {
 public:
  explicit MemoryStream(std::string_view bytes) : bytes_(bytes) {}

  size_t read(char* buffer, size_t capacity) override {
    const size_t rest = bytes_.size() - at_;
    const size_t size = std::min({capacity, rest, size_t{13} + rest % 61});
    std::memcpy(buffer, bytes_.data() + at_, size);
    at_ += size;
    return size;
  }

 private:
  std::string bytes_;
  size_t at_ = 0;
};

}  // namespace stretto::testing
