#pragma once

#include <string>
#include <vector>

#include "config/schema.h"
#include "experiment/scaled_rate.h"
#include "experiment/task_rules.h"
#include "lint/lint.h"

/// Inside of the linter: what a rule sees, and the rules by file. A rule is a function that adds
/// a finding or does nothing; lint.cpp lists them with their codes and sources.
namespace stretto::lint {

/// Updates of a run: train.max_steps, or what train.max_epochs leaves of them by the size of the
/// data. That guess may be off twofold, hence two bounds; both are 0 when neither is known.
struct RunLength {
  int64_t at_least = 0, at_most = 0;
  std::string data = {};  ///< whose size it is guessed from: "text"

  bool known() const { return at_most > 0; }
  bool guessed() const { return at_least != at_most; }
  std::string text() const;  ///< "9,000 updates", or "about 30 updates (guessed …)"
};

/// What all rules read, worked out once.
struct Subject : experiment::ScaledRate {
  const experiment::TaskRules& task;  ///< of the family: all that is known of it
  const LintContext& context;
  RunLength run;
  int64_t warmup = 0;  ///< updates; of schedule.warmup_ratio guessed where `run` is

  /// Throws std::invalid_argument for a family that is not known.
  Subject(const experiment::Experiment& options, const LintContext& context);
  Subject(const experiment::Experiment& options, const experiment::TaskRules& task,
          const LintContext& context);

  /// What the family validates with.
  experiment::ValidationData validation_data() const;
  /// A batch of tokens at which the papers saw trouble without a warm-up; no other is.
  bool large() const;
  bool adaptive() const;  ///< steps divided by a second moment: adam, adamw, …
};

/// What one rule has to say; the table adds the code, and the source where the family has none.
struct Remark {
  std::string key, reason, fix;
  std::string source = {};
};
using Remarks = std::vector<Remark>;
using LintRule = void (*)(const Subject&, Remarks&);

/// Tokens in an update, as micro-batches count them, from which a batch counts as large: four times
/// the 25,000 of Vaswani et al. 2017 and of the baseline of Ott et al. 2018.
inline constexpr double kLargeBatch = 100'000;

/// "25,000"
std::string tokens_text(double tokens);

namespace rules {

/// Whether anything reads a key of the subject's schema, as the keys are that choose. See
/// unread.cpp.
bool is_read(const Subject& s, const config::Schema& schema, const config::Key& key);

// batch.cpp: batch, rate, warm-up, decay
void linear_scaling_without_warmup(const Subject&, Remarks&);
void short_warmup(const Subject&, Remarks&);
void scaled_too_far(const Subject&, Remarks&);
void high_rate_without_reference(const Subject&, Remarks&);
void linear_scaling_of_adaptive(const Subject&, Remarks&);
void sqrt_scaling_of_sgd(const Subject&, Remarks&);
void constant_warmup(const Subject&, Remarks&);
void coupled_decay(const Subject&, Remarks&);
void few_updates_per_epoch(const Subject&, Remarks&);
void many_micro_batches(const Subject&, Remarks&);
void long_second_moment(const Subject&, Remarks&);
void average_spans_warmup(const Subject&, Remarks&);
void larc_with_clipping(const Subject&, Remarks&);
void mostly_warmup(const Subject&, Remarks&);
void parts_at_full_gain(const Subject&, Remarks&);
void rate_of_tokens_for_few_samples(const Subject&, Remarks&);
void fewer_micro_batches_than_heads(const Subject&, Remarks&);

// decay.cpp
void decay_of_vectors(const Subject&, Remarks&);

// batch_norm.cpp
void few_rows_to_normalise(const Subject&, Remarks&);
void scaling_of_synchronised(const Subject&, Remarks&);
void nothing_to_synchronise(const Subject&, Remarks&);

// layer_norm.cpp
void few_units_to_norm(const Subject&, Remarks&);

// machine.cpp: precision, processes
void half_without_loss_scale(const Subject&, Remarks&);
void static_scale_too_large(const Subject&, Remarks&);
void scale_without_half(const Subject&, Remarks&);
void half_precision_wire(const Subject&, Remarks&);
void tiny_buckets(const Subject&, Remarks&);
void idle_processes(const Subject&, Remarks&);

// run.cpp: validation, schedule, loss, saving
void no_validation(const Subject&, Remarks&);
void validates_only_at_the_end(const Subject&, Remarks&);
void noisy_best(const Subject&, Remarks&);
void validates_all_the_time(const Subject&, Remarks&);
void schedule_ends_early(const Subject&, Remarks&);
void schedule_never_ends(const Subject&, Remarks&);
void steep_start(const Subject&, Remarks&);
void high_rate(const Subject&, Remarks&);
void heavy_smoothing(const Subject&, Remarks&);
void pulls_equal_passes(const Subject&, Remarks&);
void saves_only_at_the_end(const Subject&, Remarks&);
void too_few_to_average(const Subject&, Remarks&);
void nothing_to_roll_back_to(const Subject&, Remarks&);

// unread.cpp
void unread_keys(const Subject&, Remarks&);
void nothing_to_be_lazy_with(const Subject&, Remarks&);
void noise_on_frozen_tensors(const Subject&, Remarks&);

}  // namespace rules
}  // namespace stretto::lint
