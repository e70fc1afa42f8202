#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "data/labelled/labelled_set.h"
#include "text/tokenizer.h"

namespace stretto::data {

/// One sample of labelled texts as a model takes it.
struct EncodedSample {
  std::span<const int64_t> ids, segments;  ///< equally long
  std::span<const int64_t> labels;         ///< numbers, in the order of the file
  float value = 0;                         ///< with LabelKind::kNumber, in the place of labels
};

/// Encodes texts on several threads, and hands them back in the order in which they came: what
/// comes out does not depend on the number of threads.
class LabelledEncoder {
 public:
  using Sink = std::function<void(const EncodedSample&)>;
  /// @param tokenizer  outlives this object
  /// @param labels     null for numbers
  /// @param sink       runs on the caller's thread
  LabelledEncoder(const LabelledOptions& options, const text::Tokenizer& tokenizer,
                  const Labels* labels, Sink sink);
  ~LabelledEncoder();

  /// Throws as text::TextEncoder does, of this text or of one before it.
  void add(std::string_view text, std::string_view text2, std::span<const int64_t> labels,
           double value);
  /// Hands back all. @return counts of the encoded texts alone
  LabelledCounts finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace stretto::data
