#include "data/archives/unpacked_file.h"

#include <string_view>
#include <utility>

namespace stretto::data {

UnpackedFile open_unpacked(const std::string& path) {
  std::string first(4, '\0');
  first.resize(open_plain(path)->read(first.data(), first.size()));
  auto bytes = open_plain(path);
  if (first.starts_with("\x1F\x8B")) {
    return {.bytes = make_gunzip(std::move(bytes), path), .is_packed = true};
  }
  if (first == "\x28\xB5\x2F\xFD") {
    return {.bytes = make_unzstd(std::move(bytes), path), .is_packed = true};
  }
  return {.bytes = std::move(bytes)};
}

}  // namespace stretto::data
