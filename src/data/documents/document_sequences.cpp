#include "data/documents/document_sequences.h"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <utility>

#include "base/error.h"
#include "text/encoded_text.h"

namespace stretto::data {
namespace {

using Part = text::SequenceTemplate::Part;

uint64_t parts_of(uint64_t tokens, uint64_t room) {
  return (tokens + room - 1) / room;
}

int64_t num_parts_of(int64_t tokens, int64_t room) {
  return static_cast<int64_t>(parts_of(static_cast<uint64_t>(tokens), static_cast<uint64_t>(room)));
}

int64_t num_specials_of(const std::vector<text::SequenceTemplate::Slot>& slots) {
  return std::count_if(slots.begin(), slots.end(),
                       [](const auto& slot) { return slot.part == Part::kSpecial; });
}

// At least one of two neighbouring tokens is no separator, so that each sequence has text.
int64_t room_beside(int64_t num_specials, int64_t max_tokens) {
  if (max_tokens < num_specials + 2) {
    throw std::invalid_argument("sequences of " + std::to_string(max_tokens) +
                                " tokens have no room for text");
  }
  return max_tokens - num_specials;
}

}  // namespace

SequenceRows::SequenceRows(const text::Tokenizer& tokenizer, Packing packing, int64_t max_tokens)
    : packing_(packing),
      num_specials_(num_specials_of(text::template_of(tokenizer).single)),
      room_(room_beside(num_specials_, max_tokens)) {}

void SequenceRows::add_document(int64_t tokens) {
  ++documents_;
  tokens_ += tokens;
  parts_ += num_parts_of(tokens, room_);
}

int64_t SequenceRows::num_inner_tokens() const {
  if (packing_ == Packing::kDocument || documents_ == 0) return tokens_;
  return tokens_ + documents_ - 1;  // with separators between documents
}

int64_t SequenceRows::num_sequences() const {
  return packing_ == Packing::kDocument ? parts_ : num_parts_of(num_inner_tokens(), room_);
}

int64_t SequenceRows::num_rows() const {
  return num_inner_tokens() + num_sequences() * num_specials_;
}

DocumentSequences::DocumentSequences(std::shared_ptr<const Documents> documents,
                                     const text::Tokenizer& tokenizer, Packing packing,
                                     int64_t max_tokens)
    : documents_(std::move(documents)),
      slots_(text::template_of(tokenizer).single),
      packing_(packing),
      num_specials_(static_cast<uint32_t>(num_specials_of(slots_))),
      room_(static_cast<uint64_t>(room_beside(num_specials_, max_tokens))) {
  if (packing == Packing::kPacked) {
    pack();
  } else {
    split_documents();
  }
}

void DocumentSequences::pack() {
  const uint64_t all = documents_->num_ids() - 1;  // the last one is a separator
  const uint64_t full = all / room_, rest = all % room_;
  const auto rows_of_full = static_cast<uint32_t>(room_) + num_specials_;
  const auto rows_of_rest = static_cast<uint32_t>(rest) + num_specials_;
  if (rest > 0) runs_.add({&rows_of_rest, 1}, 1);
  if (full > 0) runs_.add({&rows_of_full, 1}, runs_.begins.back() + full);
  num_rows_ = static_cast<int64_t>(full * rows_of_full + (rest > 0 ? rows_of_rest : 0));
}

void DocumentSequences::split_documents() {
  uint64_t samples = 0;
  std::vector<std::vector<uint32_t>> lengths(1);
  for (int64_t i = 0; i < documents_->size(); ++i) {
    first_samples_.push_back(samples);
    uint64_t left = documents_->end(i) - documents_->begin(i);
    const uint64_t parts = parts_of(left, room_);
    samples += parts;
    if (samples > std::numeric_limits<uint32_t>::max()) {
      throw Error(ExitCode::kBadData, "the documents make more than 4,294,967,295 sequences",
                  "train on a part of them, or set data.packing = \"packed\"");
    }
    if (parts > 1) ++num_split_;
    for (; left > 0; left -= std::min(left, room_)) {
      lengths[0].push_back(rows_of({0, std::min(left, room_)}));
      num_rows_ += lengths[0].back();
    }
  }
  auto sorted = order_by_length(lengths);
  order_ = std::move(sorted.samples);
  runs_ = std::move(sorted.runs);
}

int64_t DocumentSequences::sample_at(uint64_t position) const {
  if (packing_ == Packing::kDocument) return order_[position];
  // The sequence that is not full is the last one, and comes first in the order.
  const bool has_rest = runs_.size() == 2 || rows_of({0, room_}) != runs_.lengths_of(0)[0];
  if (!has_rest) return static_cast<int64_t>(position);
  return position == 0 ? size() - 1 : static_cast<int64_t>(position) - 1;
}

DocumentSequences::Range DocumentSequences::range_of(int64_t sample) const {
  if (sample < 0 || sample >= size()) {
    throw std::out_of_range("documents: sequence " + std::to_string(sample) + " of " +
                            std::to_string(size()));
  }
  const auto number = static_cast<uint64_t>(sample);
  if (packing_ == Packing::kPacked) {
    return {number * room_, std::min((number + 1) * room_, documents_->num_ids() - 1)};
  }
  const auto next = std::upper_bound(first_samples_.begin(), first_samples_.end(), number);
  const auto document = static_cast<int64_t>(next - first_samples_.begin()) - 1;
  const uint64_t begin = documents_->begin(document) + (number - *(next - 1)) * room_;
  return {begin, std::min(begin + room_, documents_->end(document))};
}

void DocumentSequences::append(int64_t sample, std::vector<int64_t>& ids,
                               std::vector<int64_t>& segments) const {
  const Range range = range_of(sample);
  for (const auto& slot : slots_) {
    if (slot.part == Part::kSpecial) {
      ids.push_back(slot.id);
      segments.push_back(slot.segment);
    } else {
      documents_->append(range.begin, range.end, ids);
      segments.insert(segments.end(), range.end - range.begin, slot.segment);
    }
  }
}

}  // namespace stretto::data
