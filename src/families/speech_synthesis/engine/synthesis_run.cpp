#include "families/speech_synthesis/engine/synthesis_run.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "base/log_silence.h"
#include "base/text.h"
#include "data/labelled/labelled_set.h"
#include "data/speech/speech_set.h"
#include "data/speech/transcripts.h"
#include "data/tokenizer_store.h"
#include "experiment/task_rules.h"
#include "families/speech_synthesis/speakers.h"
#include "families/speech_synthesis/speech_synthesis_options.h"
#include "families/speech_synthesis/voice_frames.h"
#include "runs/provenance.h"
#include "tasks/load_checkpoints.h"
#include "tasks/open_initial_run.h"
#include "tasks/taken_tokenizer.h"
#include "text/tokenizer_options.h"

namespace stretto::tasks {
namespace {

using experiment::synthesis_of;

text::TokenizerPair tokenizer_of_clips(const experiment::Experiment& experiment,
                                       const std::shared_ptr<const data::SpeechSet>& clips) {
  const auto& own = synthesis_of(experiment);
  const auto lines = data::transcript_lines(clips, own.tokenizer);
  return data::open_tokenizers(own.tokenizer.tokenizer_options(),
                               static_cast<uint64_t>(experiment.run.seed), lines.get(),
                               own.data.cache_dir);
}

text::TokenizerPair first_tokenizer_of(const experiment::LoadedExperiment& loaded,
                                       const std::optional<runs::InitialRun>& other,
                                       const std::shared_ptr<const data::SpeechSet>& clips) {
  const auto& e = loaded.options;
  if (!other) return tokenizer_of_clips(e, clips);
  if (e.train.init_vocabulary == "match") {
    require_pieces(*other);
    return tokenizer_of_clips(e, clips);
  }
  if (experiment::takes_tokenizer_of_other_run(e)) {
    return taken_tokenizers(loaded, *other, synthesis_of(e).tokenizer.tokenizer_options());
  }
  auto own = tokenizer_of_clips(e, clips);
  runs::require_tokenizer_of(*other, runs::tokenizer_hashes(own.assets));
  return own;
}

std::vector<std::string> sorted_speakers(std::vector<std::string> names) {
  std::ranges::sort(names);
  return names;
}

// Another run's vectors mean its speakers in its own order.
std::optional<data::Labels> first_speakers(const data::SpeechSet& clips,
                                           const std::optional<runs::InitialRun>& other) {
  auto own = experiment::speakers_in(clips);
  if (!own || !other) return own;
  const auto found = other->tokenizer.find(kSpeakersAsset);
  if (found == other->tokenizer.end()) return own;
  auto theirs = data::labels_from_json(found->second, (other->folder / kSpeakersAsset).string());
  if (!theirs || theirs->names() == own->names()) return own;
  if (sorted_speakers(theirs->names()) == sorted_speakers(own->names())) return theirs;
  if (theirs->size() == own->size()) {
    log::warn("train.init_from: the run has other speakers (" +
              printable(join(theirs->names(), ", "), 1000) +
              "), and their vectors are taken all the same; train.init_only with patterns of the "
              "other tensors leaves them");
  }
  return own;
}

}  // namespace

Assets first_voice(const experiment::LoadedExperiment& loaded) {
  const auto& own = synthesis_of(loaded.options);
  const auto clips = [&own] {
    const log::Silence silence;  // the task tells of its clips
    return data::open_speech(own.data, "data.train", own.data.train);
  }();
  std::optional<runs::InitialRun> other;
  if (!loaded.options.train.init_from.empty()) other = open_initial_run(loaded.options);
  Assets assets = first_tokenizer_of(loaded, other, clips).assets;
  const auto speakers = first_speakers(*clips, other);
  assets[kSpeakersAsset] = data::labels_to_json(speakers ? &*speakers : nullptr);
  return assets;
}

RunVoice voice_of(const experiment::Experiment& experiment, const Assets& assets) {
  const auto found = assets.find(kSpeakersAsset);
  if (found == assets.end()) {
    throw Error(ExitCode::kUsage, std::string("the run has no ") + kSpeakersAsset,
                "copy the run folder again with its tokenizer folder, which has the speakers");
  }
  RunVoice voice;
  voice.speakers = data::labels_from_json(found->second, kSpeakersAsset);
  voice.tokenizer =
      data::open_tokenizers(synthesis_of(experiment).tokenizer.tokenizer_options(), assets).src;
  return voice;
}

models::SynthesisSetup synthesis_setup(const experiment::Experiment& experiment,
                                       int64_t num_symbols, int64_t pad, int64_t num_speakers,
                                       at::Device device, FirstWeights weights) {
  const auto& own = synthesis_of(experiment);
  models::SynthesisSetup setup;
  setup.model = own.model;
  setup.num_symbols = text::table_rows(num_symbols, own.tokenizer.vocab_multiple);
  setup.pad = pad;
  setup.num_speakers = num_speakers;
  setup.parts = experiment::frame_parts_of(own);
  setup.seed = static_cast<uint64_t>(experiment.run.seed);
  setup.draws_weights = weights == FirstWeights::kDrawn;
  setup.device = device;
  return setup;
}

std::shared_ptr<models::SynthesisModel> make_synthesis_network(
    const experiment::Experiment& experiment, const RunVoice& voice, at::Device device,
    FirstWeights weights) {
  return models::make_synthesis_model(synthesis_setup(experiment, voice.tokenizer->size(),
                                                      voice.tokenizer->specials().pad,
                                                      voice.num_speakers(), device, weights));
}

SynthesisRun load_synthesis_run(const experiment::Experiment& experiment,
                                const runs::RunFolder& folder, const std::string& checkpoints,
                                at::Device device) {
  const Assets assets = assets_of(folder);
  SynthesisRun run;
  run.voice = voice_of(experiment, assets);
  const auto make = [&](const experiment::Experiment& described) -> torch::nn::Module& {
    if (run.model) {
      throw Error(ExitCode::kUsage, "--checkpoint names several models, and one speaks",
                  "name one; `stretto average` makes one of several");
    }
    run.model = make_synthesis_network(described, run.voice, device, FirstWeights::kUnset);
    return *run.model;
  };
  run.checkpoints = load_checkpoints(experiment, folder, checkpoints, assets, {.make = make});
  return run;
}

}  // namespace stretto::tasks
