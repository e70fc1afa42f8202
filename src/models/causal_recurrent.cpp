#include "models/causal_recurrent.h"

#include <ATen/ATen.h>
#include <torch/nn/modules/container/modulelist.h>

#include <algorithm>
#include <utility>

#include "models/causal_recurrent_steps.h"
#include "models/operations.h"

namespace stretto::models {
namespace {

/// The keys of RecurrentPart, where a language model has others or none.
struct PartOptions {
  std::string cell;
  int64_t num_layers, residual_from;
  double dropout;
  bool variational;
  double recurrent_dropout, zoneout_hidden, zoneout_cell, forget_bias, init_bound;
};

RecurrentPart part_of(const CausalLstmOptions& options) {
  // The largest of its probabilities: whether masks of sequences are needed at all.
  const double most =
      std::max({options.input_dropout, options.hidden_dropout, options.output_dropout});
  return RecurrentPart(PartOptions{.cell = options.cell,
                                   .num_layers = options.num_layers,
                                   .residual_from = options.num_layers,
                                   .dropout = most,
                                   .variational = options.variational,
                                   .recurrent_dropout = 0,
                                   .zoneout_hidden = 0,
                                   .zoneout_cell = 0,
                                   .forget_bias = options.forget_bias,
                                   .init_bound = options.init_bound});
}

/// In the sum over all changes of a lane, what the change that leads to each row weighs: T / (T -
/// 1) for T rows, so that divided by T it is the mean; 0 at a first row. [N]
at::Tensor weights_of_changes(const nn::PackedRows& input, at::ScalarType type) {
  const at::Tensor lengths = at::diff(input.offsets.values.to(at::kLong));
  const at::Tensor length = lengths.repeat_interleave(lengths).to(type);
  return (length / (length - 1).clamp_min(1)).masked_fill(input.positions.eq(0), 0);
}

}  // namespace

CausalRecurrent::CausalRecurrent(const CausalLstmOptions& options, const PartSetup& setup,
                                 int64_t output_width)
    : part_(part_of(options)),
      options_(options),
      first_site_(setup.first_site),
      width_(output_width),
      embedding_(*this, setup, options.embedding_kind()) {
  add_layers(setup.init.child("layers"), setup.d_model);
}

void CausalRecurrent::add_layers(const nn::Init& init, int64_t d_model) {
  torch::nn::ModuleList list;
  int64_t in = d_model;
  for (int64_t i = 0; i < options_.num_layers; ++i) {
    const std::string number = std::to_string(i);
    const nn::Init place = init.child(number);
    const int64_t units = options_.units(d_model, i, width_);
    RecurrentPart first_weights = part_;
    first_weights.init_bound = options_.bound_of(units);
    layers_.emplace_back(place, first_weights, in, units);
    adapters_.push_back(nn::make_adapter(*layers_.back(), place, units));
    list->push_back(layers_.back());
    shapes_.push_back({.name = "h." + number, .width = units});
    if (part_.has_c()) shapes_.push_back({.name = "c." + number, .width = units});
    in = units;
  }
  register_module("layers", list);
}

std::vector<kernels::RecurrentState> CausalRecurrent::states_of(
    const std::vector<at::Tensor>& given, int64_t lanes) const {
  std::vector<kernels::RecurrentState> states(layers_.size());
  if (given.empty()) return states;
  TORCH_CHECK(given.size() == shapes_.size(), "[lstm] the state of a lane is ", shapes_.size(),
              " vectors, got ", given.size());
  for (size_t i = 0; i < given.size(); ++i) {
    TORCH_CHECK(
        given[i].dim() == 2 && given[i].size(0) == lanes && given[i].size(1) == shapes_[i].width,
        "[lstm] state ", shapes_[i].name, " must be [", lanes, ", ", shapes_[i].width, "], got ",
        given[i].sizes());
  }
  const size_t each = part_.has_c() ? 2 : 1;
  for (size_t i = 0; i < states.size(); ++i) {
    states[i].h = given[i * each];
    if (part_.has_c()) states[i].c = given[i * each + 1];
  }
  return states;
}

std::vector<at::Tensor> CausalRecurrent::flat(
    const std::vector<kernels::RecurrentState>& states) const {
  std::vector<at::Tensor> all;
  for (const kernels::RecurrentState& state : states) {
    all.push_back(state.h);
    if (part_.has_c()) all.push_back(state.c);
  }
  return all;
}

at::Tensor CausalRecurrent::words(const nn::PackedRows& input,
                                  const ForwardContext& context) const {
  const at::Tensor x = embedding_.forward(input);
  if (!input.ids.defined()) return x;
  // The key of a row is its token: all its occurrences in an update are dropped, or none.
  const kernels::Dropout of_words =
      context.dropout(input.ids).at(options_.embedding_dropout, first_site_ + kVocabularySite);
  if (!of_words.active()) return x;
  const at::Tensor ones = at::ones({x.size(0), 1}, x.options().requires_grad(false));
  return x * kernels::dropout(ones, of_words);
}

CausalRecurrentPass CausalRecurrent::forward(const nn::PackedRows& input,
                                             const std::vector<at::Tensor>& state,
                                             const ForwardContext& context) {
  std::vector<kernels::RecurrentState> states = states_of(state, input.offsets.values.size(0) - 1);
  const RecurrentPass pass(part_, input, context, first_site_);
  at::Tensor h = words(input, context);
  for (size_t i = 0; i < layers_.size(); ++i) {
    const auto number = static_cast<int64_t>(i);
    const double p = i == 0 ? options_.input_dropout : options_.hidden_dropout;
    const kernels::Dropout weight_drop =
        pass.weight_drop(number, options_.weight_drop, layers_[i]->hidden->weight.size(0));
    kernels::RecurrentOutput out =
        layers_[i]->forward(pass.drop_input(h, number, p), states[i],
                            pass.of(number, Direction::kForward), weight_drop);
    h = nn::adapted(adapters_[i], out.h);
    states[i] = std::move(out.last);
  }
  CausalRecurrentPass done{.rows = pass.drop_input(h, options_.num_layers, options_.output_dropout),
                           .state = flat(states)};
  if (context.training && options_.has_regulariser()) {
    done.regulariser = regulariser(done.rows, h, input);
  }
  return done;
}

at::Tensor CausalRecurrent::regulariser(const at::Tensor& rows, const at::Tensor& h,
                                        const nn::PackedRows& input) const {
  const auto width = static_cast<double>(width_);
  at::Tensor sum = at::zeros({}, h.options().requires_grad(false));
  // Row by row first: that order of additions does not depend on threads.
  if (options_.activation_reg > 0) {
    sum = sum + rows.square().sum(1).sum() * (options_.activation_reg / width);
  }
  const int64_t changes = h.size(0) - 1;
  if (options_.temporal_reg > 0 && changes > 0) {
    const at::Tensor change = h.narrow(0, 1, changes) - h.narrow(0, 0, changes);
    const at::Tensor weight = weights_of_changes(input, h.scalar_type()).narrow(0, 1, changes);
    sum = sum + (change.square().sum(1) * weight).sum() * (options_.temporal_reg / width);
  }
  return sum;
}

double CausalRecurrent::operations() const {
  return weight_operations(*this);
}

std::unique_ptr<CausalRecurrentSteps> CausalRecurrent::start(int64_t sources,
                                                             int64_t lanes_per_source) {
  const torch::NoGradGuard no_grad;
  auto self = std::dynamic_pointer_cast<CausalRecurrent>(shared_from_this());
  return std::make_unique<CausalRecurrentSteps>(std::move(self), sources, lanes_per_source);
}

}  // namespace stretto::models
