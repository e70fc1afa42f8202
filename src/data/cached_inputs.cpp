#include "data/cached_inputs.h"

#include "base/error.h"
#include "base/hash.h"
#include "data/byte_stream.h"
#include "data/cache_folder.h"
#include "data/file_digest.h"

namespace stretto::data {
namespace {

/// Whatever keeps a cache from being there: a user without a home folder has none either.
std::filesystem::path open_root(const std::string& cache_dir) {
  try {
    return open_cache(cache_dir);
  } catch (const Error& error) {
    throw Error(ExitCode::kIo, error.what(), error.advice());
  }
}

}  // namespace

std::optional<CachedInputs> open_cached_inputs(const std::string& cache_dir,
                                               const std::vector<std::string>& paths) {
  const auto root = open_root(cache_dir);
  try {
    CachedInputs inputs{.root = root, .files = InputFiles(paths), .contents = {}};
    inputs.files.hash([&](const std::string& path) {
      return stored_hash_of(path, {.memory_dir = root / "hashes", .threads = 1});
    });
    for (const auto& path : paths) {
      const InputPath parsed = parse_input_path(path);
      inputs.contents.push_back(hex64(inputs.files.hash_of(path)) + sized(parsed.member) +
                                parsed.file.extension().string());
    }
    return inputs;
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::string sized(const std::string& text) {
  return std::to_string(text.size()) + ":" + text;
}

}  // namespace stretto::data
