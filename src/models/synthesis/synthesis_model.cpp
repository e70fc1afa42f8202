#include "models/synthesis/synthesis_model.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/random.h"
#include "kernels/gemm/packed_weights.h"
#include "kernels/offsets.h"
#include "models/registry.h"
#include "models/synthesis/centaur.h"
#include "models/synthesis/synthesis_conflicts.h"
#include "models/synthesis/synthesis_part.h"
#include "models/synthesis/tacotron2.h"
#include "nn/init_rules.h"

namespace stretto::models {
namespace {

std::shared_ptr<SynthesisModel> make(const Tacotron2Options& options, const SynthesisPart& part) {
  return std::make_shared<Tacotron2>(options, part);
}
std::shared_ptr<SynthesisModel> make(const CentaurOptions& options, const SynthesisPart& part) {
  return std::make_shared<Centaur>(options, part);
}

nn::Init root_of_speech(const SynthesisSetup& setup) {
  std::vector<nn::InitRule> rules;
  for (const std::string& given : init_of(setup.model)) {
    const auto problem = nn::read_init_rule(given, rules.emplace_back());
    if (problem) throw Error(ExitCode::kUsage, "model.init: " + problem->what, problem->hint);
  }
  const nn::Init root =
      setup.draws_weights ? nn::Init(setup.seed, setup.device) : nn::Init::unset(setup.device);
  return root.with_rules(std::move(rules));
}

/// A model in evaluation mode for as long as this lives.
class InEvaluation {
 public:
  explicit InEvaluation(torch::nn::Module& model)
      : model_(model), was_training_(model.is_training()) {
    if (was_training_) model_.eval();
  }
  ~InEvaluation() {
    if (was_training_) model_.train();
  }
  InEvaluation(const InEvaluation&) = delete;
  InEvaluation& operator=(const InEvaluation&) = delete;

 private:
  torch::nn::Module& model_;
  bool was_training_;
};

/// Frames of all sentences, one behind the other.
std::pair<at::Tensor, kernels::Offsets> joined_frames(
    const std::vector<decoding::WrittenFrames>& written) {
  std::vector<at::Tensor> frames;
  std::vector<int64_t> lengths;
  for (const decoding::WrittenFrames& one : written) {
    frames.push_back(one.frames);
    lengths.push_back(one.frames.size(0));
  }
  const at::Tensor all = at::cat(frames);
  return {all, kernels::offsets_of(lengths, all.device())};
}

/// decoding::write_frames() looks at what the decoder writes alone.
void require_finite(const at::Tensor& frames, size_t sentence) {
  if (at::isfinite(frames).all().item<bool>()) return;
  throw Error(ExitCode::kNumeric,
              "what stands behind the decoder makes frames that are not finite of sentence " +
                  std::to_string(sentence + 1) + " of the batch",
              "use a checkpoint from before the loss became infinite, or compute in fp32");
}

}  // namespace

std::shared_ptr<SynthesisModel> make_synthesis_model(const SynthesisSetup& setup) {
  const auto conflicts = option_conflicts(setup.model);
  if (!conflicts.empty()) {
    const OptionConflict& first = conflicts.front();
    throw Error(ExitCode::kUsage, first.keys.front() + ": " + first.what, first.hint);
  }
  TORCH_CHECK(
      setup.parts.decoder_width() > 0 && setup.num_symbols > 0,
      "[synthesis] a model needs symbols and a width of frames: SynthesisSetup::num_symbols "
      "and SynthesisSetup::parts");
  SynthesisPart part{.init = root_of_speech(setup)};
  part.num_symbols = setup.num_symbols;
  part.pad = setup.pad;
  part.num_speakers = setup.num_speakers;
  part.parts = setup.parts;
  return setup.model.visit([&](const auto& options) { return make(options, part); });
}

at::Tensor sentence_keys(const data::PackedTokens& text, c10::Device device) {
  std::vector<int64_t> keys;
  for (int64_t i = 0; i < text.num_sequences(); ++i) {
    uint64_t key = mix64(static_cast<uint64_t>(text.length(i)));
    for (const auto id : text.sequence(i)) key = mix64(key, static_cast<uint64_t>(id));
    keys.push_back(static_cast<int64_t>(key));
  }
  return at::tensor(keys, at::kLong).to(device);
}

std::vector<SynthesisedFrames> synthesise(SynthesisModel& model, const SynthesisInput& input,
                                          const decoding::FrameLimits& limits) {
  const at::NoGradGuard no_grad;
  const InEvaluation evaluation(model);
  // With weights that are laid out, a row's product does not depend on the rows beside it.
  kernels::PackedWeights own;
  kernels::PackedWeights* shared = kernels::PackedWeightsScope::current();
  const kernels::PackedWeightsScope scope(shared != nullptr ? *shared : own);
  if (input.text.offsets.values.size(0) < 2) return {};
  std::vector<decoding::WrittenFrames> written =
      decoding::write_frames(*model.start(input), limits);
  const auto [frames, offsets] = joined_frames(written);
  const at::Tensor finished = model.finish(frames, offsets);
  std::vector<SynthesisedFrames> results;
  int64_t begin = 0;
  for (decoding::WrittenFrames& one : written) {
    const int64_t count = one.frames.size(0);
    SynthesisedFrames result;
    result.frames = finished.narrow(0, begin, count);
    require_finite(result.frames, results.size());
    result.attention = std::move(one.weights);
    result.reason = one.reason;
    results.push_back(std::move(result));
    begin += count;
  }
  return results;
}

ModelCost cost_of(const SynthesisModel& model, double symbols, double frames) {
  return {.parameters = num_parameters(model),
          .training_flops = 3 * model.operations(symbols, frames)};
}

}  // namespace stretto::models
