#include "models/text_model.h"

#include <utility>

#include "base/error.h"
#include "models/option_conflicts.h"
#include "models/packed.h"
#include "models/registry.h"
#include "nn/lora.h"

namespace stretto::models {
namespace {

const TextModelSetup& checked(const TextModelSetup& setup) {
  if (const auto wrong = option_conflicts(setup.model); !wrong.empty()) {
    throw Error(ExitCode::kUsage, wrong.front().keys.front() + ": " + wrong.front().what,
                wrong.front().hint);
  }
  TORCH_CHECK(setup.rows > 0, "[text_model] the table of tokens needs rows");
  TORCH_CHECK(setup.head != TextHeadKind::kLabels || setup.num_labels > 0,
              "[text_model] a head of labels needs num_labels");
  return setup;
}

nn::Init root_of(const TextModelSetup& setup) {
  std::vector<nn::InitRule> rules(setup.model.init.size());
  for (size_t i = 0; i < rules.size(); ++i) {
    const auto problem = nn::read_init_rule(setup.model.init[i], rules[i]);
    if (problem) throw Error(ExitCode::kUsage, "model.init: " + problem->what, problem->hint);
  }
  const nn::Init drawn =
      setup.draws_weights ? nn::Init(setup.seed, setup.device) : nn::Init::unset(setup.device);
  return drawn.with_rules(std::move(rules))
      .with_linear_rule(
          {.distribution = nn::Distribution::kTruncatedNormal, .number = setup.model.init_std})
      .with_lora(setup.model.lora)
      .with_adapter(setup.model.adapter);
}

}  // namespace

TextModel::TextModel(const TextModelSetup& given)
    : options_(checked(given).model),
      kind_(options_.head == "none" ? TextHeadKind::kNone : given.head) {
  const nn::Init root = root_of(given), init = root.child("head");
  encoder_ = register_module("encoder", std::make_shared<BertEncoder>(
                                            options_, PartSetup{.init = root.child("encoder"),
                                                                .rows = given.rows,
                                                                .pad = given.pad,
                                                                .first_site = kTextEncoderSites}));
  switch (kind_) {
    case TextHeadKind::kMaskedTokens: {
      const MaskedTokenHeadSetup setup{
          .init = init,
          .rows = given.rows,
          .num_classes = given.num_ids > 0 ? given.num_ids : given.rows,
          .tied = options_.tie_embeddings ? encoder_->embedding() : nn::Embedding(nullptr),
          .label_smoothing = given.label_smoothing};
      masked_tokens_ = register_module("head", std::make_shared<MaskedTokenHead>(options_, setup));
      break;
    }
    case TextHeadKind::kSpans:
      spans_ = register_module("head", std::make_shared<SpanHead>(options_, init));
      break;
    case TextHeadKind::kLabels:
    case TextHeadKind::kNone: {
      const LabelHeadSetup setup{
          .init = init,
          .num_labels = kind_ == TextHeadKind::kLabels ? given.num_labels : 0,
          .first_site = kTextHeadSites};
      labels_ = register_module("head", std::make_shared<LabelHead>(options_, setup));
      break;
    }
  }
}

at::Tensor TextModel::encode(const nn::PackedRows& input, const ForwardContext& context) {
  return encoder_->forward(input, context).keys;
}

at::Tensor TextModel::encode_of(const at::Tensor& wanted, const nn::PackedRows& input,
                                const ForwardContext& context) {
  return encoder_->forward_of(wanted, input, context);
}

at::Tensor TextModel::pooled(const nn::PackedRows& input, const ForwardContext& context) {
  TORCH_CHECK(labels_, "[text_model] this head reads single rows, and pools none");
  if (!labels_->reads_first_rows()) return labels_->pooled(encode(input, context), input, context);
  return labels_->behind_pooling(encode_of(first_places(input.offsets), input, context), input,
                                 context);
}

at::Tensor TextModel::sentence_vectors(const at::Tensor& rows, const kernels::Offsets& offsets,
                                       const std::string& pooling) const {
  TORCH_CHECK(pooling == "mean" || pooling == "cls",
              "[text_model] vectors are pooled by \"mean\" or \"cls\", got \"", pooling, "\"");
  return pooling == "mean" ? mean_rows(rows, offsets) : first_rows(rows, offsets);
}

const MaskedTokenHead& TextModel::masked_tokens() const {
  TORCH_CHECK(masked_tokens_, "[text_model] the model has no head of masked tokens");
  return *masked_tokens_;
}

const SpanHead& TextModel::spans() const {
  TORCH_CHECK(spans_, "[text_model] the model has no head of spans");
  return *spans_;
}

const LabelHead& TextModel::labels() const {
  TORCH_CHECK(labels_, "[text_model] the model has no head of labels");
  return *labels_;
}

std::vector<VocabularyTable> TextModel::vocabulary_tables() const {
  std::vector<VocabularyTable> tables{{"encoder.embedding.weight"}};
  if (masked_tokens_ && !options_.tie_embeddings) tables.push_back({"head.output.weight"});
  return tables;
}

std::vector<optim::TiedName> TextModel::tied_names() const {
  if (!masked_tokens_ || !options_.tie_embeddings) return {};
  return {{"head.output.weight", "encoder.embedding.weight"}};
}

double TextModel::operations(double length, double head_rows) const {
  double of_head = 0;
  if (masked_tokens_) of_head = masked_tokens_->operations();
  if (spans_) of_head = spans_->operations();
  if (labels_) of_head = labels_->operations();
  const bool reads_some = masked_tokens_ || spans_ || (labels_ && labels_->reads_first_rows());
  const double unwanted = reads_some ? length - head_rows : 0;
  return length * encoder_->operations(length) - unwanted * encoder_->operations_of_unwanted() +
         head_rows * of_head;
}

std::shared_ptr<TextModel> make_text_model(const TextModelSetup& setup) {
  return std::make_shared<TextModel>(setup);
}

ModelCost cost_of(const TextModel& model, const TextLengths& lengths) {
  return {
      .parameters = num_parameters(model),
      .training_flops = 3 * model.operations(lengths.tokens, lengths.head_rows) / lengths.tokens};
}

}  // namespace stretto::models
