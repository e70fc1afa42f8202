#include "models/decoders/recurrent.h"

#include <ATen/ATen.h>
#include <torch/nn/modules/container/modulelist.h>

#include <cmath>
#include <string>
#include <utility>

#include "models/decoders/recurrent_step.h"
#include "models/decoders/recurrent_stream.h"
#include "models/lanes.h"
#include "models/memory.h"
#include "models/operations.h"
#include "models/packed.h"
#include "nn/watch.h"

namespace stretto::models {
namespace {

kernels::Score score_named(const std::string& name) {
  if (name == "bahdanau") return kernels::Score::kAdditive;
  if (name == "bahdanau_normed") return kernels::Score::kNormedAdditive;
  return name == "luong" ? kernels::Score::kDot : kernels::Score::kScaledDot;
}

/// For each row the one before it in its sequence; zero for a first one.
at::Tensor rows_before(const at::Tensor& rows, const at::Tensor& positions) {
  if (rows.size(0) == 0) return rows;
  const at::Tensor before =
      at::cat({at::zeros({1, rows.size(1)}, rows.options()), rows.narrow(0, 0, rows.size(0) - 1)});
  return before.masked_fill(positions.eq(0).unsqueeze(1), 0);
}

}  // namespace

RecurrentAttentionImpl::RecurrentAttentionImpl(const nn::Init& init,
                                               const LstmDecoderOptions& options,
                                               const Widths& widths)
    : kind_(score_named(options.attention)) {
  const RecurrentPart part(options);
  const bool is_normed = kind_ == kernels::Score::kNormedAdditive;
  key = register_module(
      "key", part.linear(init.child("key"), widths.memory, widths.keys, 1, /*bias=*/false));
  if (options.has_query()) {
    query = register_module(
        "query", part.linear(init.child("query"), widths.state, widths.keys, 1, is_normed));
    // Its matrix has no name of its own, so no rule applies to it.
    const nn::Init unruled = init.child("score").with_rules({});
    const nn::Linear vector = part.linear(unruled, widths.keys, 1, 1, /*bias=*/false);
    score = register_parameter(
        "score", init.vector("score", vector->weight.detach().view({widths.keys}).clone()));
  }
  TORCH_CHECK(options.has_query() || widths.keys == widths.state, "[lstm] attention = \"",
              options.attention, "\" compares states of ", widths.state, " with keys of ",
              widths.keys, "; leave attention_width at 0");
  if (!is_normed && kind_ != kernels::Score::kScaledDot) return;
  const double first = is_normed ? std::sqrt(1.0 / static_cast<double>(widths.keys)) : 1.0;
  gain = register_parameter("gain", init.constant("gain", 1, first));
}

kernels::Memory RecurrentAttentionImpl::memory(const Encoded& encoded) const {
  const nn::LoraDropoutScope of_memory(nn::LoraDropoutScope::of_rows(encoded.rows.row_keys));
  return {.keys = key->forward(encoded.keys),
          .values = encoded.attended(),
          .offsets = encoded.rows.offsets};
}

RecurrentDecoder::RecurrentDecoder(const LstmDecoderOptions& options, const PartSetup& setup)
    : part_(options),
      d_model_(setup.d_model),
      units_(options.units(setup.d_model)),
      memory_width_(required_memory(setup, "lstm")),
      first_site_(setup.first_site),
      context_above_(options.context_to_all()),
      context_is_new_(options.context_to == "gnmt_v2"),
      output_attends_(options.output == "attended"),
      starts_at_encoder_(options.initial_state == "last"),
      embedding_(*this, setup, options.embedding_kind()) {
  add_layers(setup.init.child("layers"));
  const RecurrentAttentionImpl::Widths widths{
      .state = units_, .keys = options.key_width(setup.d_model), .memory = memory_width_};
  attention_ = register_module("attention",
                               RecurrentAttention(setup.init.child("attention"), options, widths));
  if (options.initial_state == "mean") {
    initial_ = register_module(
        "initial", part_.linear(setup.init.child("initial"), memory_width_,
                                part_.num_layers * units_, part_.num_layers, /*bias=*/true));
  }
  if (output_attends_ || units_ != d_model_) {
    const int64_t in = output_attends_ ? units_ + memory_width_ : units_;
    output_ = register_module("output", part_.linear(setup.init.child("output"), in, d_model_, 1,
                                                     /*bias=*/false));
  }
}

void RecurrentDecoder::add_layers(const nn::Init& init) {
  check_residual(part_, 0, d_model_, units_);
  const int64_t above = units_ + (context_above_ ? memory_width_ : 0);
  torch::nn::ModuleList list;
  for (int64_t i = 0; i < part_.num_layers; ++i) {
    const nn::Init place = init.child(std::to_string(i));
    layers_.emplace_back(place, part_, i == 0 ? d_model_ : above, units_);
    adapters_.push_back(nn::make_adapter(*layers_.back(), place, units_));
    list->push_back(layers_.back());
  }
  const int64_t gates = kernels::gates_of(part_.cell);
  context_ = layers_[0]->register_module(
      "context", part_.linear(init.child("0").child("context"), memory_width_, gates * units_,
                              gates, /*bias=*/false));
  register_module("layers", list);
}

kernels::AttentiveWeights RecurrentDecoder::attentive_weights() const {
  kernels::AttentiveWeights weights = attentive_weights_or_codes();
  weights.recurrent = layers_[0]->weights();
  weights.context = context_->matrix();
  if (attention_->query) weights.query = attention_->query->matrix();
  return weights;
}

kernels::AttentiveWeights RecurrentDecoder::attentive_weights_or_codes() const {
  kernels::AttentiveWeights weights{.recurrent = layers_[0]->weights_or_codes(),
                                    .context = context_->operand(),
                                    .score = attention_->score,
                                    .gain = attention_->gain};
  if (attention_->query) {
    weights.query = attention_->query->operand();
    weights.query_bias = attention_->query->bias;
  }
  return weights;
}

std::vector<kernels::RecurrentState> RecurrentDecoder::initial_states(const Encoded& memory) const {
  if (starts_at_encoder_) return states_of_encoder(memory);
  std::vector<kernels::RecurrentState> states(layers_.size());
  if (!initial_) return states;
  const std::vector<at::Tensor> first =
      initial_->forward(mean_rows(memory.attended(), memory.rows.offsets))
          .chunk(part_.num_layers, 1);
  for (size_t i = 0; i < states.size(); ++i) {
    states[i].h = first[i].tanh();
    if (part_.has_c()) states[i].c = first[i].contiguous();
  }
  return states;
}

std::vector<kernels::RecurrentState> RecurrentDecoder::states_of_encoder(
    const Encoded& memory) const {
  const size_t each = part_.has_c() ? 2 : 1;
  TORCH_CHECK(memory.state.size() == layers_.size() * each,
              "[lstm] initial_state = \"last\" needs an encoder with as many layers as the decoder "
              "and the same cell: expected ",
              layers_.size() * each, " last states, got ", memory.state.size());
  std::vector<kernels::RecurrentState> states(layers_.size());
  for (size_t i = 0; i < states.size(); ++i) {
    states[i].h = memory.state[i * each];
    if (part_.has_c()) states[i].c = memory.state[i * each + 1];
    TORCH_CHECK(states[i].h.size(1) == units_, "[lstm] initial_state = \"last\": layer ", i,
                " of the encoder has ", states[i].h.size(1), " units, the decoder's ", units_);
  }
  return states;
}

kernels::AttentiveOutput RecurrentDecoder::attend(const at::Tensor& embedded, const Encoded& memory,
                                                  const RecurrentPass& pass,
                                                  const kernels::RecurrentState& initial,
                                                  bool wants_weights) const {
  const at::Tensor gates = layers_[0]->gates(pass.drop_input(embedded, 0));
  kernels::AttentiveOutput out =
      kernels::attentive(gates, attentive_weights(), attention_->memory(memory),
                         {.h = initial.h, .c = initial.c, .context = {}},
                         {.recurrent = pass.of(0, Direction::kForward),
                          .score = attention_->kind(),
                          .wants_weights = wants_weights});
  out.h = nn::watch(*layers_[0], out.h);
  out.context = nn::watch(*attention_, out.context);
  return out;
}

at::Tensor RecurrentDecoder::run_upper_layers(const at::Tensor& embedded, const at::Tensor& h,
                                              const at::Tensor& context, const at::Tensor& given,
                                              const UpperLayers& upper) const {
  const auto add = [&](int64_t layer, const at::Tensor& output, const at::Tensor& below) {
    const at::Tensor out = nn::adapted(adapters_[static_cast<size_t>(layer)], output);
    return part_.has_residual(layer) ? out + below : out;
  };
  at::Tensor x = add(0, h, embedded);
  for (int64_t i = 1; i < part_.num_layers; ++i) {
    const at::Tensor in = context_above_ ? at::cat({x, given}, 1) : x;
    x = add(i, upper.run(upper.drop(in, i), i), x);
  }
  return finish(x, context);
}

at::Tensor RecurrentDecoder::finish(const at::Tensor& top, const at::Tensor& context) const {
  if (!output_) return top;
  if (!output_attends_) return output_->forward(top);
  return output_->forward(at::cat({top, context}, 1)).tanh();
}

at::Tensor RecurrentDecoder::forward(const nn::PackedRows& input, const Encoded& memory,
                                     const ForwardContext& context) {
  const RecurrentPass pass(part_, input, context, first_site_);
  const std::vector<kernels::RecurrentState> initial = initial_states(memory);
  const at::Tensor embedded = embedding_.forward(input);
  const kernels::AttentiveOutput first = attend(embedded, memory, pass, initial[0], false);
  const at::Tensor given =
      context_is_new_ ? first.context : rows_before(first.context, input.positions);
  const UpperLayers upper{
      .drop = [&](const at::Tensor& x, int64_t layer) { return pass.drop_input(x, layer); },
      .run =
          [&](const at::Tensor& x, int64_t layer) {
            const auto at_layer = static_cast<size_t>(layer);
            return layers_[at_layer]
                ->forward(x, initial[at_layer], pass.of(layer, Direction::kForward))
                .h;
          }};
  return run_upper_layers(embedded, first.h, first.context, given, upper);
}

double RecurrentDecoder::operations(double length, double memory_length) const {
  const double first = initial_ ? weight_operations(*initial_) : 0;  // once a sequence
  const auto keys = static_cast<double>(attention_->key->weight.size(0));
  return weight_operations(*this) - memory_operations() - first + first / length +
         attention_operations(keys, static_cast<double>(memory_width_), memory_length);
}

double RecurrentDecoder::memory_operations() const {
  return weight_operations(*attention_->key);
}

std::unique_ptr<StepDecoder> RecurrentDecoder::start(const Encoded& memory,
                                                     int64_t lanes_per_source) {
  const torch::NoGradGuard no_grad;
  auto self = std::dynamic_pointer_cast<RecurrentDecoder>(shared_from_this());
  return std::make_unique<RecurrentStepDecoder>(std::move(self), memory, lanes_per_source);
}

std::unique_ptr<StreamDecoder> RecurrentDecoder::start_stream() {
  if (!attention_->key->weight.is_cpu()) return nullptr;
  const torch::NoGradGuard no_grad;
  auto self = std::dynamic_pointer_cast<RecurrentDecoder>(shared_from_this());
  return std::make_unique<RecurrentStreamDecoder>(std::move(self));
}

std::vector<at::Tensor> RecurrentDecoder::attention(const nn::PackedRows& input,
                                                    const Encoded& memory, int64_t layer) {
  TORCH_CHECK(layer == -1 || layer == 0, "[lstm] attention of layer ", layer,
              ": only layer 0 of a recurrent decoder attends; set decode.alignment_layer to 0");
  const torch::NoGradGuard no_grad;
  const RecurrentPass pass(part_, input, {}, first_site_);
  const at::Tensor weights =
      attend(embedding_.forward(input), memory, pass, initial_states(memory)[0], true).weights;
  return attention_blocks(weights, input.offsets, memory.rows.offsets);
}

std::shared_ptr<Decoder> make_lstm_decoder(const LstmDecoderOptions& options,
                                           const PartSetup& setup) {
  return std::make_shared<RecurrentDecoder>(options, setup);
}

}  // namespace stretto::models
