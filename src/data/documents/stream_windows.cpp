#include "data/documents/stream_windows.h"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <utility>
#include <vector>

#include "base/error.h"

namespace stretto::data {
namespace {

class WindowSamples final : public LengthSamples {
 public:
  explicit WindowSamples(std::shared_ptr<const StreamWindows> windows)
      : windows_(std::move(windows)) {}

  const LengthRuns& runs() const override { return windows_->order().runs; }
  int64_t sample_at(uint64_t position) const override {
    return windows_->order().samples[position];
  }
  Batch empty_batch() const override { return window_batch(); }
  void append(int64_t /*epoch*/, int64_t sample, Batch& batch) const override {
    windows_->append(sample, batch);
  }

 private:
  std::shared_ptr<const StreamWindows> windows_;
};

}  // namespace

StreamWindows::StreamWindows(std::shared_ptr<const Documents> documents,
                             const WindowSetting& setting)
    : documents_(std::move(documents)), setting_(setting) {
  if (setting.length < 1 || setting.stride < 0 || setting.stride > setting.length) {
    throw std::invalid_argument(
        "windows have at least a token, and begin before the last one ends");
  }
  length_ = static_cast<uint64_t>(setting.length);
  stride_ = static_cast<uint64_t>(setting.stride > 0 ? setting.stride : setting.length);
  std::vector<std::vector<uint32_t>> lengths(1);
  if (setting.by_document) {
    for (int64_t i = 0; i < documents_->size(); ++i) {
      add_text(documents_->begin(i + 1) - documents_->begin(i), lengths[0]);
    }
  } else {
    add_text(documents_->num_ids(), lengths[0]);
  }
  order_ = order_by_length(lengths);
}

uint64_t StreamWindows::windows_of(uint64_t length) const {
  return length <= length_ ? 1 : 1 + (length - length_ + stride_ - 1) / stride_;
}

/// @param length  tokens of the text, its separators included
void StreamWindows::add_text(uint64_t length, std::vector<uint32_t>& lengths) {
  firsts_.push_back(lengths.size());
  const uint64_t count = windows_of(length);
  if (lengths.size() + count > std::numeric_limits<uint32_t>::max()) {
    throw Error(ExitCode::kBadData, "the text has more than 4,294,967,295 windows",
                "make them longer, or move them by more tokens (eval.stride)");
  }
  if (setting_.by_document && count > 1) ++num_split_;
  for (uint64_t i = 0; i < count; ++i) {
    lengths.push_back(static_cast<uint32_t>(std::min(length_, length - i * stride_)));
  }
}

int64_t StreamWindows::first_of(int64_t document) const {
  if (!setting_.by_document) throw std::logic_error("these windows are not of documents");
  const auto number = static_cast<size_t>(document);
  return number == firsts_.size() ? size() : static_cast<int64_t>(firsts_.at(number));
}

StreamWindows::Window StreamWindows::window_of(int64_t sample) const {
  if (sample < 0 || sample >= size()) throw std::out_of_range("windows: there is no such window");
  const auto number = static_cast<uint64_t>(sample);
  const auto next = std::upper_bound(firsts_.begin(), firsts_.end(), number);
  const auto text = static_cast<int64_t>(next - firsts_.begin()) - 1;
  const uint64_t place = number - *(next - 1);
  const StreamRange all = setting_.by_document
                              ? StreamRange{documents_->begin(text), documents_->begin(text + 1)}
                              : StreamRange{0, documents_->num_ids()};
  const StreamRange range{all.begin + place * stride_,
                          std::min(all.begin + place * stride_ + length_, all.end)};
  // The window before it ends where a whole one does, since it is not the last.
  const uint64_t scored_before = place == 0 ? range.begin : range.begin - stride_ + length_;
  return {.range = range, .scored = range.end - scored_before, .begins_text = place == 0};
}

void StreamWindows::append(int64_t sample, Batch& batch) const {
  const Window window = window_of(sample);
  auto& inputs = batch.column<int64_t>(kStreamInputs).values;
  const size_t first = inputs.size();
  append_stretch(*documents_, window.range, sample, batch);
  if (window.begins_text || setting_.begin == WindowBegin::kTextBegin) {
    std::vector<int64_t> begin{setting_.text_begin};
    if (setting_.text_begin < 0) {
      begin.clear();
      documents_->append(documents_->num_ids() - 1, documents_->num_ids(), begin);
    }
    inputs[first] = begin.front();
  }
  auto& scored = batch.column<int64_t>(kStreamScored);
  scored.values.push_back(static_cast<int64_t>(window.scored));
  scored.close_sequence();
}

std::unique_ptr<BatchSource> make_window_batches(std::shared_ptr<const StreamWindows> windows,
                                                 const WindowSetting& setting) {
  const LengthBounds bounds{.max_rows = {setting.max_tokens}, .max_samples = setting.max_samples};
  return make_length_batches(std::make_shared<WindowSamples>(std::move(windows)), bounds,
                             setting.shuffle, setting.seed);
}

}  // namespace stretto::data
