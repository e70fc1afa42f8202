#include "families/speech_synthesis/engine/speech_synthesis_family.h"

#include <memory>
#include <string>
#include <vector>

#include "families/speech_synthesis/engine/commands.h"
#include "families/speech_synthesis/engine/speech_synthesis.h"
#include "families/speech_synthesis/engine/synthesis_run.h"
#include "families/speech_synthesis/speech_synthesis_options.h"
#include "optim/arena.h"
#include "optim/groups.h"
#include "runs/initial_weights.h"
#include "runs/merged_lora.h"
#include "tasks/initial_model.h"
#include "tasks/open_initial_run.h"

namespace stretto::tasks {
namespace {

using experiment::synthesis_of;

constexpr int64_t kAnySymbols = 64;         // no other tensor than the table depends on them
constexpr double kSecondsPerSymbol = 0.07;  // of English letters, about
constexpr double kSentenceSeconds = 6;      // of a clip

/// A model without memory. Whether it has vectors of speakers only the data tell: `num_speakers`.
std::shared_ptr<models::SynthesisModel> described_synthesis(
    const experiment::Experiment& experiment, int64_t num_symbols, int64_t num_speakers) {
  return models::make_synthesis_model(synthesis_setup(
      experiment, num_symbols, /*pad=*/-1, num_speakers, at::kMeta, FirstWeights::kUnset));
}

class SpeechSynthesisFamily final : public Family {
 public:
  Assets first_assets(const experiment::LoadedExperiment& experiment) const override {
    return first_voice(experiment);
  }

  std::unique_ptr<FamilyTask> make_task(const experiment::Experiment& experiment,
                                        const Assets& assets,
                                        const CommandContext& context) const override {
    return std::make_unique<SpeechSynthesisTask>(experiment, assets, context);
  }

  int eval(const EvalRequest& request, const CommandContext& context) const override {
    return evaluate_voice(request, context);
  }
  int infer(const InferRequest& request, const CommandContext& context) const override {
    return speak_lines(request, context);
  }

  std::string memory_advice(MemoryUse use) const override {
    if (use == MemoryUse::kInfer) return "lower decode.max_samples, or decode.max_seconds";
    if (use == MemoryUse::kEval) return "lower eval.batch_seconds, to 10, say";
    return "halve data.batch_seconds and double train.update_freq: the batch of an update stays "
           "the same, but for the statistics of batch norm; where validation was at work, lower "
           "eval.batch_seconds";
  }

  // With a speaker more than one, so that patterns for their vectors match something.
  std::vector<optim::TensorName> tensor_names(
      const experiment::Experiment& experiment) const override {
    return optim::names_of(optim::Arena(*described_synthesis(experiment, kAnySymbols, 2),
                                        optim::Arena::Gradients::kNone));
  }
  models::ModelCost model_cost(const CostRequest& request) const override {
    const auto& own = synthesis_of(request.experiment);
    const double frames = kSentenceSeconds / own.features.hop_seconds;
    const auto model = described_synthesis(request.experiment, kAnySymbols, 1);
    auto cost = models::cost_of(*model, kSentenceSeconds / kSecondsPerSymbol, frames);
    cost.training_flops /= frames;
    return cost;
  }
  std::shared_ptr<torch::nn::Module> make_network(const experiment::Experiment& experiment,
                                                  const Assets& assets,
                                                  bool draws_weights) const override {
    return make_synthesis_network(experiment, voice_of(experiment, assets),
                                  draws_weights ? at::kCPU : at::kMeta,
                                  draws_weights ? FirstWeights::kDrawn : FirstWeights::kUnset);
  }

  // As training begins; a model without memory has the names and shapes of the real one. It has the
  // symbols and the speakers of the other run: those of the own texts need them to be read.
  void check_weights(const experiment::CheckRequest& request,
                     experiment::Preflight& found) const override {
    const auto& e = request.experiment.options;
    const std::string key = "train.init_from";
    experiment::note_stop(found, experiment::Stage::kWeights, key, [&] {
      const auto run =
          open_initial_run(e, request.full ? runs::Reading::kAll : runs::Reading::kHeads);
      // A model that means something else by the weights may have other shapes, too.
      experiment::note_stop(found, experiment::Stage::kWeights, key,
                            [&] { InitialModel(run).require_alike(e); });
      if (!run.tokenizer.contains(kSpeakersAsset)) {
        found.unread.push_back({key, "shapes: the other run says nothing of its speakers"});
        return;
      }
      const RunVoice voice = voice_of(e, run.tokenizer);
      const auto model = described_synthesis(e, voice.tokenizer->size(), voice.num_speakers());
      const optim::Arena arena(*model, optim::Arena::Gradients::kNone);
      const std::string where = run.weights_file();
      const auto weights = runs::weights_to_begin_with(run.checkpoint.file("model"), where, arena,
                                                       runs::LoraValues::kNames);
      const runs::TakenWeights taken{.entries = e.train.init_only,
                                     .replaceable = synthesis_replaceable_parts()};
      runs::require_some_weights_fit(weights.file, where, arena, taken, {});
      if (request.full) return;
      found.unread.push_back({key, "the weights themselves: their names and shapes fit"});
    });
  }

  // Each model writes the frames that the configuration says.
  void require_room(const std::filesystem::path& /*place*/, const experiment::Experiment& /*other*/,
                    const experiment::Experiment& /*own*/) const override {}
};

}  // namespace

const Family& speech_synthesis_family() {
  static const SpeechSynthesisFamily family;
  return family;
}

}  // namespace stretto::tasks
