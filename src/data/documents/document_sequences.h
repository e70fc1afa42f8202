#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/documents/documents.h"
#include "data/length_batches.h"
#include "text/tokenizer.h"

namespace stretto::data {

/// How documents become sequences.
enum class Packing : uint8_t {
  kPacked,    ///< all documents one after the other, with separators, cut anywhere
  kDocument,  ///< one document a sequence; a longer one is cut into several
};

/// DocumentSequences::size() and num_rows() of documents whose lengths alone are known.
class SequenceRows {
 public:
  /// Throws std::invalid_argument where the template leaves no room for two tokens.
  SequenceRows(const text::Tokenizer& tokenizer, Packing packing, int64_t max_tokens);

  /// @param tokens  at least one, without the separator
  void add_document(int64_t tokens);
  int64_t num_sequences() const;
  int64_t num_rows() const;

 private:
  /// Tokens of all sequences, with separators, without what stands around each.
  int64_t num_inner_tokens() const;

  Packing packing_;
  int64_t num_specials_ = 0, room_ = 0;
  int64_t documents_ = 0, tokens_ = 0;
  int64_t parts_ = 0;  ///< of at most room_ tokens, if each document has its own
};

/// Sequences of at most so many tokens, specials included, with what stands around one
/// text (text::template_of): `[CLS] … [SEP]`. Together they have each token of the documents once.
///
/// Packed, all sequences but the last are full, and need no memory: sequence i holds the ids from
/// i · room on, where room is what the template leaves; a separator stands between documents. One
/// document a sequence takes 8 bytes a document and 4 a sequence.
///
/// Safe to use from several threads.
class DocumentSequences {
 public:
  /// Throws std::invalid_argument where the template leaves no room for two tokens, and
  /// Error(kBadData) above 4,294,967,295 sequences.
  DocumentSequences(std::shared_ptr<const Documents> documents, const text::Tokenizer& tokenizer,
                    Packing packing, int64_t max_tokens);

  int64_t size() const { return static_cast<int64_t>(runs_.begins.back()); }
  int64_t num_split() const { return num_split_; }  ///< documents that were cut
  /// Tokens of all sequences, with specials and separators.
  int64_t num_rows() const { return num_rows_; }

  /// The order of lengths, as LengthSamples has it.
  const LengthRuns& runs() const { return runs_; }
  int64_t sample_at(uint64_t position) const;

  /// Appends the ids of a sequence, and a segment for each.
  void append(int64_t sample, std::vector<int64_t>& ids, std::vector<int64_t>& segments) const;

  const Documents& documents() const { return *documents_; }

 private:
  struct Range {
    uint64_t begin = 0, end = 0;
  };
  void pack();
  void split_documents();
  Range range_of(int64_t sample) const;
  uint32_t rows_of(Range range) const {
    return static_cast<uint32_t>(range.end - range.begin) + num_specials_;
  }

  std::shared_ptr<const Documents> documents_;
  std::vector<text::SequenceTemplate::Slot> slots_;
  Packing packing_;
  uint32_t num_specials_ = 0;
  uint64_t room_ = 0;                    ///< tokens of a sequence beside the specials
  std::vector<uint64_t> first_samples_;  ///< [documents]; of one document a sequence
  std::vector<uint32_t> order_;          ///< of one document a sequence
  LengthRuns runs_;
  int64_t num_split_ = 0, num_rows_ = 0;
};

}  // namespace stretto::data
