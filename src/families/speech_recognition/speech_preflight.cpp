#include "families/speech_recognition/speech_preflight.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "audio/sound_features.h"
#include "base/error.h"
#include "base/text.h"
#include "data/speech/speech_set.h"
#include "data/speech/transcripts.h"
#include "experiment/num_threads.h"
#include "experiment/rules.h"
#include "families/audio/preflight_tokenizer.h"
#include "families/speech_recognition/speech_facts.h"
#include "families/speech_recognition/speech_recognition_options.h"
#include "models/speech/speech_model_options.h"
#include "text/target_text.h"

namespace stretto::experiment {
namespace {

// Headers that can be looked at within the second that `check` may take.
constexpr int64_t kFewUtterances = 4000;

// Whether the paths of a key are read within a moment. Throws as data::count_utterances().
bool is_quick_speech(const data::SpeechDataOptions& options, const std::string& key,
                     const std::vector<std::string>& paths) {
  const auto count = data::count_utterances(options, paths, key);
  return count && *count <= kFewUtterances;
}

enum class SpeechDepth { kFiles, kTexts };

class SpeechPreflight {
 public:
  SpeechPreflight(const Experiment& experiment, const std::vector<config::Problem>& known,
                  const PreflightOptions& how, SpeechDepth depth)
      : experiment_(experiment),
        own_(speech_of(experiment)),
        known_(known),
        how_(how),
        looks_at_texts_(depth == SpeechDepth::kTexts && !is_in_doubt("tokenizer.")) {}

  Preflight run() {
    const bool in_doubt = std::ranges::any_of(known_, [](const auto& problem) {
      return problem.key.starts_with("data.") && problem.key != "data.train" &&
             problem.key != "data.valid" && problem.key != "data.test";
    });
    if (in_doubt) return {};
    look("data.train", Stage::kTraining, own_.data.train, [&](const auto& set) {
      training_ = set;
      look_at_units();
    });
    look("data.valid", Stage::kValidation, own_.data.valid, [&](const auto& set) {
      look_at_texts("data.valid", *set, /*is_training=*/false);
      if (!training_) return;
      const std::string shared = data::shared_sounds_text(*training_, *set);
      if (!shared.empty()) {
        found_.doubts.push_back({"data.valid", shared, data::kSharedSoundsAdvice});
      }
    });
    return std::move(found_);
  }

 private:
  bool is_in_doubt(const std::string& section) const {
    return std::ranges::any_of(
        known_, [&](const auto& problem) { return problem.key.starts_with(section); });
  }

  template <class Take>
  void look(const std::string& key, Stage stage, const std::vector<std::string>& paths,
            const Take& take) {
    if (paths.empty() || config::is_unreliable(known_, key)) return;
    note_stop(found_, stage, key, [&] {
      if (!how_.full && !is_quick_speech(own_.data, key, paths)) {
        found_.unread.push_back({key, "the sounds and their texts"});
        return;
      }
      const auto set = data::open_speech(
          own_.data, key, paths, how_.keeps ? data::CacheUse::kKeeps : data::CacheUse::kNone);
      if (set->left_out().count > 0) {
        found_.doubts.push_back(
            {key, "left out: " + set->left_out().text(), "mend them, or see data.bad_samples"});
      }
      const std::string outside = set->outside_limits().text(own_.data);
      if (!outside.empty()) {
        found_.doubts.push_back({key, outside, "change data.min_seconds or data.max_seconds"});
      }
      take(set);
    });
  }

  // Labels, or a tokenizer that is named or made at once.
  void look_at_units() {
    if (!looks_at_texts_) return;
    if (own_.has_label()) {
      labels_ = labels_of_texts(*training_, own_.tokenizer);
      return;
    }
    if (!is_tokenizer_at_hand(own_.tokenizer, how_, found_)) return;
    if (takes_tokenizer_of_other_run(experiment_)) return;
    tokenizer_ =
        preflight_tokenizer(own_.tokenizer, training_, static_cast<uint64_t>(experiment_.run.seed),
                            own_.data.cache_dir, how_);
    look_at_texts("data.train", *training_, /*is_training=*/true);
  }

  void look_at_texts(const std::string& key, const data::SpeechSet& set, bool is_training) {
    if (labels_) look_at_labels(set);
    if (!tokenizer_) return;
    auto texts =
        data::encode_transcripts(set, own_.tokenizer, *tokenizer_, num_threads(experiment_));
    if (is_training && describes_a_model(known_) && !is_in_doubt("features.")) {
      drop_impossible(texts);
    }
    for (const auto& remark : texts.remarks(set)) {
      found_.doubts.push_back({key, remark, "see tokenizer.normalise and tokenizer.alphabet"});
    }
    if (!texts.samples.ids.empty()) return;
    throw Error(ExitCode::kBadData, key + ": no utterance can be used",
                "the sounds are too short for their texts, or no character of these is known");
  }

  void look_at_labels(const data::SpeechSet& set) {
    const text::TargetText rules(own_.tokenizer);
    for (int64_t sample = 0; sample < set.size(); ++sample) {
      const std::string name = rules.normalised(set.text(sample));
      if (!name.empty()) labels_->number_of(name, set.place(sample));
    }
  }

  void drop_impossible(data::Transcripts& texts) const {
    const audio::SoundFeatures sounds(own_.features);
    // Speeds of augmentation shorten sounds; their files are not read here.
    const double speed = own_.augment.most_speed();
    data::drop_impossible(texts, [&](double seconds) {
      const auto samples = std::llround(seconds * static_cast<double>(sounds.rate()) / speed);
      return models::output_length(own_.model, sounds.num_frames(samples));
    });
  }

  const Experiment& experiment_;
  const SpeechRecognitionOptions& own_;
  const std::vector<config::Problem>& known_;
  const PreflightOptions how_;
  const bool looks_at_texts_;
  std::shared_ptr<const data::SpeechSet> training_;
  std::shared_ptr<const text::Tokenizer> tokenizer_;
  std::optional<data::Labels> labels_;
  Preflight found_;
};

}  // namespace

Preflight look_at_speech(const Experiment& experiment, const std::vector<config::Problem>& known,
                         const PreflightOptions& how) {
  return SpeechPreflight(experiment, known, how, SpeechDepth::kTexts).run();
}

Preflight look_at_speech_files(const Experiment& experiment,
                               const std::vector<config::Problem>& known,
                               const PreflightOptions& how) {
  return SpeechPreflight(experiment, known, how, SpeechDepth::kFiles).run();
}

void prepare_speech(const Experiment& experiment) {
  const auto& data = speech_of(experiment).data;
  for (const auto* paths : {&data.train, &data.valid}) {
    const std::string key = paths == &data.train ? "data.train" : "data.valid";
    if (!paths->empty() && is_quick_speech(data, key, *paths)) data::open_speech(data, key, *paths);
  }
}

}  // namespace stretto::experiment
