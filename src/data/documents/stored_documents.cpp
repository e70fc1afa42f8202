#include "data/documents/stored_documents.h"

#include <array>
#include <utility>

#include "base/error.h"
#include "data/cache_files.h"
#include "data/cache_folder.h"

namespace stretto::data {
namespace {

constexpr std::array<int64_t DocumentCounts::*, 7> kDocumentCounts{
    &DocumentCounts::documents, &DocumentCounts::lines,   &DocumentCounts::tokens,
    &DocumentCounts::words,     &DocumentCounts::unknown, &DocumentCounts::repaired,
    &DocumentCounts::longest};
constexpr size_t kFixedDocumentWords = 3 + kDocumentCounts.size();

/// Whether each document has its separator.
bool are_ends_of_documents(std::span<const uint64_t> ends) {
  uint64_t begin = 0;
  for (const uint64_t end : ends) {
    if (end <= begin) return false;
    begin = end;
  }
  return true;
}

}  // namespace

std::vector<uint64_t> words_of(const DocumentFacts& facts, std::span<const std::string> paths) {
  std::vector<uint64_t> words{facts.id_bytes, facts.repaired_input, facts.repaired_line};
  for (const auto count : kDocumentCounts) {
    words.push_back(static_cast<uint64_t>(facts.counts.*count));
  }
  append_left_out(words, facts.left_out, paths);
  return words;
}

std::optional<DocumentFacts> document_facts(const SampleStore& store,
                                            std::span<const std::string> paths) {
  const auto& words = store.words();
  if (words.size() < kFixedDocumentWords || (words[0] != 2 && words[0] != 4)) return std::nullopt;
  DocumentFacts facts{.id_bytes = words[0], .repaired_input = words[1], .repaired_line = words[2]};
  size_t at = 3;
  for (const auto count : kDocumentCounts) {
    facts.counts.*count = static_cast<int64_t>(words[at++]);
  }
  if (!take_left_out(words, at, paths, facts.left_out) || at != words.size()) return std::nullopt;
  const auto ends = store.array<uint64_t>(kDocumentEnds);
  if (ends.empty() || std::ssize(ends) != facts.counts.documents) return std::nullopt;
  if (!are_ends_of_documents(ends)) return std::nullopt;
  const uint64_t bytes = store.part(kDocumentIds).size();
  if (bytes % facts.id_bytes != 0 || bytes / facts.id_bytes != ends.back()) return std::nullopt;
  return facts;
}

StoredDocuments::StoredDocuments(Parts parts)
    : parts_(std::move(parts)), ends_(parts_.store.array<uint64_t>(kDocumentEnds)) {}

void StoredDocuments::append(uint64_t begin, uint64_t end, std::vector<int64_t>& ids) const {
  const StoredIds stored{.id_bytes = parts_.facts.id_bytes, .vocab_size = parts_.vocab_size};
  if (!load_ids(parts_.store.part(kDocumentIds), {begin, end}, stored, ids)) {
    throw_damaged_in_use(parts_.name);
  }
}

}  // namespace stretto::data
