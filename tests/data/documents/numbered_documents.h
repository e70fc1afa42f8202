#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "data/documents/documents.h"

namespace stretto::testing {

/// Documents of so many tokens, numbered from 1 on, each with the separator 0 behind it.
class NumberedDocuments final : public data::Documents {
 public:
  explicit NumberedDocuments(const std::vector<int64_t>& lengths) {
    int64_t token = 0;
    for (const int64_t length : lengths) {
      for (int64_t i = 0; i < length; ++i) ids_.push_back(++token);
      ids_.push_back(0);
      begins_.push_back(ids_.size());
    }
  }
  int64_t size() const override { return std::ssize(begins_) - 1; }
  uint64_t begin(int64_t document) const override { return begins_[static_cast<size_t>(document)]; }
  void append(uint64_t begin, uint64_t end, std::vector<int64_t>& ids) const override {
    for (uint64_t i = begin; i < end; ++i) ids.push_back(ids_.at(i));
  }
  const data::DocumentCounts& counts() const override { return counts_; }
  const data::LeftOut& left_out() const override { return left_out_; }
  uint64_t key() const override { return 0; }
  uint64_t cache_bytes() const override { return 0; }
  bool from_cache() const override { return false; }

  const std::vector<int64_t>& ids() const { return ids_; }

 private:
  std::vector<int64_t> ids_;
  std::vector<uint64_t> begins_{0};
  data::DocumentCounts counts_;
  data::LeftOut left_out_;
};

inline std::shared_ptr<const NumberedDocuments> documents_of(const std::vector<int64_t>& lengths) {
  return std::make_shared<NumberedDocuments>(lengths);
}

}  // namespace stretto::testing
