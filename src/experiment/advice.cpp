#include "experiment/advice.h"

#include "base/text.h"

namespace stretto::experiment {
namespace {

/// Collects notes with the place of the key that they are about.
class Notes {
 public:
  explicit Notes(const config::Origins& origins) : origins_(origins) {}

  void add(const std::string& key, const std::string& what, const std::string& hint) {
    list.push_back({origins_.of(key), what, hint});
  }

  std::vector<config::Problem> list;

 private:
  const config::Origins& origins_;
};

void advise_validation(const Experiment& e, Notes& notes) {
  if (e.data.valid_src.empty() && e.data.valid_tsv.empty()) {
    notes.add("data.valid_src", "there is no validation text",
              "without it nobody sees over-fitting, and `best` is never known");
    return;
  }
  if (e.train.max_steps > 0 && e.eval.every > e.train.max_steps) {
    notes.add(
        "eval.every",
        "validates only at the end: the run has " + with_thousands(e.train.max_steps) + " updates",
        "lower it to see how training goes");
  }
  if (e.train.keep_best > 0 && e.eval.best_metric == "bleu" && e.eval.bleu_sentences > 0 &&
      e.eval.bleu_sentences < 500) {
    notes.add("eval.bleu_sentences",
              "`best` is chosen by the BLEU of " + with_thousands(e.eval.bleu_sentences) +
                  " sentences, which is mostly noise",
              "raise it to 500 or more, or use eval.best_metric = \"nll\"");
  }
}

void advise_schedule(const Experiment& e, Notes& notes) {
  const auto& s = e.schedule;
  const bool ends = s.name == "linear" || s.name == "cosine" || s.name == "polynomial";
  if (ends && s.total_steps > 0 && e.train.max_steps > s.total_steps) {
    notes.add("schedule.total_steps",
              "the schedule ends " + with_thousands(e.train.max_steps - s.total_steps) +
                  " updates before the run",
              "the rest is trained at schedule.min_lr = " + config::number_text(s.min_lr));
  }
  if (s.name == "inverse_sqrt" && s.warmup_steps == 0) {
    notes.add("schedule.warmup_steps", "inverse_sqrt without a warm-up starts at its steepest",
              "some hundreds to thousands of updates are usual");
  }
  if (e.optim.name != "sgd" && e.optim.lr > 0.01) {
    notes.add("optim.lr",
              "a peak of " + config::number_text(e.optim.lr) + " is high for " + e.optim.name,
              "values between 1e-4 and 3e-3 are usual");
  }
  if (e.optim.name == "adam" && e.optim.weight_decay > 0) {
    notes.add("optim.weight_decay", "adam adds it to the gradient, which its scaling undoes",
              "optim.name = \"adamw\" takes it off the weight");
  }
}

void advise_saving(const Experiment& e, Notes& notes) {
  if (e.train.max_steps > 0 && e.train.save_every > e.train.max_steps && e.train.max_steps > 5000) {
    notes.add("train.save_every", "saves only at the end of a long run",
              "what a crash costs is what was trained since the last checkpoint");
  }
  if (e.train.average_last > 0 && e.train.max_steps > 0 &&
      e.train.save_every * (e.train.average_last - 1) >= e.train.max_steps) {
    notes.add("train.average_last",
              "the run has fewer than " + with_thousands(e.train.average_last) + " checkpoints",
              "lower train.save_every");
  }
}

}  // namespace

std::vector<config::Problem> advise(const Experiment& options, const config::Origins& origins) {
  Notes notes(origins);
  advise_validation(options, notes);
  advise_schedule(options, notes);
  advise_saving(options, notes);
  return std::move(notes.list);
}

}  // namespace stretto::experiment
