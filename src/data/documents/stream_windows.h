#pragma once

#include <cstdint>
#include <memory>

#include "data/batch_source.h"
#include "data/documents/stream_columns.h"
#include "data/length_batches.h"

namespace stretto::data {

/// The column behind those of stream_columns.h: a row for each sample.
inline constexpr size_t kStreamScored = 2;

/// How many tokens at the end of each sample are scored; those before them are context alone.
inline const PackedTokens& stream_scored(const Batch& batch) {
  return batch.column<int64_t>(kStreamScored);
}

/// What the first token of a window is predicted from.
enum class WindowBegin : uint8_t {
  kTokenBefore,  ///< what stands before it in the stream; before the first of a text its begin
  kTextBegin,    ///< as if each window began a text
};

/// Windows of a stream, or of each of its documents.
struct WindowSetting {
  int64_t length = 0;        ///< most tokens of a window
  int64_t stride = 0;        ///< from one begin to the next; at most `length`, 0 = length
  bool by_document = false;  ///< no window has tokens of two documents
  WindowBegin begin = WindowBegin::kTokenBefore;
  /// The token in front of a text, which is all of the stream, or a document; -1 = the separator.
  int64_t text_begin = -1;
  int64_t max_tokens = 0;   ///< of a micro-batch; a longer window is one by itself
  int64_t max_samples = 0;  ///< of a micro-batch; 0 = any number
  Shuffle shuffle = Shuffle::kNo;
  uint64_t seed = 0;
};

/// Windows whose begins are `stride` tokens apart, the last of which reaches the end. Each scores
/// what no window before it has, so that every token is scored once: of the first window all, of
/// others their last `stride` tokens, each with at least length - stride tokens before it. Without
/// an overlap windows are disjoint blocks.
///
/// Samples are numbered in the order of the text. Batches are cut in the order of lengths; any is a
/// function of (seed, epoch, index). Takes 12 bytes a window, and 8 a document.
class StreamWindows {
 public:
  /// Throws std::invalid_argument for a length below 1 or a stride that is not in [0, length], and
  /// Error(kBadData) above 4,294,967,295 windows.
  StreamWindows(std::shared_ptr<const Documents> documents, const WindowSetting& setting);

  int64_t size() const { return static_cast<int64_t>(order_.runs.begins.back()); }
  /// The windows of a document are [first_of(document), first_of(document + 1)); with by_document
  /// alone. @param document  of size(), the number of all windows
  int64_t first_of(int64_t document) const;
  int64_t num_split() const { return num_split_; }  ///< documents with more than one; by_document

  /// The order of lengths, as LengthSamples has it.
  const LengthOrder& order() const { return order_; }
  void append(int64_t sample, Batch& batch) const;

  const Documents& documents() const { return *documents_; }

 private:
  struct Window {
    StreamRange range;
    uint64_t scored = 0;
    bool begins_text = false;
  };
  uint64_t windows_of(uint64_t length) const;
  void add_text(uint64_t length, std::vector<uint32_t>& lengths);
  Window window_of(int64_t sample) const;

  std::shared_ptr<const Documents> documents_;
  WindowSetting setting_;
  uint64_t length_ = 0, stride_ = 0;
  std::vector<uint64_t> firsts_;  ///< [texts]: number of the first window of each
  int64_t num_split_ = 0;
  LengthOrder order_;
};

/// A batch that windows can be appended to.
inline Batch window_batch() {
  Batch batch = stream_batch();
  batch.columns.emplace_back(PackedTokens{});
  return batch;
}

/// The windows as micro-batches of about equal lengths, under the bounds of their setting.
std::unique_ptr<BatchSource> make_window_batches(std::shared_ptr<const StreamWindows> windows,
                                                 const WindowSetting& setting);

}  // namespace stretto::data
