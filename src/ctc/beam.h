#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ctc/decoder_parts.h"
#include "ctc/hypothesis.h"
#include "ctc/ngram_scorer.h"
#include "ctc/prefix_arena.h"
#include "decoding/token_scorer.h"
#include "text/ngram/hot_words.h"

namespace stretto::ctc {

/// Prefix beam search (Hannun et al. 2014), a frame at a time. A prefix that goes on has two
/// probabilities, of alignments that end with the blank and of those that end with its last label:
///
///     blank'(l) = (blank(l) + label(l)) p(blank)
///     label'(l) = label(l) p(c) + from(parent of l) p(c)            c the last label of l
///     from(l)   = blank(l) where l ends with c, else blank(l) + label(l)
///
/// Prefixes are ranked by log (blank + label) + what language model, lexicon and hot words add. A
/// word that is under way counts with the most that a word below its place in the lexicon would
/// add: scores of words are smeared over the trie.
///
/// What makes it fast: a prefix is made once and known by its number, so that nothing is copied and
/// equal prefixes meet by themselves; each word and label behind a prefix is scored once, when the
/// beam cannot exclude it; two logarithms of sums a prefix and frame.
class Beam {
 public:
  /// @param scorer  as of CtcSearch; null = that of the language model of `parts`, if it has one
  Beam(const DecoderParts& parts, decoding::TokenScorer* scorer);

  void push(const float* log_probs);  ///< [L + 1]
  int64_t num_frames() const { return frame_; }
  CtcHypothesis best_so_far() const;
  CtcHypothesis certain() const;
  void settle(int64_t before_frame);
  std::vector<CtcHypothesis> finish();

 private:
  static constexpr double kImpossible = -std::numeric_limits<double>::infinity();

  /// A prefix that goes on; log-probabilities.
  struct Slot {
    uint32_t prefix = 0;
    double blank = kImpossible, label = kImpossible, total = kImpossible;
    double next_blank = kImpossible, next_label = kImpossible, next_total = kImpossible;
    double score = kImpossible;                          ///< behind this frame
    uint32_t first_child = kNone, next_sibling = kNone;  ///< slots
    uint64_t child_labels = 0;  ///< a bit for each label modulo 64 that a child may have
  };
  /// A prefix that one label would make of another.
  struct Candidate {
    double score = 0;  ///< log_prob + bonus + early()
    double log_prob = 0, bonus = 0;
    uint32_t slot = 0;
    int32_t label = 0;
    uint32_t word_place = kNone;  ///< among the words that may end at the prefix
    uint32_t trie = 0;
    text::HotWords::Step hot;
  };
  struct Ranked {
    double score = 0;
    uint32_t place = 0;  ///< of slots, then of candidates
  };
  /// What a word adds that ends behind a prefix.
  struct WordEnd {
    double gain = 0, lm_log_prob = 0;
    uint32_t next = 0;
  };
  /// A label behind a prefix, whose score is asked for.
  struct Pending {
    uint32_t prefix = 0;
    int32_t label = 0;
  };
  /// A hypothesis of finish(), before it has its text.
  struct Final {
    uint32_t prefix = 0, word = kNone, lm_state = 0;
    double log_prob = 0, bonus = 0, lm_log_prob = 0;
    bool is_complete = true;
  };

  /// What the file of a model says may be anything: scores stay comparable.
  static double sane(float log_prob) {
    constexpr double kMost = 1e6;
    const double value{log_prob};
    return value >= -kMost && value <= kMost ? value : -kMost;
  }

  void reset();
  // A frame, in this order.
  void choose_labels(const float* log_probs);
  void keep_on(const float* log_probs);
  void score_ends();
  void score_rows();
  void extend();
  void select();
  void compact();

  template <class Visit>
  void for_each_extension(const Prefix& prefix, const Visit& visit) const;
  bool has_child(const Slot& slot, int32_t label, uint32_t word) const;
  void link_children(const float* log_probs);
  void note_time(Prefix& prefix, double arrival, const float* log_probs) const;
  bool add_gain(const Prefix& prefix, Candidate& candidate) const;
  text::HotWords::Step hot_step(const Prefix& prefix, int32_t label, uint32_t word) const;
  uint32_t make_prefix(const Candidate& candidate);
  void release_row(Prefix& prefix);
  void set_slots();

  // Words.
  bool is_in_word(const Prefix& prefix) const;
  bool ends_word(const Prefix& prefix, int32_t label) const;
  uint32_t num_ends(const Prefix& prefix) const;  ///< words that may end behind a prefix
  uint32_t word_of(const Prefix& prefix, uint32_t word_place) const;
  std::string open_word(uint32_t prefix) const;
  void request_ends(std::span<const uint32_t> prefixes);
  void request_rows();
  double early(uint32_t trie) const;
  double label_gain(int32_t label) const;

  // The end.
  size_t best_slot() const;
  void add_finals(const Slot& slot, std::vector<Final>& finals) const;
  void end_final(Final& final);
  std::vector<CtcHypothesis> merged(const std::vector<Final>& finals) const;
  std::vector<uint32_t> merge_key(const Final& final) const;
  CtcHypothesis text_of(uint32_t prefix, uint32_t last_word, bool whole_words) const;

  const DecoderParts& parts_;
  std::unique_ptr<NgramScorer> own_scorer_;
  decoding::TokenScorer* scorer_ = nullptr;
  LmUnit unit_ = LmUnit::kNone;
  bool labels_are_tokens_ = false;
  double threshold_ = 0;  ///< infinite = none
  double most_gain_ = 0;  ///< no token can add more

  PrefixArena arena_;
  std::vector<Slot> slots_, next_slots_;
  std::vector<Candidate> candidates_;
  std::vector<Ranked> ranked_;
  int64_t frame_ = 0;
  size_t compact_at_ = 0;

  // Of this frame.
  std::vector<int32_t> frame_labels_;  ///< by which prefixes may grow, in order
  std::vector<double> frame_scores_;   ///< [L]; impossible for the others
  std::vector<uint32_t>
      frame_roots_;  ///< by frame_labels_: first nodes of words, without separator
  double boundary_best_ = kImpossible;  ///< the likeliest label that may end a word
  double best_ = kImpossible, cutoff_ = kImpossible;

  std::vector<WordEnd> ends_;
  std::vector<uint32_t> to_end_;
  std::vector<Pending> pending_;
  std::vector<float> row_scores_;  ///< [rows, L] log-probabilities of tokens; NaN = not asked for
  std::vector<uint32_t> row_next_;
  std::vector<uint32_t> free_rows_;
  std::vector<decoding::TokenQuery> queries_;
  std::vector<decoding::TokenScore> answers_;
};

}  // namespace stretto::ctc
