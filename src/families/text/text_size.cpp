#include "families/text/text_size.h"

#include <filesystem>
#include <system_error>

#include "data/byte_stream.h"

namespace stretto::experiment {

std::optional<int64_t> plain_bytes(std::span<const std::string> paths) {
  int64_t sum = 0;
  for (const auto& path : paths) {
    // For a member of an archive, the archive is what can be measured.
    const auto file = data::parse_input_path(path).file;
    std::error_code missing;
    const auto size = std::filesystem::file_size(file, missing);
    if (missing) return std::nullopt;
    const auto extension = file.extension();
    // Text shrinks to about a third.
    const bool packed = extension == ".gz" || extension == ".zst" || extension == ".zip";
    sum += static_cast<int64_t>(size) * (packed ? 3 : 1);
  }
  return sum;
}

}  // namespace stretto::experiment
