#include "models/text_model.h"

#include <utility>

#include "base/error.h"
#include "models/causal_bodies.h"
#include "models/option_conflicts.h"
#include "models/packed.h"
#include "models/parts.h"
#include "models/registry.h"
#include "nn/init_rules.h"
#include "nn/lora.h"

namespace stretto::models {
namespace {

const TextModelSetup& checked(const TextModelSetup& setup) {
  const auto wrong =
      setup.causal ? option_conflicts(setup.causal->stack) : option_conflicts(setup.model);
  if (!wrong.empty()) {
    throw Error(ExitCode::kUsage, wrong.front().keys.front() + ": " + wrong.front().what,
                wrong.front().hint);
  }
  TORCH_CHECK(setup.rows > 0, "[text_model] the table of tokens needs rows");
  TORCH_CHECK(setup.head != TextHeadKind::kLabels || setup.num_labels > 0,
              "[text_model] a head of labels needs num_labels");
  TORCH_CHECK(
      !setup.causal || setup.head == TextHeadKind::kLabels || setup.head == TextHeadKind::kNone,
      "[text_model] a causal stack has a head of labels, or none");
  return setup;
}

std::vector<nn::InitRule> rules_of(const std::vector<std::string>& given) {
  std::vector<nn::InitRule> rules(given.size());
  for (size_t i = 0; i < rules.size(); ++i) {
    const auto problem = nn::read_init_rule(given[i], rules[i]);
    if (problem) throw Error(ExitCode::kUsage, "model.init: " + problem->what, problem->hint);
  }
  return rules;
}

nn::Init root_of(const TextModelSetup& setup) {
  const nn::Init drawn =
      setup.draws_weights ? nn::Init(setup.seed, setup.device) : nn::Init::unset(setup.device);
  if (setup.causal) {
    const CausalModelOptions& stack = setup.causal->stack;
    return with_rules_of(stack, drawn)
        .with_rules(rules_of(init_of(stack)))
        .with_lora(lora_of(stack))
        .with_adapter(adapter_of(stack));
  }
  return drawn.with_rules(rules_of(setup.model.init))
      .with_linear_rule(
          {.distribution = nn::Distribution::kTruncatedNormal, .number = setup.model.init_std})
      .with_lora(setup.model.lora)
      .with_adapter(setup.model.adapter);
}

std::unique_ptr<TextStack> stack_of(const TextModelSetup& setup, const nn::Init& root) {
  if (!setup.causal) {
    return make_text_stack(setup.model, PartSetup{.init = root.child("encoder"),
                                                  .rows = setup.rows,
                                                  .pad = setup.pad,
                                                  .first_site = kTextEncoderSites});
  }
  const CausalModelOptions& stack = setup.causal->stack;
  return make_text_stack(stack, PartSetup{.init = root.child("decoder"),
                                          .d_model = d_model_of(stack),
                                          .rows = setup.rows,
                                          .pad = setup.pad,
                                          .embedding_scale = "none",
                                          .shared_rows = first_rows_of(stack),
                                          .first_site = kDecoderSites});
}

}  // namespace

TextModel::TextModel(const TextModelSetup& given)
    : options_(checked(given).model),
      is_causal_(given.causal.has_value()),
      kind_(!is_causal_ && options_.head == "none" ? TextHeadKind::kNone : given.head) {
  const nn::Init root = root_of(given);
  stack_ = stack_of(given, root);
  register_module(is_causal_ ? "decoder" : "encoder", stack_->module());
  add_head(given, root.child("head"));
}

void TextModel::add_head(const TextModelSetup& given, const nn::Init& init) {
  switch (kind_) {
    case TextHeadKind::kMaskedTokens: {
      const MaskedTokenHeadSetup setup{
          .init = init,
          .rows = given.rows,
          .num_classes = given.num_ids > 0 ? given.num_ids : given.rows,
          .tied = options_.tie_embeddings ? stack_->embedding() : nn::Embedding(nullptr),
          .label_smoothing = given.label_smoothing,
          .teacher = given.teacher};
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
      auto head = given.causal
                      ? std::make_shared<LabelHead>(given.causal->pool, stack_->width(), setup)
                      : std::make_shared<LabelHead>(options_, setup);
      labels_ = register_module("head", std::move(head));
      break;
    }
  }
}

at::Tensor TextModel::encode(const nn::PackedRows& input, const ForwardContext& context) {
  return stack_->forward(input, context);
}

at::Tensor TextModel::encode_of(const at::Tensor& wanted, const nn::PackedRows& input,
                                const ForwardContext& context) {
  return stack_->forward_of(wanted, input, context);
}

at::Tensor TextModel::pooled(const nn::PackedRows& input, const ForwardContext& context) {
  TORCH_CHECK(labels_, "[text_model] this head reads single rows, and pools none");
  if (labels_->reads_states()) {
    return labels_->behind_pooling(stack_->last_states(input, context), input, context);
  }
  if (!labels_->reads_one_row()) return labels_->pooled(encode(input, context), input, context);
  return labels_->behind_pooling(encode_of(labels_->places_of_rows(input.offsets), input, context),
                                 input, context);
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
  if (is_causal_) return {{"decoder.embedding.weight"}};
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
  const bool reads_some = masked_tokens_ || spans_ || (labels_ && labels_->reads_one_row());
  const double unwanted = reads_some ? length - head_rows : 0;
  return length * stack_->operations(length) - unwanted * stack_->operations_of_unwanted() +
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
