#include "models/causal_model.h"

#include <ATen/ops/zeros.h>

#include <utility>

#include "base/error.h"
#include "models/causal_bodies.h"
#include "models/heads/adaptive.h"
#include "models/heads/token.h"
#include "models/option_conflicts.h"
#include "models/registry.h"
#include "models/vocabulary_steps.h"
#include "nn/init_rules.h"
#include "nn/lora.h"

namespace stretto::models {
namespace {

int64_t num_classes_of(const CausalModelSetup& setup) {
  return setup.num_ids > 0 ? setup.num_ids : setup.rows;
}

void require_none(const std::vector<OptionConflict>& wrong) {
  if (wrong.empty()) return;
  throw Error(ExitCode::kUsage, wrong.front().keys.front() + ": " + wrong.front().what,
              wrong.front().hint);
}

const CausalModelOptions& checked(const CausalModelSetup& setup, const nn::OutputLosses& losses) {
  require_none(option_conflicts(setup.model));
  require_none(vocabulary_conflicts(setup.model, num_classes_of(setup)));
  if (logit_softcap_of(setup.model) > 0 && losses.pair) {
    throw Error(ExitCode::kUsage, "model.logit_softcap: R-Drop takes no bent logits",
                "set loss.r_drop = 0, or model.logit_softcap = 0");
  }
  if (adaptive_softmax_of(setup.model).is_on() && losses.pair) {
    throw Error(ExitCode::kUsage,
                "model.adaptive_softmax.cutoffs: R-Drop takes no adaptive softmax",
                "set loss.r_drop = 0, or leave the cutoffs out");
  }
  TORCH_CHECK(setup.rows > 0, "[causal_model] the table of tokens needs rows");
  return setup.model;
}

nn::Init root_of(const CausalModelSetup& setup) {
  const std::vector<std::string>& given = init_of(setup.model);
  std::vector<nn::InitRule> rules(given.size());
  for (size_t i = 0; i < rules.size(); ++i) {
    const auto problem = nn::read_init_rule(given[i], rules[i]);
    if (problem) throw Error(ExitCode::kUsage, "model.init: " + problem->what, problem->hint);
  }
  const nn::Init drawn =
      setup.draws_weights ? nn::Init(setup.seed, setup.device) : nn::Init::unset(setup.device);
  return with_rules_of(setup.model, drawn)
      .with_rules(std::move(rules))
      .with_lora(lora_of(setup.model))
      .with_adapter(adapter_of(setup.model));
}

std::shared_ptr<Head> make_head(const CausalModelSetup& setup, const CausalBody& body,
                                const nn::Init& init, nn::OutputLosses losses) {
  const nn::Embedding tied = ties_output(setup.model) ? body.embedding() : nn::Embedding(nullptr);
  const nn::InitRule first_rows = first_rows_of(setup.model);
  const AdaptiveOptions& groups = adaptive_softmax_of(setup.model);
  if (groups.is_on()) {
    return std::make_shared<AdaptiveHead>(AdaptiveHeadSetup{.init = init,
                                                            .width = body.width(),
                                                            .num_classes = num_classes_of(setup),
                                                            .groups = groups,
                                                            .tied = tied,
                                                            .first_rows = first_rows},
                                          std::move(losses));
  }
  return std::make_shared<TokenHead>(TokenHeadSetup{.init = init,
                                                    .width = body.width(),
                                                    .rows = setup.rows,
                                                    .num_classes = num_classes_of(setup),
                                                    .tied = tied,
                                                    .bias = has_output_bias(setup.model),
                                                    .softcap = logit_softcap_of(setup.model),
                                                    .first_rows = first_rows},
                                     std::move(losses));
}

}  // namespace

CausalModel::CausalModel(const CausalModelSetup& setup, nn::OutputLosses losses)
    : options_(checked(setup, losses)) {
  const nn::Init root = root_of(setup);
  body_ = make_causal_body(options_, PartSetup{.init = root.child("decoder"),
                                               .d_model = d_model_of(options_),
                                               .rows = setup.rows,
                                               .pad = setup.specials.pad,
                                               .embedding_scale = "none",
                                               .shared_rows = first_rows_of(options_),
                                               .first_site = kDecoderSites});
  register_module("decoder", body_->module());
  head_ =
      register_module("output", make_head(setup, *body_, root.child("output"), std::move(losses)));
}

CausalPass CausalModel::forward(const nn::PackedRows& input, const std::vector<at::Tensor>& carry,
                                const ForwardContext& context) {
  TORCH_CHECK(carry.empty() || carries_state(options_), "[causal_model] a `", options_.name(),
              "` has no state, and is given one");
  const nn::LoraDropoutScope scope(context.dropout(input.row_keys));
  return body_->forward(input, carry, context);
}

std::unique_ptr<decoding::StepModel> CausalModel::start(int64_t sources, int64_t lanes_per_source) {
  const torch::NoGradGuard no_grad;
  return steps_of_vocabulary({.model = shared_from_this(),
                              .steps = body_->start(sources, lanes_per_source),
                              .head = head_,
                              .lanes = sources * lanes_per_source});
}

std::vector<at::Tensor> CausalModel::first_carry(int64_t lanes) const {
  std::vector<at::Tensor> states;
  for (const CarryShape& shape : carry_shapes()) {
    states.push_back(at::zeros({lanes, shape.width}, at::dtype(at::kFloat).device(device())));
  }
  return states;
}

std::vector<VocabularyTable> CausalModel::vocabulary_tables() const {
  std::vector<VocabularyTable> tables{{"decoder.embedding.weight"}};
  const bool has_table = !ties_output(options_) && !adaptive_softmax_of(options_).is_on();
  if (has_table) tables.push_back({"output.weight"});
  if (has_output_bias(options_)) tables.push_back({"output.bias"});
  return tables;
}

std::vector<optim::TiedName> CausalModel::tied_names() const {
  if (!ties_output(options_)) return {};
  return {{"output.weight", "decoder.embedding.weight"}};
}

double CausalModel::operations(double length) const {
  return body_->operations(length) + head_->operations();
}

std::shared_ptr<CausalModel> make_causal_model(const CausalModelSetup& setup, nn::OutputLoss loss,
                                               nn::OutputLoss pair_loss) {
  return std::make_shared<CausalModel>(
      setup, nn::OutputLosses{.one = std::move(loss), .pair = std::move(pair_loss)});
}

ModelCost cost_of(const CausalModel& model, double length) {
  return {.parameters = num_parameters(model), .training_flops = 3 * model.operations(length)};
}

}  // namespace stretto::models
