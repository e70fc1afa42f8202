// libFuzzer target: a folder of a model whose files are the parts of the input, imported. Error is
// the only exception that may come out, and each tensor that is imported has all of its bytes.
//
// Parts stand between lines of `---`: config.json, vocab.txt, tokenizer_config.json,
// sentence_bert_config.json, model.safetensors.index.json, and the tensors of a.safetensors and of
// b.safetensors, a line each: a name and sizes. An empty part is a file that is missing; without an
// index a.safetensors is model.safetensors. Bytes of tensors are zeros: their readers have fuzzers.
#include <unistd.h>

#include <array>
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

#include "base/error.h"
#include "interchange/import_model.h"
#include "store/safetensors.h"

namespace {

namespace fs = std::filesystem;
using namespace stretto;

constexpr int64_t kMostElements = 4096;  // of a tensor; more would only take longer
constexpr size_t kMostTensors = 64, kMostSizes = 4;
constexpr std::array kTextFiles{"config.json", "vocab.txt", "tokenizer_config.json",
                                "sentence_bert_config.json", "model.safetensors.index.json"};

std::vector<std::string> parts_of(std::string_view input) {
  constexpr std::string_view kLine = "---\n";
  std::vector<std::string> parts;
  for (size_t end = input.find(kLine); end != std::string_view::npos; end = input.find(kLine)) {
    parts.emplace_back(input.substr(0, end));
    input.remove_prefix(end + kLine.size());
  }
  parts.emplace_back(input);
  parts.resize(kTextFiles.size() + 2);
  return parts;
}

void write_text(const fs::path& path, const std::string& text) {
  if (!text.empty()) std::ofstream(path, std::ios::binary) << text;
}

void write_tensors(const fs::path& path, const std::string& lines) {
  static const std::string zeros(kMostElements * sizeof(float), '\0');
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
    tensor.bytes = std::string_view(zeros).substr(0, static_cast<size_t>(elements) * sizeof(float));
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

void require_whole(const interchange::ImportedModel& model) {
  for (const auto& tensor : model.tensors) {
    int64_t elements = 1;
    for (const int64_t size : tensor.shape) elements *= size;
    if (tensor.bytes.size() != static_cast<size_t>(elements) * sizeof(float)) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const fs::path folder =
      fs::temp_directory_path() / ("stretto_fuzz_folder_" + std::to_string(::getpid()));
  fs::remove_all(folder);
  fs::create_directories(folder);
  const auto parts = parts_of({reinterpret_cast<const char*>(data), size});
  for (size_t i = 0; i < kTextFiles.size(); ++i) write_text(folder / kTextFiles[i], parts[i]);
  const bool has_index = !parts[kTextFiles.size() - 1].empty();
  write_tensors(folder / (has_index ? "a.safetensors" : "model.safetensors"),
                parts[kTextFiles.size()]);
  write_tensors(folder / "b.safetensors", parts[kTextFiles.size() + 1]);
  for (const bool lenient : {false, true}) {
    try {
      require_whole(interchange::import_model(
          folder, {.encoder_only = lenient, .ignore_extra = lenient, .allow_missing = lenient}));
    } catch (const Error&) {
    }
  }
  fs::remove_all(folder);
  return 0;
}
