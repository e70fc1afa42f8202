#include "ctc/beam.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "ctc/log_add.h"

namespace stretto::ctc {
namespace {

/// Prefixes and states of the language model at which the first ones are thrown away that no
/// hypothesis begins with any more.
constexpr size_t kFirstCompaction = size_t{1} << 16;
constexpr uint32_t kRoot = text::LexiconTrie::kRoot;

}  // namespace

Beam::Beam(const DecoderParts& parts, decoding::TokenScorer* scorer)
    : parts_(parts), scorer_(scorer), unit_(parts.lm_unit) {
  if (scorer_ != nullptr) {
    unit_ = LmUnit::kLabels;
    labels_are_tokens_ = true;
  } else if (parts_.lm != nullptr) {
    own_scorer_ = std::make_unique<NgramScorer>(*parts_.lm);
    scorer_ = own_scorer_.get();
  }
  const CtcOptions& options = parts_.options;
  threshold_ = options.beam_threshold > 0 ? options.beam_threshold : -kImpossible;
  if (unit_ != LmUnit::kNone)
    most_gain_ = std::max(options.beta, 0.0) + std::max(options.unknown_score, 0.0);
  if (options.alpha < 0 || !parts_.hot_words.empty()) most_gain_ = -kImpossible;
  reset();
}

void Beam::reset() {
  arena_ = PrefixArena();
  slots_.assign(1, Slot{});
  slots_[0].blank = slots_[0].total = 0;
  frame_ = 0;
  compact_at_ = kFirstCompaction;
  ends_.clear();
  row_scores_.clear();
  row_next_.clear();
  free_rows_.clear();
  if (scorer_ != nullptr) {
    scorer_->keep({});
    arena_[0].lm_state = scorer_->start();
  }
  arena_[0].hot_state = parts_.hot_words.start();
  set_slots();
}

void Beam::push(const float* log_probs) {
  choose_labels(log_probs);
  keep_on(log_probs);
  if (unit_ == LmUnit::kWords) score_ends();
  if (unit_ == LmUnit::kLabels) score_rows();
  extend();
  select();
  ++frame_;
  if (arena_.size() > compact_at_ || (scorer_ != nullptr && scorer_->num_states() > compact_at_))
    compact();
}

void Beam::choose_labels(const float* log_probs) {
  const auto num_labels = static_cast<size_t>(parts_.num_labels());
  frame_labels_.resize(num_labels);
  std::iota(frame_labels_.begin(), frame_labels_.end(), 0);
  const auto most = static_cast<size_t>(parts_.options.beam_token);
  if (most > 0 && most < num_labels) {
    std::nth_element(frame_labels_.begin(), frame_labels_.begin() + static_cast<ptrdiff_t>(most),
                     frame_labels_.end(), [&](int32_t a, int32_t b) {
                       return log_probs[a] != log_probs[b] ? log_probs[a] > log_probs[b] : a < b;
                     });
    frame_labels_.resize(most);
    std::sort(frame_labels_.begin(), frame_labels_.end());
  }
  frame_scores_.assign(num_labels, kImpossible);
  frame_roots_.clear();
  boundary_best_ = kImpossible;
  const bool has_lexicon = parts_.has_lexicon();
  const int64_t separator = parts_.labels.separator;
  for (const int32_t label : frame_labels_) {
    const double score = double{log_probs[label]};
    frame_scores_[static_cast<size_t>(label)] = score;
    bool is_boundary = label == separator;
    if (has_lexicon && separator < 0) {
      frame_roots_.push_back(parts_.trie.child(kRoot, label));
      is_boundary = frame_roots_.back() != text::LexiconTrie::kNone;
    } else if (!has_lexicon) {
      is_boundary = is_boundary || parts_.labels.begins_word[static_cast<size_t>(label)];
    }
    if (is_boundary) boundary_best_ = std::max(boundary_best_, score);
  }
}

void Beam::note_time(Prefix& prefix, double arrival, const float* log_probs) const {
  const auto now = static_cast<int32_t>(frame_);
  if (arrival > prefix.arrival) {
    prefix.arrival = arrival;
    prefix.begin_frame = prefix.last_frame = now;
  } else if (prefix.last_frame + 1 == now &&
             log_probs[prefix.label] > log_probs[parts_.num_labels()]) {
    prefix.last_frame = now;
  }
}

/// Adds what comes from a prefix to its children among the slots, and marks them as such.
void Beam::link_children(const float* log_probs) {
  for (size_t i = 0; i < slots_.size(); ++i) {
    Slot& slot = slots_[i];
    Prefix& prefix = arena_[slot.prefix];
    if (prefix.parent == kNone) continue;
    double arrival = kImpossible;
    const Prefix& parent = arena_[prefix.parent];
    const double score = frame_scores_[static_cast<size_t>(prefix.label)];
    if (parent.slot != kNone && score > kImpossible) {
      Slot& from = slots_[parent.slot];
      arrival = (parent.label == prefix.label ? from.blank : from.total) + score;
      slot.next_sibling = from.first_child;
      from.first_child = static_cast<uint32_t>(i);
      from.child_labels |= uint64_t{1} << (static_cast<uint32_t>(prefix.label) % 64);
      slot.next_label = log_add(slot.next_label, arrival);
    }
    note_time(prefix, arrival, log_probs);
  }
}

void Beam::keep_on(const float* log_probs) {
  const double blank = double{log_probs[parts_.num_labels()]};
  for (Slot& slot : slots_) {
    const int32_t label = arena_[slot.prefix].label;
    slot.next_blank = slot.total + blank;
    slot.next_label = label >= 0 ? slot.label + double{log_probs[label]} : kImpossible;
    slot.first_child = slot.next_sibling = kNone;
    slot.child_labels = 0;
  }
  link_children(log_probs);
  best_ = kImpossible;
  for (Slot& slot : slots_) {
    const Prefix& prefix = arena_[slot.prefix];
    slot.next_total = log_add(slot.next_blank, slot.next_label);
    slot.score = slot.next_total + prefix.bonus + double{prefix.early};
    best_ = std::max(best_, slot.score);
  }
  cutoff_ = best_ - threshold_;
}

bool Beam::is_in_word(const Prefix& prefix) const {
  return prefix.label >= 0 && prefix.label != parts_.labels.separator;
}

bool Beam::ends_word(const Prefix& prefix, int32_t label) const {
  return is_in_word(prefix) && (label == parts_.labels.separator ||
                                parts_.labels.begins_word[static_cast<size_t>(label)]);
}

uint32_t Beam::num_ends(const Prefix& prefix) const {
  if (parts_.has_lexicon()) return static_cast<uint32_t>(parts_.trie.words(prefix.trie).size());
  return is_in_word(prefix) ? 1 : 0;
}

uint32_t Beam::word_of(const Prefix& prefix, uint32_t word_place) const {
  if (word_place == kNone || !parts_.has_lexicon()) return kNone;
  return parts_.trie.words(prefix.trie)[word_place];
}

/// Calls visit(label, place in the trie behind it, place among the words that end, or kNone).
template <class Visit>
void Beam::for_each_extension(const Prefix& prefix, const Visit& visit) const {
  if (!parts_.has_lexicon()) {
    for (const int32_t label : frame_labels_)
      visit(label, kRoot, ends_word(prefix, label) ? 0U : kNone);
    return;
  }
  for (const text::LexiconTrie::Child& child : parts_.trie.children(prefix.trie)) {
    if (frame_scores_[static_cast<size_t>(child.label)] > kImpossible)
      visit(child.label, child.node, kNone);
  }
  const auto num_words = static_cast<uint32_t>(parts_.trie.words(prefix.trie).size());
  const auto separator = static_cast<int32_t>(parts_.labels.separator);
  if (separator >= 0) {
    if (!(frame_scores_[static_cast<size_t>(separator)] > kImpossible)) return;
    if (prefix.trie == kRoot) visit(separator, kRoot, kNone);
    for (uint32_t i = 0; i < num_words; ++i) visit(separator, kRoot, i);
    return;
  }
  if (num_words == 0) return;
  for (size_t j = 0; j < frame_labels_.size(); ++j) {
    if (frame_roots_[j] == text::LexiconTrie::kNone) continue;
    for (uint32_t i = 0; i < num_words; ++i) visit(frame_labels_[j], frame_roots_[j], i);
  }
}

bool Beam::has_child(const Slot& slot, int32_t label, uint32_t word) const {
  if ((slot.child_labels >> (static_cast<uint32_t>(label) % 64) & 1) == 0) return false;
  for (uint32_t i = slot.first_child; i != kNone; i = slots_[i].next_sibling) {
    const Prefix& child = arena_[slots_[i].prefix];
    if (child.label == label && child.word == word) return true;
  }
  return false;
}

double Beam::early(uint32_t trie) const {
  return trie == kRoot ? 0.0 : double{parts_.trie.best_below(trie)};
}

double Beam::label_gain(int32_t label) const {
  const bool is_unknown = !labels_are_tokens_ && parts_.tokens[static_cast<size_t>(label)] < 0;
  return parts_.options.beta + (is_unknown ? parts_.options.unknown_score : 0.0);
}

/// The word that is under way, as its labels spell it.
std::string Beam::open_word(uint32_t prefix) const {
  std::vector<int32_t> labels;
  for (uint32_t at = prefix; is_in_word(arena_[at]); at = arena_[at].parent) {
    const int32_t label = arena_[at].label;
    labels.push_back(label);
    if (parts_.labels.begins_word[static_cast<size_t>(label)]) break;
  }
  std::string word;
  for (size_t i = labels.size(); i-- > 0;)
    word += parts_.labels.texts[static_cast<size_t>(labels[i])];
  return word;
}

/// Scores all words that may end behind these prefixes, which have no scores of them yet.
void Beam::request_ends(std::span<const uint32_t> prefixes) {
  queries_.clear();
  for (const uint32_t number : prefixes) {
    Prefix& prefix = arena_[number];
    prefix.ends = static_cast<uint32_t>(ends_.size());
    const uint32_t count = num_ends(prefix);
    for (uint32_t i = 0; i < count; ++i) {
      // A word of labels without a text is none: nothing is asked, and nothing added.
      WordEnd end;
      end.next = prefix.lm_state;
      int32_t token = -1;
      bool is_word = true;
      if (parts_.has_lexicon()) {
        token = parts_.tokens[word_of(prefix, i)];
      } else {
        const std::string word = open_word(number);
        is_word = !word.empty();
        if (const uint32_t index = parts_.lm->index(word); index != 0)
          token = static_cast<int32_t>(index);
      }
      if (is_word) {
        end.gain = parts_.options.beta + (token < 0 ? parts_.options.unknown_score : 0.0);
        end.next = kNone;
        queries_.push_back({prefix.lm_state, token});
      }
      ends_.push_back(end);
    }
  }
  answers_.resize(queries_.size());
  scorer_->score(queries_, answers_);
  size_t answered = 0;
  const size_t first = prefixes.empty() ? ends_.size() : arena_[prefixes.front()].ends;
  for (size_t i = first; i < ends_.size(); ++i) {
    if (ends_[i].next != kNone) continue;
    const decoding::TokenScore& answer = answers_[answered++];
    ends_[i].lm_log_prob = sane(answer.log_prob);
    ends_[i].gain += parts_.options.alpha * ends_[i].lm_log_prob;
    ends_[i].next = answer.next;
  }
}

void Beam::score_ends() {
  to_end_.clear();
  for (const Slot& slot : slots_) {
    const Prefix& prefix = arena_[slot.prefix];
    if (prefix.ends != kNone || num_ends(prefix) == 0) continue;
    if (!(slot.total + boundary_best_ + prefix.bonus + most_gain_ > cutoff_)) continue;
    to_end_.push_back(slot.prefix);
  }
  request_ends(to_end_);
}

/// Asks for what pending_ names.
void Beam::request_rows() {
  const auto num_labels = static_cast<size_t>(parts_.num_labels());
  queries_.clear();
  for (const Pending& pending : pending_) {
    Prefix& prefix = arena_[pending.prefix];
    if (prefix.row == kNone) {
      if (free_rows_.empty()) {
        free_rows_.push_back(static_cast<uint32_t>(row_scores_.size() / num_labels));
        row_scores_.resize(row_scores_.size() + num_labels);
        row_next_.resize(row_scores_.size());
      }
      prefix.row = free_rows_.back();
      free_rows_.pop_back();
      const auto first = row_scores_.begin() + static_cast<ptrdiff_t>(prefix.row * num_labels);
      std::fill_n(first, num_labels, std::numeric_limits<float>::quiet_NaN());
    }
    const int32_t token =
        labels_are_tokens_ ? pending.label : parts_.tokens[static_cast<size_t>(pending.label)];
    queries_.push_back({prefix.lm_state, token});
  }
  answers_.resize(queries_.size());
  scorer_->score(queries_, answers_);
  for (size_t i = 0; i < pending_.size(); ++i) {
    const size_t place =
        arena_[pending_[i].prefix].row * num_labels + static_cast<size_t>(pending_[i].label);
    row_scores_[place] = static_cast<float>(sane(answers_[i].log_prob));
    row_next_[place] = answers_[i].next;
  }
}

void Beam::score_rows() {
  const auto num_labels = static_cast<size_t>(parts_.num_labels());
  pending_.clear();
  for (const Slot& slot : slots_) {
    const Prefix& prefix = arena_[slot.prefix];
    for_each_extension(prefix, [&](int32_t label, uint32_t, uint32_t word_place) {
      const auto place = static_cast<size_t>(label);
      const double log_prob =
          (label == prefix.label ? slot.blank : slot.total) + frame_scores_[place];
      if (!(log_prob + prefix.bonus + most_gain_ > cutoff_)) return;
      if (prefix.row != kNone && !std::isnan(row_scores_[prefix.row * num_labels + place])) return;
      if (has_child(slot, label, word_of(prefix, word_place))) return;
      if (!pending_.empty() && pending_.back().prefix == slot.prefix &&
          pending_.back().label == label) {
        return;  // a further word that may end in front of it
      }
      pending_.push_back({slot.prefix, label});
    });
  }
  request_rows();
}

text::HotWords::Step Beam::hot_step(const Prefix& prefix, int32_t label, uint32_t word) const {
  const text::HotWords& hot_words = parts_.hot_words;
  text::HotWords::Step step{prefix.hot_state, 0};
  if (parts_.has_lexicon()) {
    return word == kNone ? step : hot_words.next(prefix.hot_state, parts_.lexicon[word].word + " ");
  }
  if (ends_word(prefix, label)) step = hot_words.next(prefix.hot_state, " ");
  if (label == parts_.labels.separator) return step;
  const text::HotWords::Step behind =
      hot_words.next(step.state, parts_.labels.texts[static_cast<size_t>(label)]);
  return {behind.state, step.gained + behind.gained};
}

/// Adds to a candidate's bonus what its label and the word in front of it are worth.
/// @return false = that was not asked for, since the beam excludes it
bool Beam::add_gain(const Prefix& prefix, Candidate& candidate) const {
  if (unit_ == LmUnit::kWords && candidate.word_place != kNone) {
    if (prefix.ends == kNone) return false;
    candidate.bonus += ends_[prefix.ends + candidate.word_place].gain;
  } else if (unit_ == LmUnit::kLabels) {
    if (prefix.row == kNone) return false;
    const size_t place = prefix.row * static_cast<size_t>(parts_.num_labels()) +
                         static_cast<size_t>(candidate.label);
    if (std::isnan(row_scores_[place])) return false;
    candidate.bonus +=
        parts_.options.alpha * double{row_scores_[place]} + label_gain(candidate.label);
  }
  return true;
}

void Beam::extend() {
  candidates_.clear();
  const bool has_hot_words = !parts_.hot_words.empty();
  for (size_t i = 0; i < slots_.size(); ++i) {
    const Slot& slot = slots_[i];
    const Prefix& prefix = arena_[slot.prefix];
    for_each_extension(prefix, [&](int32_t label, uint32_t trie, uint32_t word_place) {
      Candidate candidate;
      candidate.log_prob = (label == prefix.label ? slot.blank : slot.total) +
                           frame_scores_[static_cast<size_t>(label)];
      candidate.bonus = prefix.bonus;
      if (!(candidate.log_prob + candidate.bonus + most_gain_ > cutoff_) ||
          !(candidate.log_prob > kImpossible)) {
        return;
      }
      const uint32_t word = word_of(prefix, word_place);
      if (has_child(slot, label, word)) return;
      candidate.slot = static_cast<uint32_t>(i);
      candidate.label = label;
      candidate.trie = trie;
      candidate.word_place = word_place;
      if (!add_gain(prefix, candidate)) return;
      if (has_hot_words) {
        candidate.hot = hot_step(prefix, label, word);
        candidate.bonus += double{candidate.hot.gained};
      }
      candidate.score = candidate.log_prob + candidate.bonus + early(trie);
      if (!(candidate.score > cutoff_)) return;
      if (candidate.score > best_) {
        best_ = candidate.score;
        cutoff_ = best_ - threshold_;
      }
      candidates_.push_back(candidate);
    });
  }
}

uint32_t Beam::make_prefix(const Candidate& candidate) {
  const uint32_t parent = slots_[candidate.slot].prefix;
  const Prefix& from = arena_[parent];
  const uint32_t word = word_of(from, candidate.word_place);
  uint32_t number = arena_.find(parent, candidate.label, word);
  if (number == kNone) {
    Prefix prefix;
    prefix.parent = parent;
    prefix.label = candidate.label;
    prefix.word = word;
    prefix.depth = from.depth + 1;
    prefix.trie = candidate.trie;
    prefix.lm_state = from.lm_state;
    prefix.hot_state = candidate.hot.state;
    prefix.early = static_cast<float>(early(candidate.trie));
    prefix.bonus = candidate.bonus;
    prefix.lm_log_prob = from.lm_log_prob;
    if (unit_ == LmUnit::kWords && candidate.word_place != kNone) {
      const WordEnd& end = ends_[from.ends + candidate.word_place];
      prefix.lm_state = end.next;
      prefix.lm_log_prob += end.lm_log_prob;
    } else if (unit_ == LmUnit::kLabels) {
      const size_t place = from.row * static_cast<size_t>(parts_.num_labels()) +
                           static_cast<size_t>(candidate.label);
      prefix.lm_state = row_next_[place];
      prefix.lm_log_prob += double{row_scores_[place]};
    }
    number = arena_.add(prefix);
  }
  Prefix& prefix = arena_[number];
  if (candidate.log_prob > prefix.arrival) {
    prefix.arrival = candidate.log_prob;
    prefix.begin_frame = prefix.last_frame = static_cast<int32_t>(frame_);
  }
  return number;
}

void Beam::release_row(Prefix& prefix) {
  if (prefix.row == kNone) return;
  free_rows_.push_back(prefix.row);
  prefix.row = kNone;
}

void Beam::set_slots() {
  for (size_t i = 0; i < slots_.size(); ++i)
    arena_[slots_[i].prefix].slot = static_cast<uint32_t>(i);
}

void Beam::select() {
  ranked_.clear();
  const size_t num_slots = slots_.size();
  const auto rank = [&](double score, size_t place) {
    if (score >= cutoff_ && score > kImpossible)
      ranked_.push_back({score, static_cast<uint32_t>(place)});
  };
  for (size_t i = 0; i < num_slots; ++i) rank(slots_[i].score, i);
  for (size_t i = 0; i < candidates_.size(); ++i) rank(candidates_[i].score, num_slots + i);
  // Frames that are impossible altogether end no search.
  if (ranked_.empty()) ranked_.push_back({kImpossible, 0});
  const auto most = static_cast<size_t>(parts_.options.beam_size);
  if (ranked_.size() > most) {
    std::nth_element(ranked_.begin(), ranked_.begin() + static_cast<ptrdiff_t>(most), ranked_.end(),
                     [](const Ranked& a, const Ranked& b) {
                       return a.score != b.score ? a.score > b.score : a.place < b.place;
                     });
    ranked_.resize(most);
    std::sort(ranked_.begin(), ranked_.end(),
              [](const Ranked& a, const Ranked& b) { return a.place < b.place; });
  }
  next_slots_.clear();
  for (const Ranked& ranked : ranked_) {
    Slot next;
    if (ranked.place < num_slots) {
      const Slot& slot = slots_[ranked.place];
      next.prefix = slot.prefix;
      next.blank = slot.next_blank;
      next.label = slot.next_label;
      next.total = slot.next_total;
    } else {
      const Candidate& candidate = candidates_[ranked.place - num_slots];
      next.prefix = make_prefix(candidate);
      next.label = next.total = candidate.log_prob;
    }
    next_slots_.push_back(next);
  }
  for (const Slot& slot : slots_) arena_[slot.prefix].slot = kNone;
  slots_.swap(next_slots_);
  set_slots();
  for (const Slot& before : next_slots_) {
    if (arena_[before.prefix].slot == kNone) release_row(arena_[before.prefix]);
  }
}

void Beam::compact() {
  std::vector<uint32_t> kept;
  for (const Slot& slot : slots_) kept.push_back(slot.prefix);
  arena_.compact(kept);
  for (size_t i = 0; i < slots_.size(); ++i) slots_[i].prefix = kept[i];
  std::vector<uint32_t> states;
  for (uint32_t i = 0; i < arena_.size(); ++i) {
    arena_[i].ends = kNone;
    states.push_back(arena_[i].lm_state);
  }
  ends_.clear();
  std::fill(row_scores_.begin(), row_scores_.end(), std::numeric_limits<float>::quiet_NaN());
  compact_at_ = std::max(kFirstCompaction, size_t{2} * arena_.size());
  if (scorer_ == nullptr) return;
  scorer_->keep(states);
  for (uint32_t i = 0; i < arena_.size(); ++i) arena_[i].lm_state = states[i];
  compact_at_ = std::max(compact_at_, 2 * scorer_->num_states());
}

}  // namespace stretto::ctc
