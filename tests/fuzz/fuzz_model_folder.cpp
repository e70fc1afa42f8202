// libFuzzer target: a folder of a model whose files are the parts of the input, imported. Error is
// the only exception that may come out, and each tensor that is imported has all of its bytes.
//
// Parts stand between lines of `---`: config.json, vocab.txt, tokenizer_config.json,
// sentence_bert_config.json, model.safetensors.index.json, the tensors of a.safetensors and of
// b.safetensors, a line each: a name and sizes, and then special_tokens_map.json,
// added_tokens.json, tokenizer.json, vocab.json, merges.txt, modules.json and
// 1_Pooling/config.json. An empty part is a file that is missing, and so is one that the input does
// not reach; without an index a.safetensors is model.safetensors. Bytes of tensors are zeros: their
// readers have fuzzers.
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>

#include "base/error.h"
#include "interchange/import_folder.h"
#include "tests/fuzz/folder_parts.h"

namespace {

using namespace stretto;

constexpr std::array kTextFiles{"config.json", "vocab.txt", "tokenizer_config.json",
                                "sentence_bert_config.json", "model.safetensors.index.json"};
constexpr std::array kLastFiles{"special_tokens_map.json",
                                "added_tokens.json",
                                "tokenizer.json",
                                "vocab.json",
                                "merges.txt",
                                "modules.json",
                                "1_Pooling/config.json"};
constexpr size_t kTensors = kTextFiles.size(), kLast = kTensors + 2;  // their first parts

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace stretto::testing;
  const auto& folder = empty_folder();
  const auto parts =
      parts_of({reinterpret_cast<const char*>(data), size}, kLast + kLastFiles.size());
  std::filesystem::create_directory(folder / "1_Pooling");
  for (size_t i = 0; i < kTextFiles.size(); ++i) write_text(folder / kTextFiles[i], parts[i]);
  for (size_t i = 0; i < kLastFiles.size(); ++i) {
    write_text(folder / kLastFiles[i], parts[kLast + i]);
  }
  const bool has_index = !parts[kTensors - 1].empty();
  write_tensors(folder / (has_index ? "a.safetensors" : "model.safetensors"), parts[kTensors]);
  write_tensors(folder / "b.safetensors", parts[kTensors + 1]);
  for (const bool lenient : {false, true}) {
    try {
      const auto model = interchange::import_folder(
          folder, {.encoder_only = lenient, .ignore_extra = lenient, .allow_missing = lenient});
      require_whole(model.tensors);
    } catch (const Error&) {
    }
  }
  std::filesystem::remove_all(folder);
  return 0;
}
