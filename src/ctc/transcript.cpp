#include "ctc/transcript.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "text/code_points.h"

namespace stretto::ctc {
namespace {

/// Takes labels in their order and makes words of them.
class WordMaker {
 public:
  WordMaker(const CtcLabels& labels, bool lexicon_words)
      : labels_(labels), lexicon_words_(lexicon_words) {}

  void add(const SpokenLabel& spoken) {
    const auto place = static_cast<size_t>(spoken.label);
    const bool is_separator = spoken.label == labels_.separator;
    if (lexicon_words_) {
      if (!spoken.ended_word.empty()) end_as(spoken.ended_word);
    } else if (is_separator || labels_.begins_word[place]) {
      end();
    }
    ++num_labels_;
    if (is_separator) {
      if (!is_open_) num_whole_ = num_labels_;
      return;
    }
    if (!is_open_) open_.begin_frame = spoken.begin_frame;
    is_open_ = true;
    open_.end_frame = spoken.end_frame;
    open_.text += labels_.texts[place];
  }

  /// The labels so far that are under way become a word.
  void end() {
    if (!is_open_) return;
    // Labels without a text are no word, nor do they end one.
    if (!open_.text.empty()) words_.push_back(open_);
    close();
  }
  void end_as(std::string_view word) {
    open_.text = word;
    if (is_open_) words_.push_back(open_);
    close();
  }

  std::vector<CtcWord> take() {
    for (CtcWord& word : words_) {  // whose labels may be bytes
      if (!is_valid_utf8(word.text))
        word.text = text::repaired_utf8(word.text, text::Repair::kEachSequence);
    }
    return std::move(words_);
  }
  size_t num_whole() const { return num_whole_; }  ///< labels until the last end of a word

 private:
  void close() {
    num_whole_ = num_labels_;
    open_ = CtcWord();
    is_open_ = false;
  }

  const CtcLabels& labels_;
  const bool lexicon_words_;
  std::vector<CtcWord> words_;
  CtcWord open_;
  bool is_open_ = false;
  size_t num_labels_ = 0, num_whole_ = 0;
};

/// Labels begin one behind the other, each in a frame of its own.
void order_frames(std::vector<SpokenLabel>& spoken) {
  for (size_t i = spoken.size(); i-- > 1;) {
    SpokenLabel& before = spoken[i - 1];
    before.begin_frame = std::min(before.begin_frame, spoken[i].begin_frame - 1);
    before.end_frame = std::clamp(before.end_frame, before.begin_frame + 1, spoken[i].begin_frame);
  }
}

}  // namespace

CtcHypothesis transcript(const CtcLabels& labels, std::vector<SpokenLabel> spoken,
                         bool lexicon_words, std::string_view last_word, bool whole_words) {
  order_frames(spoken);
  WordMaker maker(labels, lexicon_words);
  for (const SpokenLabel& label : spoken) maker.add(label);
  if (!last_word.empty()) {
    maker.end_as(last_word);
  } else if (!whole_words) {
    maker.end();
  }
  CtcHypothesis made;
  if (whole_words) spoken.resize(maker.num_whole());
  made.words = maker.take();
  for (const SpokenLabel& label : spoken) {
    made.ids.push_back(label.label);
    made.begin_frames.push_back(label.begin_frame);
  }
  for (const CtcWord& word : made.words) made.text += (made.text.empty() ? "" : " ") + word.text;
  return made;
}

}  // namespace stretto::ctc
