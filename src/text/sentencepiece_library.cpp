#include "text/sentencepiece_library.h"

#include <exception>
#include <new>

#include "base/error.h"
#include "base/text.h"

namespace stretto::text {
namespace {

[[noreturn]] void refuse_model(std::string_view where, std::string_view reason) {
  throw Error(
      ExitCode::kBadData,
      std::string(where) + ": SentencePiece cannot use this model: " + printable(reason, 300),
      "give a .model file as written by spm_train or by `stretto tokenizer`");
}

}  // namespace

std::unique_ptr<const SentencePieceLibrary> load_sentencepiece(const std::string& model_bytes,
                                                               std::string_view where) {
  auto library = std::make_unique<SentencePieceLibrary>();
  library->kinds = check_sentencepiece_model(model_bytes, where);
  try {
    const auto status = library->processor.LoadFromSerializedProto(model_bytes);
    if (!status.ok()) refuse_model(where, status.message());
  } catch (const Error&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& failure) {  // the library's trie builder throws its own kind
    refuse_model(where, failure.what());
  }
  return library;
}

void require_split(const sentencepiece::util::Status& status) {
  if (status.ok()) return;
  throw Error(ExitCode::kBadData,
              "SentencePiece cannot split a line: " + printable(status.message(), 300),
              "`stretto tokenizer encode MODEL < TEXT` tries the model alone; another copy of "
              "it may be whole");
}

void require_joined(const sentencepiece::util::Status& status) {
  if (status.ok()) return;
  throw Error(ExitCode::kBadData,
              "SentencePiece cannot join pieces: " + printable(status.message(), 300),
              "`stretto tokenizer decode MODEL < PIECES` tries the model alone; another copy "
              "of it may be whole");
}

}  // namespace stretto::text
