#include "ctc/greedy.h"

#include <algorithm>

namespace stretto::ctc {

void Greedy::push(const float* log_probs) {
  const int64_t num_labels = parts_.num_labels();
  const float* best = std::max_element(log_probs, log_probs + num_labels + 1);
  const int64_t best_class = best - log_probs;
  log_prob_ += double{*best};
  if (best_class != num_labels) {
    if (best_class != last_class_) spoken_.push_back({best_class, num_frames_, num_frames_, {}});
    spoken_.back().end_frame = num_frames_ + 1;
  }
  last_class_ = best_class;
  ++num_frames_;
}

CtcHypothesis Greedy::hypothesis(bool whole_words) const {
  CtcHypothesis made = transcript(parts_.labels, spoken_, false, {}, whole_words);
  made.log_prob = made.score = log_prob_;
  return made;
}

}  // namespace stretto::ctc
