#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/documents/documents.h"
#include "text/tokenizer.h"

/// The files of a cache of documents (data/documents/documents.h); all numbers are little-endian.
namespace stretto::data {

inline constexpr const char* kDocumentIdsFile = "ids.bin";
inline constexpr const char* kDocumentStartsFile = "starts.bin";

/// Part of the key: a change of format or of the rules makes new caches.
inline constexpr uint64_t kDocumentsVersion = 1;

/// The head of such a cache, meta.bin.
struct DocumentsMeta {
  uint64_t key = 0;
  uint64_t id_bytes = 2;
  uint64_t num_ids = 0;  ///< with separators
  DocumentCounts counts = {};
  uint64_t repaired_input = 0, repaired_line = 0;  ///< the first line that was not UTF-8
  std::vector<uint64_t> id_sums = {}, start_sums = {};
  LeftOut left_out = {};  ///< stored where there is something
};

/// Nothing where there is no valid head. @param paths  of the input, for what was left out
std::optional<DocumentsMeta> read_documents_meta(const std::filesystem::path& folder,
                                                 std::span<const std::string> paths);

/// Tokenises documents into the files of a cache in `folder`. One thread reads chunks of lines,
/// others tokenise them, and results are written in the order of lines: the files do not depend on
/// the number of threads, and memory is a few chunks.
///
/// Throws as open_documents() does.
DocumentsMeta build_documents(const DocumentInput& input, const text::Tokenizer& tokenizer,
                              uint64_t key, const std::filesystem::path& folder);

/// A line of a document as it is tokenised: behind the first one with a space before it, and with
/// U+FFFD for bytes that are not UTF-8. @return whether all of it was UTF-8
bool set_document_line(std::string_view text, bool begins_document, std::string& line);

/// Error(kBadData) for files of a key that have no text. @param key  "data.train"
[[noreturn]] void throw_no_documents(const std::string& key, const std::vector<std::string>& paths);

}  // namespace stretto::data
