#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/documents/documents.h"
#include "data/sample_store.h"

/// Documents as a sample store (data/sample_store.h) holds them.
namespace stretto::data {

/// Part of the key: a change of the parts, or of how text becomes documents, makes new stores.
inline constexpr uint64_t kDocumentsVersion = 2;

enum DocumentsPart : size_t {
  kDocumentIds,   ///< uint16, or uint32 where a vocabulary has more than 65,536; with separators
  kDocumentEnds,  ///< uint64 [documents]: the id behind the separator of each
  kNumDocumentsParts,
};

/// What the head of the store knows.
struct DocumentFacts {
  uint64_t id_bytes = 2;
  DocumentCounts counts = {};
  uint64_t repaired_input = 0, repaired_line = 0;  ///< the first line that was not UTF-8
  LeftOut left_out = {};
};

/// The words of the head. @param paths  of the input, for what was left out
std::vector<uint64_t> words_of(const DocumentFacts& facts, std::span<const std::string> paths);

/// Nothing where the head and the parts do not belong together.
std::optional<DocumentFacts> document_facts(const SampleStore& store,
                                            std::span<const std::string> paths);

/// Documents of a store that has such facts.
class StoredDocuments final : public Documents {
 public:
  struct Parts {
    SampleStore store;
    DocumentFacts facts;
    uint64_t key = 0;
    std::string name;  ///< of the store, for messages
    int64_t vocab_size = 0;
  };
  explicit StoredDocuments(Parts parts);

  int64_t size() const override { return parts_.facts.counts.documents; }
  uint64_t begin(int64_t document) const override {
    return document == 0 ? 0 : ends_[static_cast<size_t>(document) - 1];
  }
  /// Throws Error(kIo) where the ids are not those that were verified: the file was written to.
  void append(uint64_t begin, uint64_t end, std::vector<int64_t>& ids) const override;

  const DocumentCounts& counts() const override { return parts_.facts.counts; }
  const LeftOut& left_out() const override { return parts_.facts.left_out; }
  uint64_t key() const override { return parts_.key; }
  uint64_t cache_bytes() const override { return parts_.store.num_bytes(); }
  bool from_cache() const override { return parts_.store.from_cache(); }

 private:
  Parts parts_;
  std::span<const uint64_t> ends_;
};

}  // namespace stretto::data
