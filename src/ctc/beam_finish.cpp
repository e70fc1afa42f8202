// How a search ends, and what it tells before.
#include <algorithm>
#include <map>
#include <utility>

#include "ctc/beam.h"
#include "ctc/log_add.h"
#include "ctc/transcript.h"

namespace stretto::ctc {

CtcHypothesis Beam::text_of(uint32_t prefix, uint32_t last_word, bool whole_words) const {
  const auto word = [&](uint32_t entry) {
    return entry == kNone ? std::string_view() : std::string_view(parts_.lexicon[entry].word);
  };
  std::vector<SpokenLabel> spoken;
  for (const uint32_t number : arena_.chain(prefix)) {
    const Prefix& at = arena_[number];
    spoken.push_back({at.label, at.begin_frame, at.last_frame + 1, word(at.word)});
  }
  return transcript(parts_.labels, std::move(spoken), parts_.has_lexicon(), word(last_word),
                    whole_words);
}

size_t Beam::best_slot() const {
  size_t best = 0;
  const auto score = [&](size_t i) {
    const Prefix& prefix = arena_[slots_[i].prefix];
    return slots_[i].total + prefix.bonus + double{prefix.early};
  };
  for (size_t i = 1; i < slots_.size(); ++i) {
    if (score(i) > score(best)) best = i;
  }
  return best;
}

CtcHypothesis Beam::best_so_far() const {
  const Slot& slot = slots_[best_slot()];
  const Prefix& prefix = arena_[slot.prefix];
  CtcHypothesis made = text_of(slot.prefix, kNone, false);
  made.log_prob = slot.total;
  made.score = slot.total + prefix.bonus;
  made.lm_log_prob = prefix.lm_log_prob;
  made.is_complete = num_ends(prefix) > 0 || prefix.trie == text::LexiconTrie::kRoot;
  return made;
}

CtcHypothesis Beam::certain() const {
  uint32_t common = slots_[0].prefix;
  for (const Slot& slot : slots_) common = arena_.common(common, slot.prefix);
  return text_of(common, kNone, true);
}

void Beam::settle(int64_t before_frame) {
  uint32_t fixed = slots_[best_slot()].prefix;
  int64_t begin = frame_ + 1;  // of the label behind, and each label has a frame of its own
  for (; fixed != 0; fixed = arena_[fixed].parent) {
    const Prefix& prefix = arena_[fixed];
    begin = std::min(int64_t{prefix.begin_frame}, begin - 1);
    const bool ends_word = parts_.has_lexicon()
                               ? prefix.word != kNone
                               : prefix.label == parts_.labels.separator ||
                                     parts_.labels.begins_word[static_cast<size_t>(prefix.label)];
    if (ends_word && begin < before_frame) break;
  }
  if (fixed == 0) return;
  const auto differs = [&](const Slot& slot) { return arena_.common(fixed, slot.prefix) != fixed; };
  for (const Slot& slot : slots_) {
    if (!differs(slot)) continue;
    arena_[slot.prefix].slot = kNone;
    release_row(arena_[slot.prefix]);
  }
  std::erase_if(slots_, differs);
  set_slots();
}

/// The hypotheses that a slot stands for: one, or one for each word that may end here.
void Beam::add_finals(const Slot& slot, std::vector<Final>& finals) const {
  const Prefix& prefix = arena_[slot.prefix];
  Final final;
  final.prefix = slot.prefix;
  final.lm_state = prefix.lm_state;
  final.log_prob = slot.total;
  final.bonus = prefix.bonus;
  final.lm_log_prob = prefix.lm_log_prob;
  const uint32_t count = num_ends(prefix);
  if (count == 0) {
    final.is_complete = prefix.trie == text::LexiconTrie::kRoot;
    finals.push_back(final);
  }
  for (uint32_t i = 0; i < count; ++i) {
    Final ended = final;
    ended.word = word_of(prefix, i);
    if (unit_ == LmUnit::kWords) {
      const WordEnd& end = ends_[prefix.ends + i];
      ended.bonus += end.gain;
      ended.lm_log_prob += end.lm_log_prob;
      ended.lm_state = end.next;
    }
    finals.push_back(ended);
  }
}

/// Adds what the end of the text is worth.
void Beam::end_final(Final& final) {
  const Prefix& prefix = arena_[final.prefix];
  if (!final.is_complete) {
    final.bonus += double{prefix.early};
    return;
  }
  if (scorer_ != nullptr) {
    const double log_prob = sane(scorer_->end(final.lm_state));
    final.lm_log_prob += log_prob;
    final.bonus += parts_.options.alpha * log_prob;
  }
  if (parts_.hot_words.empty()) return;
  std::string rest = " ";
  if (parts_.has_lexicon()) rest = final.word == kNone ? "" : parts_.lexicon[final.word].word + " ";
  const text::HotWords::Step end = parts_.hot_words.next(prefix.hot_state, rest);
  final.bonus += double{end.gained} - double{parts_.hot_words.pending(end.state)};
}

/// Labels and words of a hypothesis; equal for those that differ only in separators which end no
/// word, and in labels without a text.
std::vector<uint32_t> Beam::merge_key(const Final& final) const {
  constexpr uint32_t kSeparator = 0xFFFFFFFE, kWord = 0x80000000;
  std::vector<uint32_t> key;
  bool is_between = true;
  for (const uint32_t number : arena_.chain(final.prefix)) {
    const Prefix& prefix = arena_[number];
    if (prefix.word != kNone) key.push_back(kWord | prefix.word);
    const bool is_separator = prefix.label == parts_.labels.separator;
    const auto label = static_cast<size_t>(prefix.label);
    const bool shows = !parts_.labels.texts[label].empty() || parts_.labels.begins_word[label];
    if (!is_separator && !shows) continue;
    if (!is_separator) key.push_back(static_cast<uint32_t>(prefix.label));
    if (is_separator && !is_between) key.push_back(kSeparator);
    is_between = is_separator;
  }
  if (!key.empty() && key.back() == kSeparator) key.pop_back();
  if (final.word != kNone) key.push_back(kWord | final.word);
  return key;
}

/// The n best of finals that are in the order of their scores. What has one text is one.
std::vector<CtcHypothesis> Beam::merged(const std::vector<Final>& finals) const {
  struct Group {
    const Final* best;
    double log_prob, score;
  };
  std::vector<Group> groups;
  std::map<std::vector<uint32_t>, size_t> places;
  for (const Final& final : finals) {
    const size_t next_place = groups.size();
    const size_t place = places.emplace(merge_key(final), next_place).first->second;
    if (place == next_place) {
      groups.push_back({&final, final.log_prob, final.log_prob + final.bonus});
      continue;
    }
    Group& group = groups[place];
    const double before = group.log_prob;
    group.log_prob = log_add(before, final.log_prob);
    if (before > kImpossible) group.score += group.log_prob - before;
  }
  std::stable_sort(groups.begin(), groups.end(),
                   [](const Group& a, const Group& b) { return a.score > b.score; });
  groups.resize(std::min(groups.size(), static_cast<size_t>(parts_.options.nbest)));
  std::vector<CtcHypothesis> made;
  for (const Group& group : groups) {
    made.push_back(text_of(group.best->prefix, group.best->word, false));
    made.back().log_prob = group.log_prob;
    made.back().score = group.score;
    made.back().lm_log_prob = group.best->lm_log_prob;
    made.back().is_complete = group.best->is_complete;
  }
  return made;
}

std::vector<CtcHypothesis> Beam::finish() {
  if (unit_ == LmUnit::kWords) {
    to_end_.clear();
    for (const Slot& slot : slots_) {
      const Prefix& prefix = arena_[slot.prefix];
      if (prefix.ends == kNone && num_ends(prefix) > 0) to_end_.push_back(slot.prefix);
    }
    request_ends(to_end_);
  }
  std::vector<Final> finals;
  for (const Slot& slot : slots_) add_finals(slot, finals);
  const auto is_incomplete = [](const Final& final) { return !final.is_complete; };
  if (!std::all_of(finals.begin(), finals.end(), is_incomplete))
    std::erase_if(finals, is_incomplete);
  for (Final& final : finals) end_final(final);
  std::stable_sort(finals.begin(), finals.end(), [](const Final& a, const Final& b) {
    return a.log_prob + a.bonus > b.log_prob + b.bonus;
  });
  std::vector<CtcHypothesis> made = merged(finals);
  reset();
  return made;
}

}  // namespace stretto::ctc
