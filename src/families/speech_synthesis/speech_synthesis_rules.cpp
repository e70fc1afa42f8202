#include "families/speech_synthesis/speech_synthesis_rules.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "audio/griffin_lim.h"
#include "base/error.h"
#include "base/text.h"
#include "data/speech/speech_set.h"
#include "data/speech/transcripts.h"
#include "experiment/num_threads.h"
#include "experiment/preflight.h"
#include "experiment/rules.h"
#include "families/audio/preflight_tokenizer.h"
#include "families/speech_synthesis/speakers.h"
#include "families/speech_synthesis/speech_synthesis_display.h"
#include "families/speech_synthesis/speech_synthesis_options.h"
#include "families/speech_synthesis/speech_synthesis_taken.h"
#include "models/synthesis/synthesis_conflicts.h"
#include "text/target_text.h"

namespace stretto::experiment {
namespace {

// What can be looked at within the second that `check` may take.
constexpr int64_t kFewClips = 2000;

void check_frames(RuleCheck& c) {
  const auto& features = synthesis_of(c.e).features;
  const auto conflicts = audio::feature_conflicts(features, "features");
  for (const auto& conflict : conflicts) c.wrong(conflict.keys, conflict.what, conflict.hint);
  if (!conflicts.empty()) return;
  if (features.kind != "log_mel") {
    c.wrong({"features.kind"}, "a model that speaks learns from mel bands",
            "use \"log_mel\"; model.spectrum says whether it writes magnitudes");
    return;
  }
  const std::string obstacle = audio::inversion_obstacle(features);
  if (obstacle.empty()) return;
  c.wrong({"features.normalise", "features.dialect", "features.compression", "features.edges"},
          "no sound can be made of these frames: " + obstacle,
          "see features.normalise = \"none\" and features.dialect = \"librosa\"");
}

class SynthesisPreflight {
 public:
  SynthesisPreflight(const Experiment& experiment, const std::vector<config::Problem>& known,
                     const PreflightOptions& how)
      : experiment_(experiment), own_(synthesis_of(experiment)), known_(known), how_(how) {}

  Preflight run() {
    const bool in_doubt = std::any_of(known_.begin(), known_.end(), [](const auto& problem) {
      return problem.key.starts_with("data.") && problem.key != "data.train" &&
             problem.key != "data.valid" && problem.key != "data.test";
    });
    if (in_doubt) return {};
    look_at_text();
    look("data.train", Stage::kTraining, own_.data.train, [&](const auto& clips) {
      training_ = clips;
      speakers_ = speakers_in(*clips);
      found_.most_batches = clips->size();
      if (const auto left = clips->outside_limits(); left.count() > 0) {
        found_.doubts.push_back({"data.train", "left out: " + left.text(own_.data),
                                 "see data.min_seconds and data.max_seconds"});
      }
      open_tokenizer();
      look_at_symbols("data.train", *clips);
    });
    look("data.valid", Stage::kValidation, own_.data.valid, [&](const auto& clips) {
      look_at_symbols("data.valid", *clips);
      if (!training_) return;
      speaker_numbers(*clips, speakers_);
      const std::string shared = data::shared_sounds_text(*training_, *clips);
      if (!shared.empty()) {
        found_.doubts.push_back({"data.valid", shared, data::kSharedSoundsAdvice});
      }
    });
    return std::move(found_);
  }

 private:
  bool is_text_in_doubt() const {
    return std::any_of(known_.begin(), known_.end(),
                       [](const auto& problem) { return problem.key.starts_with("tokenizer."); });
  }

  // One that is named, or made at once. Another run's is known when training begins.
  void open_tokenizer() {
    if (is_text_in_doubt() || !experiment_.train.init_from.empty()) return;
    if (!is_tokenizer_at_hand(own_.tokenizer, how_, found_)) return;
    tokenizer_ =
        preflight_tokenizer(own_.tokenizer, training_, static_cast<uint64_t>(experiment_.run.seed),
                            own_.data.cache_dir, how_);
  }

  // Characters that the tokenizer lacks, and texts of which nothing is left.
  void look_at_symbols(const std::string& key, const data::SpeechSet& clips) {
    if (!tokenizer_) return;
    const auto texts =
        data::encode_transcripts(clips, own_.tokenizer, *tokenizer_, num_threads(experiment_));
    for (const auto& remark : texts.remarks(clips)) {
      found_.doubts.push_back({key, remark, "see tokenizer.normalise and tokenizer.alphabet"});
    }
    if (!texts.samples.ids.empty()) return;
    throw Error(ExitCode::kBadData, key + ": no clip has a text that can be used",
                "check tokenizer.alphabet, tokenizer.normalise and tokenizer.unknown");
  }

  // Rules and pronunciations.
  void look_at_text() {
    if (is_text_in_doubt()) return;
    note_stop(found_, Stage::kTokenizer,
              own_.tokenizer.lexicon.empty() ? "tokenizer.normalise" : "tokenizer.lexicon",
              [&] { text::TargetText{own_.tokenizer}; });
  }

  bool is_quick(const std::string& key, const std::vector<std::string>& paths) const {
    const auto count = data::count_utterances(own_.data, paths, key);
    return count && *count <= kFewClips;
  }

  template <class Take>
  void look(const std::string& key, Stage stage, const std::vector<std::string>& paths,
            const Take& take) {
    if (paths.empty() || config::is_unreliable(known_, key)) return;
    note_stop(found_, stage, key, [&] {
      if (!how_.full && !is_quick(key, paths)) {
        found_.unread.push_back({key, "the clips and their texts"});
        return;
      }
      const auto clips = data::open_speech(
          own_.data, key, paths, how_.keeps ? data::CacheUse::kKeeps : data::CacheUse::kNone);
      if (clips->left_out().count > 0) {
        found_.doubts.push_back(
            {key, "left out: " + clips->left_out().text(), "mend them, or see data.bad_samples"});
      }
      take(clips);
    });
  }

  const Experiment& experiment_;
  const SpeechSynthesisOptions& own_;
  const std::vector<config::Problem>& known_;
  const PreflightOptions how_;
  std::shared_ptr<const data::SpeechSet> training_;
  std::shared_ptr<const text::Tokenizer> tokenizer_;  ///< null: it is not known yet
  std::optional<data::Labels> speakers_;
  Preflight found_;
};

// 0 where the files do not tell it, or are missing, which `check` tells elsewhere.
int64_t known_clips(const data::SpeechDataOptions& data, const std::vector<std::string>& paths,
                    const std::string& key) {
  try {
    return data::count_utterances(data, paths, key).value_or(0);
  } catch (const Error&) {
    return 0;
  }
}

class SpeechSynthesisRules final : public TaskRules {
 public:
  void check_model(RuleCheck& check) const override {
    for (const auto& conflict : models::option_conflicts(synthesis_of(check.e).model)) {
      check.wrong(conflict.keys, conflict.what, conflict.hint);
    }
    check_frames(check);
  }

  void check_data(RuleCheck& check) const override {
    const auto& data = synthesis_of(check.e).data;
    if (data.commands.has_drawn_classes()) {
      check.wrong({"data.commands.set"},
                  "`unknown` and `silence` are classes, and no texts that anybody says",
                  "use another set");
    }
    if (data.max_seconds > 0 && data.max_seconds <= data.min_seconds) {
      check.wrong({"data.max_seconds", "data.min_seconds"},
                  "no clip is longer than " + shortest(data.min_seconds) +
                      " seconds and shorter than " + shortest(data.max_seconds),
                  "raise it, or lower data.min_seconds");
    }
  }

  void check_training(RuleCheck& check) const override {
    if (!synthesis_of(check.e).data.train.empty()) return;
    check.wrong({"data.train"}, "there are no clips for training", "name folders or manifests");
  }

  Preflight look_at_data(const Experiment& experiment, const std::vector<config::Problem>& known,
                         const PreflightOptions& how) const override {
    return SynthesisPreflight(experiment, known, how).run();
  }
  Preflight look_at_files(const Experiment& experiment, const std::vector<config::Problem>& known,
                          const PreflightOptions& how) const override {
    return SynthesisPreflight(experiment, known, how).run();
  }

  // Headers of few clips; a start over many looks at them when it has told of itself.
  void prepare_data(const Experiment& experiment) const override {
    const auto& data = synthesis_of(experiment).data;
    for (const auto* paths : {&data.train, &data.valid}) {
      const std::string key = paths == &data.train ? "data.train" : "data.valid";
      const int64_t count = paths->empty() ? 0 : known_clips(data, *paths, key);
      if (count > 0 && count <= kFewClips) data::open_speech(data, key, *paths);
    }
  }

  std::vector<ScoreSpec> scores(const Experiment& /*experiment*/) const override {
    return tasks::speech_synthesis_scores();
  }
  ValidationData validation_data(const Experiment& experiment) const override {
    return {.there = !synthesis_of(experiment).data.valid.empty(),
            .name = "clips for validation",
            .keys = {"data.valid"},
            .remedy = "set data.valid"};
  }
  BatchBound micro_batch(const Experiment& experiment) const override {
    const double seconds = synthesis_of(experiment).data.batch_seconds;
    return {.key = "data.batch_seconds",
            .value = std::max<int64_t>(1, std::llround(seconds)),
            .unit = "seconds"};
  }
  MicroBatchSamples samples_of_micro_batch(const Experiment& experiment) const override {
    return {.key = "data.max_samples",
            .most = synthesis_of(experiment).data.max_samples,
            .unit = "clip",
            .usual_size = 0};
  }
  bool has_batch_norm(const Experiment& experiment) const override {
    return models::has_batch_norm(synthesis_of(experiment).model);
  }

  std::vector<std::string> init_rules(const Experiment& experiment) const override {
    return models::init_of(synthesis_of(experiment).model);
  }
  std::optional<text::TokenizerOptions> tokenizer_options(
      const Experiment& experiment) const override {
    return synthesis_of(experiment).tokenizer.tokenizer_options();
  }

  std::vector<ModelDifference> hidden_differences(
      const Experiment& theirs, const Experiment& own,
      const std::vector<std::string>& /*stored*/) const override {
    return synthesis_differences(theirs, own);
  }
  std::vector<TakenValue> values_of_other_model(const OtherModel& other, const Experiment& own,
                                                const config::Origins& given) const override {
    return synthesis_values_of(other, own, given);
  }

  std::string name_of_data() const override { return "sounds"; }
  FileSizes file_sizes(const Experiment& experiment) const override {
    const auto& data = synthesis_of(experiment).data;
    return {.validation = std::min(known_clips(data, data.valid, "data.valid"), kCountedSamples)};
  }
  ScoredSamples scored_samples(const Experiment& /*experiment*/,
                               const FileSizes& files) const override {
    return {.count = files.validation, .unit = "clip", .key = "data.valid"};
  }
};

}  // namespace

const TaskRules& speech_synthesis_rules() {
  static const SpeechSynthesisRules rules;
  return rules;
}

}  // namespace stretto::experiment
