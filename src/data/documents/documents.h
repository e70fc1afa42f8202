#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "data/documents/document_lines.h"
#include "text/tokenizer.h"

namespace stretto::data {

/// What is tokenised of a document.
enum class DocumentText : uint8_t {
  kJoinedLines,  ///< its lines, joined by spaces, without blank ones
  kExact,        ///< its bytes, with line ends and blank lines (data/documents/exact_text.h)
};

/// Plain text that is read as documents.
struct DocumentInput {
  std::vector<std::string> paths;  ///< of `[data]`, one after the other
  DocumentEnd end = DocumentEnd::kBlankLine;
  std::string cache_dir = {};  ///< empty = the user's cache folder
  int64_t threads = 0;         ///< for hashing and tokenising; 0 = one a core
  std::string key = {};        ///< that names the paths, for messages: "data.train"
  BadSampleRule bad_samples = {};
  DocumentText text = DocumentText::kJoinedLines;
  std::string marker = {};    ///< of DocumentEnd::kMarker: the line between two documents
  std::string json_key = {};  ///< of DocumentEnd::kJsonLine: of the text
};

/// What a tokenizer made of a text.
struct DocumentCounts {
  int64_t documents = 0;  ///< that have tokens; of DocumentEnd::kEachLine all
  int64_t lines = 0;      ///< that are not blank; of exact text all
  int64_t tokens = 0;     ///< without separators
  int64_t words = 0;      ///< split at white space
  int64_t unknown = 0;    ///< of the tokens: `<unk>`
  int64_t repaired = 0;   ///< lines that were not UTF-8
  int64_t longest = 0;    ///< document, in tokens

  double unknown_rate() const {  ///< in [0, 1]; 0 without tokens
    return tokens == 0 ? 0 : static_cast<double>(unknown) / static_cast<double>(tokens);
  }
};

/// Tokenised documents in a mapped store: the ids of all documents one after the other, each with
/// the tokenizer's separator (SpecialIds::eos) behind it. Each has a token, but for those of
/// DocumentEnd::kEachLine. Safe to use from several threads.
///
/// Joined lines are tokenised one by one, those behind the first with a space before them. Exact
/// text is tokenised in pieces (kMaxPieceBytes). What is not UTF-8 is replaced by U+FFFD.
class Documents {
 public:
  virtual ~Documents() = default;
  virtual int64_t size() const = 0;
  /// First id of a document; of size(), the number of all ids.
  virtual uint64_t begin(int64_t document) const = 0;
  /// The id behind its last one, where its separator stands.
  uint64_t end(int64_t document) const { return begin(document + 1) - 1; }
  uint64_t num_ids() const { return begin(size()); }  ///< with separators
  /// Appends ids [begin, end) of all.
  virtual void append(uint64_t begin, uint64_t end, std::vector<int64_t>& ids) const = 0;

  virtual const DocumentCounts& counts() const = 0;
  virtual const LeftOut& left_out() const = 0;  ///< lines, by BadSampleRule
  virtual uint64_t key() const = 0;             ///< of contents and tokenizer
  virtual uint64_t cache_bytes() const = 0;
  virtual bool from_cache() const = 0;
};

/// Tokenised on first use, in parallel, and kept in a sample store of the cache
/// (data/documents/stored_documents.h) under a key of contents and tokenizer. Memory is bounded for
/// texts of any size, and for documents of any length.
///
/// Throws Error(kUsage) for missing files and a tokenizer without separator, Error(kBadData)
/// for bad lines (file and line) and a text without a document, Error(kIo) where the cache cannot
/// be written.
std::shared_ptr<const Documents> open_documents(const DocumentInput& input,
                                                const text::Tokenizer& tokenizer);

}  // namespace stretto::data
