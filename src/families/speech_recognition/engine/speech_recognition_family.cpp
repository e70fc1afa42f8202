#include "families/speech_recognition/engine/speech_recognition_family.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "base/log_silence.h"
#include "base/text.h"
#include "data/labelled/labelled_set.h"
#include "data/speech/transcripts.h"
#include "data/tokenizer_store.h"
#include "experiment/task_rules.h"
#include "families/speech_recognition/engine/commands.h"
#include "families/speech_recognition/engine/speech_recognition.h"
#include "families/speech_recognition/engine/speech_run.h"
#include "families/speech_recognition/speech_facts.h"
#include "families/speech_recognition/speech_recognition_options.h"
#include "optim/arena.h"
#include "optim/groups.h"
#include "runs/initial_weights.h"
#include "runs/merged_lora.h"
#include "runs/provenance.h"
#include "tasks/initial_model.h"
#include "tasks/open_initial_run.h"
#include "tasks/taken_tokenizer.h"

namespace stretto::tasks {
namespace {

using experiment::speech_of;

constexpr double kLabelsOfSecond = 14;  // characters of read English
constexpr int64_t kAnyUnits = 8;        // no other tensors than those of the outputs depend on them

std::shared_ptr<models::SpeechModel> described_speech(const experiment::Experiment& experiment) {
  return make_speech_network(experiment, kAnyUnits, at::kMeta, FirstWeights::kUnset);
}

std::shared_ptr<const data::SpeechSet> training_speech(const experiment::Experiment& experiment) {
  const log::Silence silence;  // the task tells of its sounds
  const auto& data = speech_of(experiment).data;
  return data::open_speech(data, "data.train", data.train);
}

// The tokenizer that the configuration names, or one that is trained on the transcripts.
text::TokenizerPair own_speech_tokenizer(const experiment::Experiment& experiment) {
  const auto& own = speech_of(experiment);
  const auto options = own.tokenizer.tokenizer_options();
  std::unique_ptr<text::LineSource> lines;
  if (!text::names_tokenizer(options)) {
    lines = data::transcript_lines(training_speech(experiment), own.tokenizer);
  }
  return data::open_tokenizers(options, static_cast<uint64_t>(experiment.run.seed), lines.get(),
                               own.data.cache_dir);
}

text::TokenizerPair first_speech_tokenizer(const experiment::LoadedExperiment& loaded) {
  const auto& train = loaded.options.train;
  if (train.init_from.empty()) return own_speech_tokenizer(loaded.options);
  const bool match = train.init_vocabulary == "match";
  const auto run =
      open_initial_run(loaded.options, match ? runs::Reading::kHeads : runs::Reading::kAll);
  if (match) {
    require_pieces(run);
    return own_speech_tokenizer(loaded.options);
  }
  if (experiment::takes_tokenizer_of_other_run(loaded.options)) {
    return taken_tokenizers(loaded, run, speech_of(loaded.options).tokenizer.tokenizer_options());
  }
  auto own = own_speech_tokenizer(loaded.options);
  runs::require_tokenizer_of(run, runs::tokenizer_hashes(own.assets));
  return own;
}

// The labels of the run that `train.init_from` names, if it has some.
std::optional<data::Labels> speech_labels_of_other_run(const experiment::Experiment& experiment) {
  if (experiment.train.init_from.empty()) return std::nullopt;
  const auto run = open_initial_run(experiment, runs::Reading::kHeads);
  const auto found = run.tokenizer.find(kSpeechLabelsAsset);
  if (found == run.tokenizer.end()) return std::nullopt;
  return data::labels_from_json(found->second, (run.folder / kSpeechLabelsAsset).string());
}

std::vector<std::string> sorted_labels(std::vector<std::string> names) {
  std::sort(names.begin(), names.end());
  return names;
}

// Another run's head means the labels in its own order: with the same labels that order is taken.
data::Labels first_speech_labels(const experiment::Experiment& experiment) {
  auto own =
      experiment::labels_of_texts(*training_speech(experiment), speech_of(experiment).tokenizer);
  auto others = speech_labels_of_other_run(experiment);
  if (!others || others->names() == own.names()) return own;
  if (sorted_labels(others->names()) == sorted_labels(own.names())) {
    log::info("labels in the order of " + experiment.train.init_from);
    return *std::move(others);
  }
  if (others->size() == own.size()) {
    log::warn("train.init_from: the run has other labels (" +
              printable(join(others->names(), ", "), 1000) +
              "), and its head is taken all the same; train.init_only with patterns of the other "
              "layers leaves it");
  }
  return own;
}

class SpeechRecognitionFamily final : public Family {
 public:
  Assets first_assets(const experiment::LoadedExperiment& experiment) const override {
    if (!speech_of(experiment.options).has_label()) {
      return first_speech_tokenizer(experiment).assets;
    }
    const auto labels = first_speech_labels(experiment.options);
    return {{kSpeechLabelsAsset, data::labels_to_json(&labels)}};
  }

  std::unique_ptr<FamilyTask> make_task(const experiment::Experiment& experiment,
                                        const Assets& assets,
                                        const CommandContext& context) const override {
    return std::make_unique<SpeechRecognitionTask>(experiment, assets, context);
  }

  int eval(const EvalRequest& request, const CommandContext& context) const override {
    return evaluate_speech(request, context);
  }
  int infer(const InferRequest& request, const CommandContext& context) const override {
    return infer_speech(request, context);
  }

  std::string memory_advice(MemoryUse use) const override {
    if (use != MemoryUse::kTrain) return "lower eval.batch_seconds, to 60, say";
    return "halve data.batch_seconds and double train.update_freq: the batch of an update stays "
           "the same, but for the statistics of batch norm; data.max_seconds leaves long "
           "utterances out; where validation was at work, lower eval.batch_seconds";
  }

  std::vector<optim::TensorName> tensor_names(
      const experiment::Experiment& experiment) const override {
    return optim::names_of(
        optim::Arena(*described_speech(experiment), optim::Arena::Gradients::kNone));
  }

  /// Of a frame, the unit of the family's throughput.
  models::ModelCost model_cost(const CostRequest& request) const override {
    const auto& own = speech_of(request.experiment);
    const double frames = experiment::usual_frames(own);
    const double labels = kLabelsOfSecond * frames * own.features.hop_seconds;
    auto cost = models::cost_of(*described_speech(request.experiment), frames, labels);
    cost.training_flops /= frames;
    return cost;
  }

  std::shared_ptr<torch::nn::Module> make_network(const experiment::Experiment& experiment,
                                                  const Assets& assets,
                                                  bool draws_weights) const override {
    return make_speech_network(experiment, units_of(experiment, assets).size(),
                               draws_weights ? at::kCPU : at::kMeta,
                               draws_weights ? FirstWeights::kDrawn : FirstWeights::kUnset);
  }

  // As training begins; a model without memory has the names and shapes of the real one.
  void check_weights(const experiment::CheckRequest& request,
                     experiment::Preflight& found) const override {
    const auto& e = request.experiment.options;
    const std::string key = "train.init_from";
    experiment::note_stop(found, experiment::Stage::kWeights, key, [&] {
      const auto run =
          open_initial_run(e, request.full ? runs::Reading::kAll : runs::Reading::kHeads);
      experiment::note_stop(found, experiment::Stage::kWeights, key,
                            [&] { InitialModel(run).require_alike(e); });
      const auto model = described_speech(e);
      const optim::Arena arena(*model, optim::Arena::Gradients::kNone);
      const std::string where = run.weights_file();
      const auto weights = runs::weights_to_begin_with(run.checkpoint.file("model"), where, arena,
                                                       runs::LoraValues::kNames);
      const runs::TakenWeights taken{.entries = e.train.init_only,
                                     .replaceable = speech_output_parts()};
      runs::require_some_weights_fit(weights.file, where, arena, taken, {});
      if (request.full) return;
      found.unread.push_back({key, "the weights themselves: their names and shapes fit"});
    });
  }

  // Each model computes the features that its configuration says.
  void require_room(const std::filesystem::path& /*place*/, const experiment::Experiment& /*other*/,
                    const experiment::Experiment& /*own*/) const override {}
};

}  // namespace

const Family& speech_recognition_family() {
  static const SpeechRecognitionFamily family;
  return family;
}

}  // namespace stretto::tasks
