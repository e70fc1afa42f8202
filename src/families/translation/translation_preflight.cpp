#include "families/translation/translation_preflight.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/text.h"
#include "data/length_batches.h"
#include "data/pairs/corpus_build.h"
#include "data/pairs/corpus_check.h"
#include "data/pairs/parallel_input.h"
#include "experiment/preflight_child.h"
#include "experiment/task_rules.h"
#include "families/translation/heads.h"
#include "families/translation/known_pairs.h"
#include "families/translation/training_text.h"
#include "families/translation/translation_options.h"
#include "families/translation/word_pairs.h"

namespace stretto::experiment {
namespace {

using data::Split;

Stage stage_of(Split split) {
  return split == Split::kTrain ? Stage::kTraining : Stage::kValidation;
}

/// The key that names a split's first input, or another side of it.
std::string key_of(const Head& head, Split split, const char* side = "_src") {
  const auto& files = split == Split::kTrain ? head.data.train_src : head.data.valid_src;
  return head.section + "." + data::name_of(split) + (files.empty() ? "_tsv" : side);
}

/// The first head with data, where there are several and an error concerns no head in particular.
Head first_head(const Experiment& e) {
  const auto heads = heads_of(e);
  return heads.empty() ? Head() : heads.front();
}

/// Notes the Error at which training would stop on a split's text, at the key of the side that is
/// at fault.
template <class Check>
void note_text_stop(Preflight& found, Stage stage, const Head& head, Split split,
                    const Check& look) {
  std::string key = key_of(head, split);
  note_stop(found, stage, key, [&] {
    try {
      look();
    } catch (const data::TargetError&) {
      key = key_of(head, split, "_tgt");
      throw;
    } catch (const data::SecondSourceError&) {
      key = key_of(head, split, "_src2");
      throw;
    }
  });
}

template <class Check>
void note_text_stop(Preflight& found, const Head& head, Split split, const Check& look) {
  note_text_stop(found, stage_of(split), head, split, look);
}

/// Micro-batches of an epoch that a head's pairs do not exceed, before filters.
int64_t most_batches_of(const Head& head, int64_t pairs) {
  // More than any corpus has, and it fits.
  const auto bounded = [](double number) { return std::llround(std::min(number, 1e15)); };
  const auto& d = head.data;
  const auto heaviest = std::max_element(d.train_weights.begin(), d.train_weights.end());
  const double weight = heaviest == d.train_weights.end() ? 1 : std::ceil(*heaviest);
  const int64_t samples = bounded(weight * static_cast<double>(pairs));
  const int64_t own =
      data::most_batches(samples, std::max(d.max_src_tokens, d.max_tgt_tokens),
                         {.max_rows = {d.max_tokens, d.max_tokens}, .max_samples = d.max_samples});
  // As data::mix_batches() repeats them.
  return std::max<int64_t>(own > 0 ? 1 : 0, bounded(head.repeat * static_cast<double>(own)));
}

/// The key that an error of making tokenizers is about.
/// @param side  whose text is at fault
std::string tokenizer_key(const Experiment& e, const std::string& what, const char* side = "_src") {
  const auto& options = translation_of(e).tokenizer;
  if (!text::names_tokenizer(options)) {
    const bool size = what.starts_with("tokenizer.vocab_size");
    return size ? "tokenizer.vocab_size" : key_of(first_head(e), Split::kTrain, side);
  }
  const std::array<std::pair<const char*, const std::string*>, 5> files{{
      {"tokenizer.model", &options.model},
      {"tokenizer.src_model", &options.src_model},
      {"tokenizer.tgt_model", &options.tgt_model},
      {"tokenizer.src_vocab", &options.src_vocab},
      {"tokenizer.tgt_vocab", &options.tgt_vocab},
  }};
  const char* first = "tokenizer.type";
  for (const auto& [key, path] : files) {
    if (path->empty()) continue;
    if (what.starts_with(*path)) return key;
    if (first == std::string("tokenizer.type")) first = key;
  }
  return first;
}

// Stops at too many unknown tokens; the share is not known for text that was not read to its end.
void look_at_unknown(const Experiment& e, const Head& head, Split split,
                     const text::TokenizerPair& tokenizers, const data::StillTime& still_time,
                     Preflight& found) {
  note_text_stop(found, head, split, [&] {
    const auto seen = data::count_pieces(head.data, split, tokenizers, still_time);
    if (!seen.look.unread.empty()) {
      found.unread.push_back({"data.max_unknown", "the tokens of " + seen.look.unread});
      return;
    }
    const std::string name = split == Split::kTrain ? "training text" : "validation text";
    require_known(head.called(name), seen.src, seen.tgt, tokenizers, e, /*warn=*/false);
  });
}

/// One look at an experiment, within its time.
class PairPreflight {
 public:
  PairPreflight(const Experiment& options, const std::vector<config::Problem>& known,
                const PreflightOptions& how)
      : e_(options), heads_(heads_of(options)), known_(known), how_(how), time_(how) {}

  Preflight run() {
    const bool named = names_tokenizer();
    const bool trains = trains_tokenizer();
    validation_lines();
    // Files are read fast, and a judgement of text needs little of it.
    if (named) tokenizers();
    lines(Split::kTrain);
    if (trains) tokenizers();
    unknown_tokens();
    shortlist();
    return finished();
  }

  Preflight run_on_files() {
    validation_lines();
    lines(Split::kTrain);
    if (names_tokenizer() && looks_at_tokenizers()) make_tokenizers();
    shortlist();
    return finished();
  }

 private:
  // First, since files of validation are short.
  void validation_lines() {
    lines(Split::kValid);
    num_validation_stops_ = static_cast<int64_t>(found_.stops.size());
  }

  // Micro-batches are those of all heads.
  Preflight finished() {
    // Training comes to the lines of its own text first: one cause may stop it at both.
    std::rotate(found_.stops.begin(), found_.stops.begin() + num_validation_stops_,
                found_.stops.end());
    const bool all = looks_at_all(Split::kTrain) && heads_read_ == heads_.size();
    found_.most_batches = all ? most_batches_ : 0;
    return std::move(found_);
  }

  bool names_tokenizer() const { return text::names_tokenizer(translation_of(e_).tokenizer); }

  /// Otherwise the tokenizer is named, or is that of the run that `train.init_from` names.
  bool trains_tokenizer() const { return !names_tokenizer() && !takes_tokenizer_of_other_run(e_); }

  bool is_known(const std::string& key) const { return config::is_unreliable(known_, key); }

  bool looks_at(const Head& head, Split split) const {
    if (!data::has_text(head.data, split)) return false;
    const std::string name = head.section + "." + data::name_of(split);
    for (const char* list : {"_src", "_src2", "_tgt", "_tsv"}) {
      if (is_known(name + list)) return false;
    }
    for (const char* column : {".src_column", ".src2_column", ".tgt_column"}) {
      if (is_known(head.section + column)) return false;
    }
    return !is_known("data.separator") && !is_known("data.invalid_utf8") &&
           !is_known("data.too_long") && !is_known("data.bad_samples");
  }

  // A tokenizer is trained on the text of all heads.
  bool looks_at_all(Split split) const {
    return !heads_.empty() &&
           heads_.size() == std::max<size_t>(1, translation_of(e_).model.heads.size()) &&
           std::all_of(heads_.begin(), heads_.end(),
                       [&](const Head& head) { return looks_at(head, split); });
  }
  bool looks_at_any(Split split) const {
    return std::any_of(heads_.begin(), heads_.end(),
                       [&](const Head& head) { return looks_at(head, split); });
  }

  bool looks_at_tokenizers() const {
    for (const char* key :
         {"type", "algorithm", "joint", "vocab_size", "character_coverage", "max_training_lines",
          "model", "src_model", "tgt_model", "src_vocab", "tgt_vocab"}) {
      if (is_known(std::string("tokenizer.") + key)) return false;
    }
    return names_tokenizer() || looks_at_all(Split::kTrain);
  }

  void leave(const std::string& key, const std::string& what) {
    found_.unread.push_back({key, what});
  }

  void note(const data::ReadExtent& look, const std::string& key) {
    if (!look.unread.empty()) leave(key, look.unread);
  }

  void lines(Split split) {
    for (const Head& head : heads_) {
      if (looks_at(head, split)) lines(head, split);
    }
  }

  void lines(const Head& head, Split split) {
    note_text_stop(found_, Stage::kFiles, head, split, [&] {
      const auto look = data::check_lines(head.data, split, [this] { return time_.is_left(); });
      note(look, key_of(head, split));
      if (split == Split::kTrain && look.unread.empty()) {
        ++heads_read_;
        most_batches_ += most_batches_of(head, look.pairs);
      }
      // A tokenizer that is trained on the text is the first to say that there is none.
      const bool trains = split == Split::kTrain && trains_tokenizer();
      if (look.pairs > 0 || !look.unread.empty() || trains) return;
      data::throw_empty_corpus({.inputs = data::inputs_of(head.data, split), .rules = {}}, {});
    });
  }

  void tokenizers() {
    if (!looks_at_tokenizers()) return;
    if (how_.full) return try_tokenizers();
    const std::string key = names_tokenizer() ? tokenizer_key(e_, "") : "tokenizer.vocab_size";
    const auto look = [this](Preflight& found) {
      found_ = {};
      try_tokenizers();
      found = found_;
    };
    if (look_in_child(time_.left(), look, found_)) return;
    leave(key,
          names_tokenizer()
              ? "whether it can be used, and whether it leaves anything of the text"
              : "whether the text allows for so many pieces: training a tokenizer takes longer");
  }

  // Loads or trains them, as training does. @return whether it could
  bool make_tokenizers() {
    try {
      pair_ = make_experiment_tokenizers(e_);
    } catch (const Error& error) {
      const char* side = dynamic_cast<const data::TargetError*>(&error) != nullptr         ? "_tgt"
                         : dynamic_cast<const data::SecondSourceError*>(&error) != nullptr ? "_src2"
                                                                                           : "_src";
      const std::string key = tokenizer_key(e_, error.what(), side);
      found_.stops.push_back(
          {Stage::kTokenizer, key, error.code(), error.what(), error.advice(), error.details()});
      return false;
    }
    return true;
  }

  // The same, and whether the filters leave anything.
  void try_tokenizers() {
    if (!make_tokenizers()) return;
    for (const Head& head : heads_) {
      for (const Split split : {Split::kTrain, Split::kValid}) {
        if (!looks_at(head, split)) continue;
        note_text_stop(found_, head, split, [&] {
          note(data::check_filters(head.data, split, pair_, [this] { return time_.is_left(); }),
               key_of(head, split));
        });
      }
    }
  }

  // The shares do not matter for text that training would stop at anyway. A tokenizer that is
  // trained on the text knows it, but for what tokenizer.character_coverage leaves out.
  void unknown_tokens() {
    const bool named = names_tokenizer();
    if ((!named && !how_.full) || is_known("data.max_unknown") || !looks_at_tokenizers()) return;
    if (!found_.stops.empty() || translation_of(e_).data.max_unknown >= 1) return;
    if (how_.full) {
      if (pair_.src) count_unknown();
      return;
    }
    if (!looks_at_any(Split::kTrain) && !looks_at_any(Split::kValid)) return;
    const auto look = [this](Preflight& found) {
      found_ = {};
      pair_ = make_experiment_tokenizers(e_);
      count_unknown();
      found = found_;
    };
    if (look_in_child(time_.left(), look, found_)) return;
    leave("data.max_unknown", "how many of the tokens are `<unk>`");
  }

  void shortlist() {
    const std::string& path = translation_of(e_).decode.shortlist;
    if (path.empty() || is_known("decode.shortlist")) return;
    note_stop(found_, Stage::kFiles, "decode.shortlist", [&] { read_word_pairs(path); });
  }

  void count_unknown() {
    // The text for validation is the shorter one.
    for (const Split split : {Split::kValid, Split::kTrain}) {
      for (const Head& head : heads_) {
        if (!looks_at(head, split)) continue;
        look_at_unknown(
            e_, head, split, pair_, [this] { return time_.is_left(); }, found_);
      }
    }
  }

  const Experiment& e_;
  const std::vector<Head> heads_;
  const std::vector<config::Problem>& known_;
  const PreflightOptions how_;
  const PreflightTimer time_;
  text::TokenizerPair pair_;          ///< once they are made
  size_t heads_read_ = 0;             ///< whose training text was read to its end
  int64_t most_batches_ = 0;          ///< of these
  int64_t num_validation_stops_ = 0;  ///< the first of found_.stops
  Preflight found_;
};

}  // namespace

Preflight translation_preflight(const Experiment& options,
                                const std::vector<config::Problem>& known,
                                const PreflightOptions& how) {
  return PairPreflight(options, known, how).run();
}

Preflight look_at_text_files(const Experiment& options, const std::vector<config::Problem>& known,
                             const PreflightOptions& how) {
  return PairPreflight(options, known, how).run_on_files();
}

void look_at_tokens(const Experiment& options, const text::TokenizerPair& tokenizers,
                    const data::StillTime& still_time, Preflight& found) {
  for (const Split split : {Split::kValid, Split::kTrain}) {
    for (const Head& head : heads_of(options)) {
      if (!data::has_text(head.data, split)) continue;
      const size_t before = found.stops.size();
      note_text_stop(found, head, split,
                     [&] { data::check_filters(head.data, split, tokenizers, still_time); });
      if (found.stops.size() > before) continue;
      look_at_unknown(options, head, split, tokenizers, still_time, found);
    }
  }
}

}  // namespace stretto::experiment
