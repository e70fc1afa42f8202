#include <algorithm>
#include <array>
#include <cmath>

#include "base/text.h"
#include "config/paths.h"
#include "config/schema.h"
#include "experiment/experiment_schema.h"
#include "experiment/schedule_length.h"
#include "lint/rules.h"

namespace stretto::lint::rules {
namespace {

bool validates(const Subject& s) {
  return s.validation_data().there;
}

// The update at which the schedule ends; 0 when it has no end, or where the run is not known.
int64_t end_of(const Subject& s) {
  if (!s.e.schedule.decays_to_an_end() || !s.run.known()) return 0;
  return experiment::schedule_length(s.e);
}

// Where the classes are not known; with 50,000 of them the rule below says nearly the same.
constexpr double kHeavySmoothing = 0.3;
// The rule advises it, though with two or three classes it costs more than a third of blind
// guessing.
constexpr double kUsualSmoothing = 0.1;

// Loss of a model that predicts the smoothed targets exactly: their entropy, with 1 - smoothing for
// the right entry and an equal share of the rest for each other one.
double smoothed_floor(double smoothing, int64_t entries) {
  if (smoothing <= 0) return 0;
  const double other = smoothing / static_cast<double>(entries - 1);
  const double right = smoothing < 1 ? (1 - smoothing) * std::log(1 - smoothing) : 0;
  return -right - smoothing * std::log(other);
}

// Whether training drops anything by chance, so that two passes over one batch differ: what is
// declared as some dropout or zoneout, of any part, is above 0 and is read. The layers that
// layer_drop leaves out are those of an update: both passes have the same.
bool drops_anything(const Subject& s) {
  experiment::Experiment present = s.e;
  const auto schema = experiment::experiment_schema(present);
  return std::any_of(schema.keys.begin(), schema.keys.end(), [&](const config::Key& key) {
    const auto* const* share = std::get_if<double*>(&key.value);
    const std::string name = config::last_name(key.path);
    const bool drops =
        name.find("dropout") != std::string::npos || name.find("zoneout") != std::string::npos;
    return share != nullptr && drops && **share > 0 && is_read(s, schema, key);
  });
}

// At most 0.5 / sqrt(n): with 20 samples up to 11.2 points.
std::string standard_error_text(const experiment::ScoreNoise& noise, int64_t samples) {
  if (!noise.is_share) return "";
  return ": its standard error is up to " + fixed(50 / std::sqrt(static_cast<double>(samples)), 1) +
         " points";
}

std::string samples_wanted(const experiment::ScoredSamples& samples,
                           const experiment::ScoreNoise& noise) {
  if (samples.is_number) return "raise it to " + with_thousands(noise.fewest) + " or more";
  return "give " + counted(noise.fewest, samples.unit) + " or more";
}

// The first score that has no such bound.
std::string other_metric(const std::vector<experiment::ScoreSpec>& scores) {
  const auto calm = std::ranges::find_if(
      scores, [](const experiment::ScoreSpec& score) { return score.noise.fewest == 0; });
  return calm == scores.end() ? "" : ", or use eval.best_metric = \"" + calm->name() + "\"";
}

}  // namespace

void no_validation(const Subject& s, Remarks& out) {
  const auto data = s.validation_data();
  if (data.there || data.keys.empty()) return;
  out.push_back({data.keys.front(), "there is no " + data.name,
                 "without it nobody sees over-fitting, and `best` is never known"});
}

void validates_only_at_the_end(const Subject& s, Remarks& out) {
  if (!validates(s) || s.e.train.max_steps == 0 || s.e.eval.every <= s.e.train.max_steps) return;
  out.push_back({"eval.every",
                 "validates only at the end: the run has " + counted(s.e.train.max_steps, "update"),
                 "lower it to see how training goes"});
}

void noisy_best(const Subject& s, Remarks& out) {
  if (!validates(s) || s.e.train.keep_best == 0) return;
  const auto scores = experiment::ranking_scores(s.task.scores(s.e));
  const auto best = std::ranges::find(scores, s.e.eval.best_metric, &experiment::ScoreSpec::name);
  const auto samples = s.task.scored_samples(s.e, s.context.files);
  if (best == scores.end() || samples.count == 0) return;
  const int64_t most = samples.is_guess ? 2 * samples.count : samples.count;
  if (most >= best->noise.fewest) return;
  out.push_back({samples.key,
                 "`best` is chosen by the " + best->words() + " of " +
                     (samples.is_guess ? "about " : "") + counted(samples.count, samples.unit) +
                     ", which is mostly noise" + standard_error_text(best->noise, samples.count),
                 samples_wanted(samples, best->noise) + other_metric(scores), best->noise.source});
}

void validates_all_the_time(const Subject& s, Remarks& out) {
  if (!validates(s) || s.e.eval.every >= 20) return;
  if (s.run.known() && s.run.at_least <= 1000) return;
  out.push_back({"eval.every",
                 std::string(s.run.known() ? "a long run" : "a run") + " that validates every " +
                     (s.e.eval.every == 1 ? "update" : counted(s.e.eval.every, "update")) +
                     " may spend more time on validating than on training",
                 "some hundreds to thousands of updates are usual"});
}

void schedule_ends_early(const Subject& s, Remarks& out) {
  const auto& schedule = s.e.schedule;
  const int64_t end = end_of(s);
  if (end == 0 || s.run.at_least <= end) return;
  const bool tri = schedule.name == "tri_stage";
  const double rest = tri ? schedule.final_scale * s.peak_lr : schedule.min_lr;
  const std::string where =
      s.run.guessed() ? "at update " + with_thousands(end) + ", and the run has " + s.run.text()
                      : counted(s.run.at_least - end, "update") + " before the run";
  out.push_back({"schedule.total_steps", "the schedule ends " + where,
                 "the rest is trained at a rate of " + config::number_text(rest)});
}

void schedule_never_ends(const Subject& s, Remarks& out) {
  const int64_t end = end_of(s), run = s.run.at_most;
  if (end <= run || end - run <= run / 100) return;
  const std::string where =
      s.run.guessed()
          ? "after " + s.run.text() + ", before the schedule ends at " + with_thousands(end)
          : counted(end - run, "update") + " before the schedule ends";
  out.push_back(
      {"schedule.total_steps", "the run stops " + where + ", at a rate that is still high",
       s.run.guessed() ? "lower it, or give the run train.max_steps and set this to 0, "
                         "which follows them"
                       : "0 = train.max_steps; a larger batch needs fewer updates of both"});
}

void steep_start(const Subject& s, Remarks& out) {
  if (s.e.schedule.name != "inverse_sqrt" || s.warmup > 0) return;
  out.push_back({s.e.schedule.warmup_key(), "inverse_sqrt without a warm-up starts at its steepest",
                 "some hundreds to thousands of updates are usual"});
}

void high_rate(const Subject& s, Remarks& out) {
  static constexpr std::array kNames{"adam", "adamw", "lazy_adam", "radam"};
  const std::string& name = s.e.optim.name;
  if (std::find(kNames.begin(), kNames.end(), name) == kNames.end()) return;
  if (!s.rate_is_peak() || s.peak_lr <= 0.01) return;
  out.push_back({"optim.lr", "a peak of " + config::number_text(s.peak_lr) + " is high for " + name,
                 "values between 1e-4 and 3e-3 are usual"});
}

void heavy_smoothing(const Subject& s, Remarks& out) {
  const auto smoothing = s.task.label_smoothing(s.e, s.context.files);
  if (smoothing.share <= kUsualSmoothing) return;
  const std::string share = config::number_text(smoothing.share) + " of the probability goes to ";
  if (smoothing.classes < 2) {
    if (smoothing.share <= kHeavySmoothing) return;
    out.push_back({smoothing.key, share + "all other " + smoothing.many, "0.1 is usual"});
    return;
  }
  const double floor = smoothed_floor(smoothing.share, smoothing.classes);
  const double guessing = std::log(static_cast<double>(smoothing.classes));
  if (floor <= guessing / 3) return;
  const std::string others = smoothing.classes == 2
                                 ? "the other " + smoothing.one
                                 : "all " + counted(smoothing.classes - 1, "other " + smoothing.one,
                                                    "other " + smoothing.many);
  out.push_back({smoothing.key,
                 share + others + ": the loss cannot fall below " + fixed(floor, 2) +
                     ", and guessing blindly costs " + fixed(guessing, 2),
                 "0.1 is usual"});
}

void pulls_equal_passes(const Subject& s, Remarks& out) {
  const std::string key = s.task.two_passes_key(s.e);
  if (key.empty() || drops_anything(s)) return;
  out.push_back({key,
                 "R-Drop pulls two passes together that are equal, since nothing of the model is "
                 "dropped: an update costs twice as much and is the same",
                 "a dropout above 0 (model.dropout = 0.1, say), or " + key + " = 0"});
}

void saves_only_at_the_end(const Subject& s, Remarks& out) {
  const auto& t = s.e.train;
  if (t.max_steps <= 5000 || t.save_every <= t.max_steps) return;
  out.push_back({"train.save_every", "saves only at the end of a long run",
                 "what a crash costs is what was trained since the last checkpoint"});
}

void too_few_to_average(const Subject& s, Remarks& out) {
  const auto& t = s.e.train;
  if (t.average_last < 2 || t.max_steps == 0) return;
  if (t.save_every < (t.max_steps - 1) / (t.average_last - 1) + 1) return;
  out.push_back({"train.average_last",
                 "the run has fewer than " + with_thousands(t.average_last) + " checkpoints",
                 "lower train.save_every"});
}

// A rollback needs a checkpoint that a finite update followed, and then so many failures.
void nothing_to_roll_back_to(const Subject& s, Remarks& out) {
  const auto& t = s.e.train;
  if (t.forensics.policy != "rollback" || !s.run.known()) return;
  const int64_t failures = t.forensics.stop_after;
  const auto in_time = [&](int64_t step) { return s.run.at_most - step > failures; };
  if (in_time(t.save_every)) return;
  // A new best is saved where it is found, but it is not known whether there will be another.
  const bool only_best = validates(s) && t.keep_best > 0 && in_time(s.e.eval.every);
  out.push_back(
      {"train.save_every",
       std::string("a rollback has ") + (only_best ? "only the best of validation" : "nothing") +
           " to go back to: the run has " + s.run.text() +
           ", its first regular checkpoint is due at update " + with_thousands(t.save_every) +
           ", and the policy acts after " + with_thousands(failures) +
           (failures == 1 ? " failed update" : " failed updates in a row"),
       "save more often, or lower train.forensics.stop_after"});
}

}  // namespace stretto::lint::rules
