#pragma once

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "store/safetensors.h"

/// The folder of a model as a fuzzer's input: its files are parts of the input.
namespace stretto::testing {

/// An empty folder, of this process alone.
inline const std::filesystem::path& empty_folder() {
  static const std::filesystem::path folder = std::filesystem::temp_directory_path() /
                                              ("stretto_fuzz_folder_" + std::to_string(::getpid()));
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  return folder;
}

/// So many parts, which stand between lines of `---`; those that are not there are empty.
inline std::vector<std::string> parts_of(std::string_view input, size_t count) {
  constexpr std::string_view kLine = "---\n";
  std::vector<std::string> parts;
  for (size_t end = input.find(kLine); end != std::string_view::npos; end = input.find(kLine)) {
    parts.emplace_back(input.substr(0, end));
    input.remove_prefix(end + kLine.size());
  }
  parts.emplace_back(input);
  parts.resize(count);
  return parts;
}

/// An empty text is a file that is missing.
inline void write_text(const std::filesystem::path& path, const std::string& text) {
  if (!text.empty()) std::ofstream(path, std::ios::binary) << text;
}

/// A tensor of F32 for each line: a name and sizes. No line is a file that is missing.
/// @param byte  each byte of the tensors
inline void write_tensors(const std::filesystem::path& path, const std::string& lines,
                          char byte = '\0') {
  constexpr int64_t kMostElements = 4096;  // of a tensor; more would only take longer
  constexpr size_t kMostTensors = 64, kMostSizes = 4;
  const std::string bytes(kMostElements * sizeof(float), byte);
  std::vector<store::TensorView> tensors;
  std::istringstream text(lines);
  for (std::string line; tensors.size() < kMostTensors && std::getline(text, line);) {
    std::istringstream words(line);
    store::TensorView tensor;
    words >> tensor.name;
    int64_t elements = 1;
    for (int64_t size = 0; tensor.shape.size() < kMostSizes && words >> size;) {
      if (size < 0 || size > kMostElements || elements * size > kMostElements) break;
      tensor.shape.push_back(size);
      elements *= size;
    }
    tensor.bytes = std::string_view(bytes).substr(0, static_cast<size_t>(elements) * sizeof(float));
    tensors.push_back(tensor);
  }
  if (tensors.empty()) return;
  try {
    std::string header;
    const auto chunks = store::safetensors_chunks(tensors, {}, header);
    std::ofstream file(path, std::ios::binary);
    for (const auto& chunk : chunks) file << chunk;
  } catch (const std::invalid_argument&) {
    // One name twice, or none that is UTF-8: such a file cannot be written.
  }
}

/// Aborts where a tensor of F32 does not have all of its bytes.
inline void require_whole(const std::vector<store::TensorView>& tensors) {
  for (const auto& tensor : tensors) {
    int64_t elements = 1;
    for (const int64_t size : tensor.shape) elements *= size;
    if (tensor.bytes.size() != static_cast<size_t>(elements) * sizeof(float)) std::abort();
  }
}

}  // namespace stretto::testing
