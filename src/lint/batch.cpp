#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "config/schema.h"
#include "lint/rules.h"

namespace stretto::lint::rules {
namespace {

using config::number_text;

// 8,192 images against 256: as far as the linear rule was shown to hold.
constexpr double kProvenRatio = 32;
// Below a doubling every rule gives about the same rate.
constexpr double kNoticeableRatio = 2;
// Warm-ups below it are short for a large batch: Goyal's five epochs of 8,192 images are 782
// updates.
constexpr int64_t kShortWarmup = 500;
// The rate of Ott et al. 2018 at 402,000 tokens is half of this.
constexpr double kHighAdamRate = 2e-3;
constexpr double kHighSgdRate = 3.2;  // 0.1 at 256 images, times 32
// Determined, BERT with AdamW: an F1 of 87 with 1 micro-batch an update, 52 with 100; the advice is
// to stay below 16.
constexpr int64_t kManyMicroBatches = 16;
constexpr int64_t kShortRun = 1000;
constexpr double kFewUpdates = 10;
// Both are in docs/large-batches.md#accumulation-with-adam.
constexpr const char* kWhatRadamDoes =
    "; optim.name = \"radam\" helped in published runs, and lost more in ours of 300 updates or "
    "fewer";

bool one_of(const std::string& name, std::initializer_list<const char*> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string steps(int64_t n) {
  return counted(n, "update");
}

std::string times(double factor) {
  return fixed(factor, factor < 10 ? 1 : 0) + " times";
}

bool warmup_is_short(const Subject& s) {
  const int64_t run = s.e.train.max_steps;
  const double ratio = s.e.schedule.warmup_ratio;
  if (s.warmup >= kShortWarmup || ratio >= 0.1 || (ratio > 0 && !s.run.known())) return false;
  return run == 0 || s.warmup < run / 10;
}

// Updates that a second moment remembers.
double memory_of(double beta2) {
  return 1 / (1 - beta2);
}

// With fewer updates, the last gradient alone is more than a third of the run.
constexpr int64_t kFewestToForget = 3;
// Kingma and Ba 2015 advise it; Devlin et al. 2018 print it for fine-tuning runs of 200 updates and
// more. The moment of so short a run is a mean over all of its gradients, and sound as that.
constexpr double kPublishedBeta2 = 0.999;

bool forgets_in_time(double beta2, int64_t updates) {
  return memory_of(beta2) <= static_cast<double>(updates) / 3;
}

// About the largest beta2 that does, with few digits: 1 - beta2 has one. No less than is published.
double fitting_beta2(int64_t updates) {
  if (!forgets_in_time(kPublishedBeta2, updates)) return kPublishedBeta2;
  const double share = 3 / static_cast<double>(updates);
  double scale = 10;
  while (share * scale < 1) scale *= 10;
  double digit = std::ceil(share * scale);
  while (!forgets_in_time((scale - digit) / scale, updates)) ++digit;
  return (scale - digit) / scale;
}

}  // namespace

void linear_scaling_without_warmup(const Subject& s, Remarks& out) {
  if (s.scaling != "linear" || s.ratio <= kNoticeableRatio || s.warmup > 0) return;
  out.push_back({s.e.schedule.warmup_key(),
                 "the rate is scaled " + times(s.ratio) + " to " + number_text(s.peak_lr) +
                     " and stands there from the first update, when weights change fastest",
                 "rise to it over some hundreds to thousands of updates"});
}

void short_warmup(const Subject& s, Remarks& out) {
  if (!s.large() || s.e.optim.name == "radam" || !warmup_is_short(s)) return;
  if (s.scaling == "linear" && s.ratio > kNoticeableRatio && s.warmup == 0) {
    return;  // said by linear_scaling_without_warmup
  }
  out.push_back({s.e.schedule.warmup_key(),
                 "an update sees about " + tokens_text(s.batch) +
                     " tokens, and the rate is at its peak after " + steps(s.warmup),
                 "warm up over " + steps(kShortWarmup) +
                     " or more, or over a tenth of the run; optim.name = \"radam\" does without"});
}

void scaled_too_far(const Subject& s, Remarks& out) {
  if (s.scaling != "linear" || s.ratio <= kProvenRatio) return;
  out.push_back({"optim.reference_batch",
                 "the batch is " + times(s.ratio) + " that of optim.reference_batch (" +
                     tokens_text(s.reference) + " " + s.micro_batch.unit +
                     "); the linear rule was shown to hold up to " + number_text(kProvenRatio) +
                     " times, and to lose accuracy beyond",
                 "tune optim.lr at a batch nearer to this one and name that batch, or lower "
                 "train.update_freq"});
}

void high_rate_without_reference(const Subject& s, Remarks& out) {
  if (!s.large() || s.scaling != "none" || !s.rate_is_peak()) return;
  const bool adam = one_of(s.e.optim.name, {"adam", "adamw", "lazy_adam", "radam"});
  const double limit = adam ? kHighAdamRate : kHighSgdRate;
  if (!adam && s.e.optim.name != "sgd") return;
  if (s.e.optim.lr <= limit || (adam && s.e.optim.lr > 0.01))
    return;  // high_rate() says the latter
  out.push_back({"optim.lr",
                 number_text(s.e.optim.lr) + " for a batch of about " + tokens_text(s.batch) +
                     " tokens: a rate scaled by hand does not follow when train.update_freq or " +
                     s.micro_batch.key + " changes",
                 "give the rate of a small batch, with optim.reference_batch = its " +
                     s.micro_batch.key + " * train.update_freq, and optim.lr_scaling"});
}

void linear_scaling_of_adaptive(const Subject& s, Remarks& out) {
  if (!s.adaptive() || s.scaling != "linear" || s.ratio <= kNoticeableRatio) return;
  out.push_back({"optim.lr_scaling",
                 s.e.optim.name +
                     " divides by the root of the second moment, so its steps grow with "
                     "the root of the batch; linear scaling makes the rate " +
                     times(std::sqrt(s.ratio)) + " too large",
                 "optim.lr_scaling = \"sqrt\""});
}

void sqrt_scaling_of_sgd(const Subject& s, Remarks& out) {
  if (s.e.optim.name != "sgd" || s.scaling != "sqrt" || s.ratio <= kNoticeableRatio) return;
  out.push_back({"optim.lr_scaling",
                 "for sgd, k small steps and one step on a batch k times as large agree when the "
                 "rate grows k times; the root leaves it " +
                     times(std::sqrt(s.ratio)) + " too small",
                 "optim.lr_scaling = \"linear\", with a warm-up"});
}

void constant_warmup(const Subject& s, Remarks& out) {
  const auto& schedule = s.e.schedule;
  if (schedule.warmup != "constant" || s.warmup == 0) return;
  if (!s.large() && s.ratio < 4) return;
  out.push_back({"schedule.warmup",
                 "a constant warm-up ends in a jump from " + number_text(schedule.warmup_init_lr) +
                     " to " + number_text(s.rate_after_warmup()) +
                     ", at which the loss of a large batch spikes (25.9 % error against 23.7 % "
                     "with a gradual one)",
                 "schedule.warmup = \"gradual\""});
}

void coupled_decay(const Subject& s, Remarks& out) {
  const std::string& name = s.e.optim.name;
  if (s.e.optim.weight_decay <= 0 ||
      !one_of(name, {"adam", "lazy_adam", "adagrad", "rmsprop", "ftrl"}))
    return;
  out.push_back({"optim.weight_decay",
                 name + " adds it to the gradient, which its scaling undoes: weights with large "
                        "gradients hardly decay",
                 "optim.name = \"adamw\" takes it off the weight"});
}

void few_updates_per_epoch(const Subject& s, Remarks& out) {
  // Data that fit into one plain micro-batch, or one for each head, are a toy.
  const bool accumulates =
      s.e.train.update_freq > std::max<int64_t>(1, s.task.num_output_heads(s.e));
  const bool chosen = accumulates || s.large();
  if (s.context.files.epoch <= 0 || !chosen) return;
  const auto epoch = static_cast<double>(s.context.files.epoch);
  const double updates = epoch / s.batch;
  if (updates >= kFewUpdates) return;
  out.push_back({accumulates ? "train.update_freq" : s.micro_batch.key,
                 "one update takes a good part of the training " + s.task.name_of_data() +
                     ": about " + fixed(updates, 1) + " updates an epoch (some " +
                     tokens_text(epoch) + " " + s.micro_batch.unit + ", " + tokens_text(s.batch) +
                     " an update)",
                 "lower it: far above the gradient noise scale a larger batch only makes fewer "
                 "updates"});
}

void many_micro_batches(const Subject& s, Remarks& out) {
  const std::string& name = s.e.optim.name;
  const int64_t run = s.e.train.max_steps;
  if (s.e.train.update_freq <= kManyMicroBatches || !one_of(name, {"adam", "adamw", "lazy_adam"}))
    return;
  const std::string many = with_thousands(s.e.train.update_freq) + " micro-batches an update";
  const std::string stay = "stay at " + number_text(kManyMicroBatches) + " or below";
  if (run > 0 && run < kShortRun) {
    out.push_back({"train.update_freq",
                   many + " leave " + steps(run) + " to the run, and " + name +
                       " moves a weight by about the rate in each, however large the batch is",
                   stay + " for more updates" + kWhatRadamDoes});
  } else if (warmup_is_short(s)) {
    out.push_back({"train.update_freq",
                   "a run with " + many + " makes few of them, and with a warm-up of " +
                       steps(s.warmup) + " the first of " + name +
                       " follow a variance known from a few gradients",
                   "lengthen schedule.warmup_steps to " + number_text(kShortWarmup) +
                       " or a tenth of the run, or " + stay + kWhatRadamDoes});
  }
}

void long_second_moment(const Subject& s, Remarks& out) {
  const auto& o = s.e.optim;
  const int64_t updates = s.e.train.max_steps;
  if (!one_of(o.name, {"adam", "adamw", "lazy_adam", "radam", "lamb", "rmsprop"}) ||
      updates < kFewestToForget || o.beta2 <= kPublishedBeta2 ||
      forgets_in_time(o.beta2, updates)) {
    return;
  }
  const double fitting = fitting_beta2(updates);
  out.push_back({"optim.beta2",
                 "the second moment remembers about " + tokens_text(memory_of(o.beta2)) +
                     " updates, the run has " + with_thousands(updates) +
                     ": it never forgets the gradients of the start",
                 "optim.beta2 = " + number_text(fitting) + " remembers " +
                     tokens_text(memory_of(fitting)) +
                     "; a smaller batch leaves more updates to the run"});
}

void average_spans_warmup(const Subject& s, Remarks& out) {
  const auto& t = s.e.train;
  if (t.average_last < 2 || t.max_steps == 0) return;
  // Divides, since the product may overflow; too_few_to_average() reports it when nothing is left.
  if (t.save_every > t.max_steps / (t.average_last - 1)) return;
  const int64_t first = t.max_steps - t.save_every * (t.average_last - 1);
  if (first <= 0 || first >= s.warmup) return;
  out.push_back({"train.average_last",
                 "the average would begin with the checkpoint of update " + with_thousands(first) +
                     ", inside the warm-up of " + steps(s.warmup),
                 "lower train.average_last or train.save_every, so that only late weights are "
                 "averaged"});
}

void larc_with_clipping(const Subject& s, Remarks& out) {
  const auto& o = s.e.optim;
  const bool layer_wise = one_of(o.name, {"lars", "larc"});
  if ((!layer_wise && o.larc_eta <= 0) || o.clip_norm <= 0) return;
  out.push_back({"optim.clip_norm",
                 (layer_wise ? o.name : "optim.larc_eta") +
                     " already bounds the step of each tensor by its norm; clipping the "
                     "global norm first changes which tensors are bound",
                 "optim.clip_norm = 0, and " +
                     std::string(layer_wise ? "optim.trust_coefficient" : "optim.larc_eta") +
                     " to bound steps"});
}

void mostly_warmup(const Subject& s, Remarks& out) {
  if (!s.run.known() || s.warmup <= s.run.at_most / 4 * 3) return;
  out.push_back({s.e.schedule.warmup_key(),
                 "most of the run is warm-up: " + with_thousands(s.warmup) + " of " + s.run.text(),
                 "a tenth of the run is usual; a larger batch needs fewer updates of both"});
}

void parts_at_full_gain(const Subject& s, Remarks& out) {
  const std::string key = s.task.zero_gain_key(s.e);
  if (!s.large() || key.empty()) return;
  out.push_back(
      {key,
       "each part of a layer ends in a norm with a gain of 1, so that all layers act from "
       "the first update, which sees about " +
           tokens_text(s.batch) + " tokens",
       key + " = true: each part starts by adding nothing"});
}

// So few that they bound a micro-batch long before its tokens do, however long samples are.
void rate_of_tokens_for_few_samples(const Subject& s, Remarks& out) {
  const auto samples = s.task.samples_of_micro_batch(s.e);
  if (s.scaling == "none" || samples.most == 0 || samples.usual_size == 0) return;
  const double usual = static_cast<double>(samples.most) * samples.usual_size;
  const auto bound = static_cast<double>(s.micro_batch.value);
  if (bound < kNoticeableRatio * usual) return;
  out.push_back({samples.key,
                 counted(samples.most, "sample") + " are about " + tokens_text(usual) + " " +
                     s.micro_batch.unit +
                     ", and optim.lr is scaled for the most that a micro-batch may have, " +
                     tokens_text(bound),
                 "leave it out, or set optim.lr to the rate of these batches with "
                 "optim.lr_scaling = \"none\""});
}

// Every head has micro-batches of its own, and processes share those of an update.
void fewer_micro_batches_than_heads(const Subject& s, Remarks& out) {
  const int64_t heads = s.task.num_output_heads(s.e);
  if (s.e.train.update_freq >= heads) return;
  out.push_back({"train.update_freq",
                 "an update has " + counted(s.e.train.update_freq, "micro-batch") +
                     ", each of one of " + counted(heads, "head") +
                     ": the decoder of a head without one moves by its momentum alone, and the "
                     "encoder learns for the others",
                 "train.update_freq = " + std::to_string(heads) + " or more; a lower " +
                     s.micro_batch.key + " keeps the batch"});
}

}  // namespace stretto::lint::rules
