// libFuzzer target: a folder of a translation model whose files are the parts of the input,
// imported. Error is the only exception that may come out, and each tensor that is imported has all
// of its bytes.
//
// Parts stand between lines of `---`: config.json, vocab.json, target_vocab.json,
// tokenizer_config.json, the tensors of model.safetensors, a line each: a name and sizes, and then
// generation_config.json. An empty part is a file that is missing, and so is one that the input
// does not reach. source.spm and target.spm are one small sound model. Bytes of tensors are no
// zeros: a bias of zeros is none.
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>

#include "base/error.h"
#include "families/translation/folders/import_seq2seq.h"
#include "tests/fuzz/folder_parts.h"
#include "tests/fuzz/small_sentencepiece.h"

namespace {

using namespace stretto;

constexpr std::array kTextFiles{"config.json", "vocab.json", "target_vocab.json",
                                "tokenizer_config.json"};
constexpr size_t kTensors = kTextFiles.size(), kGeneration = kTensors + 1;  // the last parts
constexpr char kByte = '?';  // of all tensors, whose elements are 0.75 then

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace stretto::testing;
  const auto& folder = empty_folder();
  const auto parts = parts_of({reinterpret_cast<const char*>(data), size}, kGeneration + 1);
  for (size_t i = 0; i < kTextFiles.size(); ++i) write_text(folder / kTextFiles[i], parts[i]);
  for (const char* name : {"source.spm", "target.spm"}) {
    write_text(folder / name, small_sentencepiece());
  }
  write_text(folder / "generation_config.json", parts[kGeneration]);
  write_tensors(folder / "model.safetensors", parts[kTensors], kByte);
  for (const bool lenient : {false, true}) {
    try {
      const auto model =
          interchange::import_seq2seq(folder, {.ignore_extra = lenient, .allow_missing = lenient});
      require_whole(model.tensors);
    } catch (const Error&) {
    }
  }
  std::filesystem::remove_all(folder);
  return 0;
}
