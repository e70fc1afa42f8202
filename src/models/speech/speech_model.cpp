#include "models/speech/speech_model.h"

#include <ATen/ATen.h>

#include <utility>
#include <vector>

#include "base/error.h"
#include "models/operations.h"
#include "models/packed.h"
#include "models/registry.h"
#include "models/speech/conformer.h"
#include "models/speech/deepspeech2.h"
#include "models/speech/speech_conflicts.h"
#include "models/speech/square_resnet.h"
#include "models/speech/time_delay_encoder.h"
#include "nn/init_rules.h"

namespace stretto::models {
namespace {

std::shared_ptr<SpeechEncoder> make_speech_encoder(const DeepSpeech2Options& options,
                                                   const SpeechPart& part) {
  return std::make_shared<DeepSpeech2Encoder>(options, part);
}
std::shared_ptr<SpeechEncoder> make_speech_encoder(const ConformerOptions& options,
                                                   const SpeechPart& part) {
  return std::make_shared<ConformerEncoder>(options, part);
}
std::shared_ptr<SpeechEncoder> make_speech_encoder(const SquareResNetOptions& options,
                                                   const SpeechPart& part) {
  return std::make_shared<SquareResNetEncoder>(options, part);
}
/// Wave2Letter+, Jasper, QuartzNet, and Listen, Attend and Spell.
template <class BlockOptions>
std::shared_ptr<SpeechEncoder> make_speech_encoder(const BlockOptions& options,
                                                   const SpeechPart& part) {
  return std::make_shared<TimeDelayEncoder>(TimeDelayShape(options, blocks_of(options)), part);
}

std::vector<nn::InitRule> rules_of_speech(const std::vector<std::string>& given) {
  std::vector<nn::InitRule> rules(given.size());
  for (size_t i = 0; i < given.size(); ++i) {
    const auto problem = nn::read_init_rule(given[i], rules[i]);
    if (problem) throw Error(ExitCode::kUsage, "model.init: " + problem->what, problem->hint);
  }
  return rules;
}

nn::Init root_of_speech(const SpeechModelSetup& setup) {
  const nn::Init root =
      setup.draws_weights ? nn::Init(setup.seed, setup.device) : nn::Init::unset(setup.device);
  return root.with_rules(rules_of_speech(init_of(setup.model)))
      .with_lora(lora_of(setup.model))
      .with_adapter(adapter_of(setup.model));
}

/// The scores of a stream's rows.
class ScoreStream : public RowStream {
 public:
  ScoreStream(std::unique_ptr<RowStream> rows, std::shared_ptr<CtcHead> ctc)
      : rows_(std::move(rows)), ctc_(std::move(ctc)) {}

  at::Tensor push(const at::Tensor& frames) override { return scores(rows_->push(frames)); }
  at::Tensor finish() override { return scores(rows_->finish()); }

 private:
  at::Tensor scores(const at::Tensor& rows) const {
    const at::NoGradGuard no_grad;
    return ctc_->scores(rows);
  }

  std::unique_ptr<RowStream> rows_;
  std::shared_ptr<CtcHead> ctc_;
};

}  // namespace

SpeechModel::SpeechModel(std::shared_ptr<SpeechEncoder> encoder, const SpeechHeadPart& part)
    : target_(part.target),
      num_labels_(part.num_labels),
      num_features_(part.num_features),
      stream_problem_(part.stream_problem),
      encoder_(register_module("encoder", std::move(encoder))) {
  const int64_t width = encoder_->width();
  TORCH_CHECK(num_labels_ > 0, "[speech_model] there must be labels, got ", num_labels_);
  if (target_ == SpeechTarget::kLabel) {
    head_ = register_module("head", nn::Linear(part.init.child("head"), width, num_labels_));
    return;
  }
  ctc_ =
      register_module("ctc", std::make_shared<CtcHead>(part.init.child("ctc"), width, num_labels_));
  if (!part.decoder.is_on()) return;
  attention_weight_ = part.decoder.weight;
  const AttentionDecoderPart of_decoder{
      .init = part.init.child("decoder"), .memory_width = width, .num_labels = num_labels_};
  decoder_ =
      register_module("decoder", std::make_shared<AttentionDecoder>(part.decoder, of_decoder));
}

Encoded SpeechModel::encode(const nn::PackedRows& frames, const ForwardContext& context) {
  TORCH_CHECK(frames.values.dim() == 2, "[speech_model] frames must be [N, features], got ",
              frames.values.sizes());
  if (frames.values.size(1) != num_features_) {
    throw Error(ExitCode::kBadData,
                "the model reads frames of " + std::to_string(num_features_) + " features, got " +
                    std::to_string(frames.values.size(1)),
                "use the [features] that the model was trained with");
  }
  return encoder_->forward(frames, context);
}

at::Tensor SpeechModel::ctc_scores(const Encoded& encoded) const {
  TORCH_CHECK(ctc_ != nullptr, "[speech_model] a model of labels of utterances has no CTC scores");
  return ctc_->scores(encoded.keys);
}

SpeechLosses SpeechModel::losses(const Encoded& encoded, const nn::PackedRows& labels,
                                 const ForwardContext& context) const {
  const at::Tensor scores = ctc_scores(encoded);  // which first sees whether there are any
  const kernels::CtcLosses ctc = ctc_->losses(scores, encoded.rows.offsets, labels);
  SpeechLosses result;
  result.possible = ctc.possible;
  result.each = ctc.each;
  if (decoder_ == nullptr) return result;
  // A pair that CTC cannot align is left out as a whole: its loss would jump with the weight.
  const at::Tensor attention = decoder_->losses(labels, encoded, context);
  const at::Tensor counted = at::where(ctc.possible, attention, at::zeros({}, attention.options()));
  result.each = (1 - attention_weight_) * ctc.each + attention_weight_ * counted;
  result.ctc = ctc.each.detach();
  result.attention = counted.detach();
  return result;
}

at::Tensor SpeechModel::label_logits(const Encoded& encoded) const {
  TORCH_CHECK(head_, "[speech_model] a model of tokens has no label of utterances");
  const at::Tensor logits = head_->forward(mean_rows(encoded.keys, encoded.rows.offsets));
  return logits.scalar_type() == at::kDouble ? logits : logits.to(at::kFloat);
}

std::unique_ptr<RowStream> SpeechModel::stream() {
  TORCH_CHECK(ctc_ != nullptr, "[speech_model] a label belongs to a whole utterance");
  auto rows = encoder_->stream();
  if (rows == nullptr) {
    throw Error(ExitCode::kUsage, "this model cannot read speech in pieces: " + stream_problem_,
                "give it whole files, or train a model that can");
  }
  return std::make_unique<ScoreStream>(std::move(rows), ctc_);
}

double SpeechModel::operations(double frames, double labels) const {
  const auto rows = static_cast<double>(encoder_->output_length(static_cast<int64_t>(frames)));
  double sum = frames * encoder_->operations(frames);
  sum += head_ ? head_->operations() : rows * ctc_->operations();
  return decoder_ != nullptr ? sum + decoder_->operations(labels, rows) : sum;
}

std::shared_ptr<SpeechModel> make_speech_model(const SpeechModelSetup& setup) {
  const auto conflicts = option_conflicts(setup.model, setup.num_features);
  if (!conflicts.empty()) {
    const OptionConflict& first = conflicts.front();
    throw Error(ExitCode::kUsage, first.keys.front() + ": " + first.what, first.hint);
  }
  const nn::Init root = root_of_speech(setup);
  const SpeechPart part{.init = root.child("encoder"), .num_features = setup.num_features};
  auto encoder =
      setup.model.visit([&](const auto& options) { return make_speech_encoder(options, part); });
  const SpeechHeadPart head{.init = root,
                            .num_features = setup.num_features,
                            .num_labels = setup.num_labels,
                            .target = setup.target,
                            .decoder = decoder_of(setup.model),
                            .stream_problem = stream_problem(setup.model)};
  return std::make_shared<SpeechModel>(std::move(encoder), head);
}

ModelCost cost_of(const SpeechModel& model, double frames, double labels) {
  return {.parameters = num_parameters(model),
          .training_flops = 3 * model.operations(frames, labels)};
}

}  // namespace stretto::models
