#include "models/encoders/recurrent.h"

#include <ATen/ops/cat.h>

#include <string>
#include <utility>

#include "models/operations.h"

namespace stretto::models {
namespace {

/// Where the parameters of the two directions and of their adapter live; all work is done by these.
struct BothDirectionsImpl : torch::nn::Module {
  BothDirectionsImpl(const RecurrentLayer& forward, const RecurrentLayer& backward) {
    register_module("forward", forward);
    register_module("backward", backward);
  }
};

}  // namespace

RecurrentEncoder::RecurrentEncoder(const LstmEncoderOptions& options, const PartSetup& setup)
    : part_(options),
      first_site_(setup.first_site),
      width_(options.width(setup.d_model, options.num_layers - 1)),
      embedding_(*this, setup, options.embedding_kind()) {
  torch::nn::ModuleList list;
  int64_t in = setup.d_model;
  for (int64_t i = 0; i < options.num_layers; ++i) {
    const int64_t out = options.width(setup.d_model, i);
    check_residual(part_, i, in, out);
    add_layer(list, setup.init.child("layers").child(std::to_string(i)), in,
              options.units(setup.d_model), options.is_bidirectional(i));
    in = out;
  }
  register_module("layers", list);
}

void RecurrentEncoder::add_layer(torch::nn::ModuleList& list, const nn::Init& init, int64_t in,
                                 int64_t units, bool bidirectional) {
  EncoderLayer layer;
  if (bidirectional) {
    layer.forward = RecurrentLayer(init.child("forward"), part_, in, units);
    layer.backward = RecurrentLayer(init.child("backward"), part_, in, units);
    const auto both = std::make_shared<BothDirectionsImpl>(layer.forward, layer.backward);
    layer.adapter = nn::make_adapter(*both, init, 2 * units);
    list->push_back(both);
  } else {
    layer.forward = RecurrentLayer(init, part_, in, units);
    layer.adapter = nn::make_adapter(*layer.forward, init, units);
    list->push_back(layer.forward);
  }
  layers_.push_back(layer);
}

at::Tensor RecurrentEncoder::run(const EncoderLayer& layer, const at::Tensor& x,
                                 const RecurrentPass& pass, int64_t number,
                                 std::vector<at::Tensor>& state) const {
  const at::Tensor dropped = pass.drop_input(x, number);
  kernels::RecurrentOutput out =
      layer.forward->forward(dropped, {}, pass.of(number, Direction::kForward));
  if (layer.backward) {
    const kernels::RecurrentOutput back =
        layer.backward->forward(dropped, {}, pass.of(number, Direction::kBackward));
    out.h = at::cat({out.h, back.h}, 1);
    out.last.h = at::cat({out.last.h, back.last.h}, 1);
    if (part_.has_c()) out.last.c = at::cat({out.last.c, back.last.c}, 1);
  }
  state.push_back(out.last.h);
  if (part_.has_c()) state.push_back(out.last.c);
  const at::Tensor h = nn::adapted(layer.adapter, out.h);
  return part_.has_residual(number) ? h + x : h;
}

Encoded RecurrentEncoder::forward(const nn::PackedRows& input, const ForwardContext& context) {
  const RecurrentPass pass(part_, input, context, first_site_);
  at::Tensor x = embedding_.forward(input);
  std::vector<at::Tensor> state;
  for (size_t i = 0; i < layers_.size(); ++i) {
    x = run(layers_[i], x, pass, static_cast<int64_t>(i), state);
  }
  return {.rows = input, .keys = x, .values = {}, .state = std::move(state)};
}

double RecurrentEncoder::operations(double /*length*/) const {
  return weight_operations(*this);
}

std::shared_ptr<Encoder> make_lstm_encoder(const LstmEncoderOptions& options,
                                           const PartSetup& setup) {
  return std::make_shared<RecurrentEncoder>(options, setup);
}

}  // namespace stretto::models
