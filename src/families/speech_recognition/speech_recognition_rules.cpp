#include "families/speech_recognition/speech_recognition_rules.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "audio/augment_keys.h"
#include "audio/feature_keys.h"
#include "base/error.h"
#include "base/text.h"
#include "data/speech/speech_files.h"
#include "experiment/preflight.h"
#include "experiment/rules.h"
#include "families/speech_recognition/speech_preflight.h"
#include "families/speech_recognition/speech_recognition_display.h"
#include "families/speech_recognition/speech_recognition_options.h"
#include "families/speech_recognition/speech_recognition_taken.h"
#include "models/speech/speech_conflicts.h"
#include "models/speech/speech_model_options.h"

namespace stretto::experiment {
namespace {

void check_speech_features(RuleCheck& c) {
  for (const auto& conflict : audio::feature_conflicts(speech_of(c.e).features, "features")) {
    c.wrong(conflict.keys, conflict.what, conflict.hint);
  }
}

void check_sound_augmentation(RuleCheck& c) {
  for (const auto& conflict : audio::augment_conflicts(speech_of(c.e).augment, "augment")) {
    c.wrong(conflict.keys, conflict.what, conflict.hint);
  }
}

void check_speech_limits(RuleCheck& c) {
  const auto& data = speech_of(c.e).data;
  if (data.max_seconds == 0 || data.min_seconds < data.max_seconds) return;
  c.wrong({"data.min_seconds", "data.max_seconds"},
          "nothing is longer than " + shortest(data.min_seconds) + " s and shorter than " +
              shortest(data.max_seconds) + " s",
          "lower it, or raise data.max_seconds");
}

void check_commands(RuleCheck& c) {
  const auto& own = speech_of(c.e);
  if (!own.data.commands.has_drawn_classes() || own.has_label()) return;
  c.wrong({"data.commands.set", "loss.name"},
          "`unknown` and `silence` are classes, and no texts that anybody says",
          "set loss.name = \"label\", or another set");
}

// A run may be evaluated on another format.
void check_training_commands(RuleCheck& c) {
  const auto& data = speech_of(c.e).data;
  if (data.commands.set == "all" || data.format == "auto" || data.format == "speech_commands") {
    return;
  }
  c.wrong({"data.commands.set", "data.format"},
          "the set is one of Speech Commands, and data.format = \"" + data.format + "\"",
          "leave it out, or set data.format = \"speech_commands\"");
}

void check_one_label(RuleCheck& c) {
  const auto& own = speech_of(c.e);
  if (!own.has_label() && models::reads_as_a_whole(own.model)) {
    c.wrong({"loss.name", "model.name"},
            "the model reads an utterance as a whole, and a text needs a row for each label",
            "set loss.name = \"label\", or take another model");
  }
  if (!own.has_label() || !models::decoder_of(own.model).is_on()) return;
  c.wrong({"model.decoder.weight", "loss.name"},
          "an attention decoder writes texts, and an utterance has one label here",
          "set it to 0, or loss.name = \"ctc\"");
}

void check_reading(RuleCheck& c) {
  const auto& own = speech_of(c.e);
  const auto& decode = own.decode;
  if (decode.reader == "attention") {
    if (!own.has_label() && !models::decoder_of(own.model).is_on()) {
      c.wrong({"decode.reader", "model.decoder.weight"}, "the model has no attention decoder",
              "set decode.reader = \"ctc\", or train with model.decoder.weight above 0");
    }
    for (const auto& [key, path] :
         {std::pair{"decode.lm", &decode.lm}, std::pair{"decode.lm_run", &decode.lm_run},
          std::pair{"decode.lexicon", &decode.lexicon}}) {
      if (path->empty()) continue;
      c.wrong({key, "decode.reader"}, "the attention decoder writes without it",
              "leave it out, or set decode.reader = \"ctc\"");
    }
    if (!decode.hot_words.empty()) {
      c.wrong({"decode.hot_words", "decode.reader"}, "the attention decoder writes without them",
              "leave them out, or set decode.reader = \"ctc\"");
    }
  }
  if (!decode.lm.empty() && !decode.lm_run.empty()) {
    c.wrong({"decode.lm_run", "decode.lm"}, "two language models", "leave one of them out");
  }
  if (decode.method == "greedy" && decode.nbest > 1) {
    c.wrong({"decode.nbest", "decode.method"}, "greedy reading has one text",
            "set decode.method = \"beam\"");
  }
  if (decode.method == "beam" && decode.nbest > decode.beam_size) {
    c.wrong({"decode.nbest", "decode.beam_size"},
            "a beam of " + std::to_string(decode.beam_size) + " has no " +
                std::to_string(decode.nbest) + " texts",
            "lower it, or raise decode.beam_size");
  }
}

// 0 where the files do not tell it, or are missing, which `check` tells elsewhere.
int64_t known_utterances(const data::SpeechDataOptions& data, const std::vector<std::string>& paths,
                         const std::string& key) {
  try {
    return data::count_utterances(data, paths, key).value_or(0);
  } catch (const Error&) {
    return 0;
  }
}

class SpeechRecognitionRules final : public TaskRules {
 public:
  void check_model(RuleCheck& check) const override {
    const auto& own = speech_of(check.e);
    for (const auto& conflict : models::option_conflicts(own.model, own.features.width())) {
      check.wrong(conflict.keys, conflict.what, conflict.hint);
    }
    check_one_label(check);
    check_speech_features(check);
  }

  void check_data(RuleCheck& check) const override {
    check_sound_augmentation(check);
    check_speech_limits(check);
    check_commands(check);
    check_reading(check);
  }

  void check_training(RuleCheck& check) const override {
    check_training_commands(check);
    if (!speech_of(check.e).data.train.empty()) return;
    check.wrong({"data.train"}, "there are no training sounds",
                "name manifests, folders or archives");
  }

  Preflight look_at_data(const Experiment& experiment, const std::vector<config::Problem>& known,
                         const PreflightOptions& how) const override {
    return look_at_speech(experiment, known, how);
  }
  Preflight look_at_files(const Experiment& experiment, const std::vector<config::Problem>& known,
                          const PreflightOptions& how) const override {
    return look_at_speech_files(experiment, known, how);
  }
  void prepare_data(const Experiment& experiment) const override { prepare_speech(experiment); }

  std::vector<ScoreSpec> scores(const Experiment& experiment) const override {
    return tasks::speech_recognition_scores(speech_of(experiment).has_label()
                                                ? tasks::SpeechAnswer::kLabel
                                                : tasks::SpeechAnswer::kTranscript);
  }
  ValidationData validation_data(const Experiment& experiment) const override {
    return {.there = !speech_of(experiment).data.valid.empty(),
            .name = "sounds for validation",
            .keys = {"data.valid"},
            .remedy = "set data.valid"};
  }
  BatchBound micro_batch(const Experiment& experiment) const override {
    const double seconds = speech_of(experiment).data.batch_seconds;
    return {.key = "data.batch_seconds",
            .value = std::max<int64_t>(1, std::llround(seconds)),
            .unit = "seconds"};
  }
  MicroBatchSamples samples_of_micro_batch(const Experiment& experiment) const override {
    return {.key = "data.max_samples",
            .most = speech_of(experiment).data.max_samples,
            .unit = "utterance",
            .usual_size = 0};
  }
  bool has_batch_norm(const Experiment& experiment) const override {
    return models::has_batch_norm(speech_of(experiment).model);
  }
  std::string batch_norm_setting() const override { return "model.name = \"quartznet\""; }

  std::vector<std::string> init_rules(const Experiment& experiment) const override {
    return models::init_of(speech_of(experiment).model);
  }
  const nn::LoraOptions* lora(const Experiment& experiment) const override {
    return speech_of(experiment).model.visit([](const auto& kind) -> const nn::LoraOptions* {
      if constexpr (requires { kind.lora; }) return &kind.lora;
      return nullptr;
    });
  }
  const nn::AdapterOptions* adapter(const Experiment& experiment) const override {
    return speech_of(experiment).model.visit([](const auto& kind) -> const nn::AdapterOptions* {
      if constexpr (requires { kind.adapter; }) return &kind.adapter;
      return nullptr;
    });
  }
  std::optional<text::TokenizerOptions> tokenizer_options(
      const Experiment& experiment) const override {
    const auto& own = speech_of(experiment);
    if (own.has_label()) return std::nullopt;
    return own.tokenizer.tokenizer_options();
  }
  ModelWidth model_width(const Experiment& experiment) const override {
    return speech_of(experiment).model.visit([](const auto& kind) -> ModelWidth {
      if constexpr (requires { kind.d_model; }) {
        return {.key = "model.d_model", .value = models::sizes_of(kind).d_model};
      } else {
        return {};
      }
    });
  }

  std::vector<ModelDifference> hidden_differences(
      const Experiment& theirs, const Experiment& own,
      const std::vector<std::string>& /*stored*/) const override {
    return speech_differences(theirs, own);
  }
  std::vector<TakenValue> values_of_other_model(const OtherModel& other, const Experiment& own,
                                                const config::Origins& given) const override {
    return speech_values_of(other, own, given);
  }

  std::string name_of_data() const override { return "sounds"; }
  FileSizes file_sizes(const Experiment& experiment) const override {
    const auto& data = speech_of(experiment).data;
    return {.validation =
                std::min(known_utterances(data, data.valid, "data.valid"), kCountedSamples)};
  }
  ScoredSamples scored_samples(const Experiment& /*experiment*/,
                               const FileSizes& files) const override {
    return {.count = files.validation, .unit = "utterance", .key = "data.valid"};
  }
};

}  // namespace

const TaskRules& speech_recognition_rules() {
  static const SpeechRecognitionRules rules;
  return rules;
}

}  // namespace stretto::experiment
