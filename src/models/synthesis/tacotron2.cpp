#include "models/synthesis/tacotron2.h"

#include <ATen/ATen.h>

#include <utility>
#include <vector>

#include "models/operations.h"
#include "nn/watch.h"

namespace stretto::models {
namespace {

/// Plain LSTMs with zoneout.
RecurrentPart lstm_part(double zoneout) {
  LstmEncoderOptions options;
  options.num_layers = 2;
  options.residual_from = 2;
  options.dropout = 0;
  options.zoneout_hidden = options.zoneout_cell = zoneout;
  options.init_bound = 0;
  return RecurrentPart(options);
}

nn::BatchNormOptions tacotron_norm(const Tacotron2Options& options) {
  return {.momentum = options.norm_momentum, .epsilon = options.norm_epsilon};
}

nn::InitRule symbol_table_rule() {
  return {.distribution = nn::Distribution::kXavierUniform, .number = 1};
}

}  // namespace

Tacotron2EncoderImpl::Tacotron2EncoderImpl(const nn::Init& init, const Tacotron2Options& options,
                                           const SynthesisPart& part)
    : part_(lstm_part(options.zoneout)) {
  embedding_ = register_module(
      "embedding", nn::Embedding(init.child("embedding"), part.num_symbols, options.embedding_dim,
                                 part.pad, symbol_table_rule()));
  ConvolutionStackOptions form;
  form.in = options.embedding_dim;
  form.channels.assign(static_cast<size_t>(options.encoder_convolutions), options.encoder_dim);
  form.kernel = options.encoder_kernel;
  form.dropout = options.conv_dropout;
  form.norm = tacotron_norm(options);
  form.first_site = kSynthesisEncoder;
  convolutions_ =
      register_module("convolutions", ConvolutionStack(init.child("convolutions"), form));
  const int64_t in = convolutions_->width(), units = options.encoder_dim / 2;
  forward_ = register_module("forward", RecurrentLayer(init.child("forward"), part_, in, units));
  backward_ = register_module("backward", RecurrentLayer(init.child("backward"), part_, in, units));
}

at::Tensor Tacotron2EncoderImpl::forward(const nn::PackedRows& text,
                                         const ForwardContext& context) const {
  const nn::DropoutSource dropout = context.dropout(text.row_keys);
  const at::Tensor x = convolutions_->forward(
      embedding_->forward(text.ids, {}, {}, nn::RowScale::kOne), text.offsets, dropout);
  const RecurrentPass pass(part_, text, context, kSynthesisEncoderLstm);
  const auto run = [&](const RecurrentLayer& layer, Direction direction) {
    return layer->forward(x, {}, pass.of(0, direction)).h;
  };
  return nn::watch(
      *this,
      at::cat({run(forward_, Direction::kForward), run(backward_, Direction::kBackward)}, 1));
}

Tacotron2DecoderImpl::Tacotron2DecoderImpl(const nn::Init& init, const Tacotron2Options& options,
                                           const FrameParts& parts, int64_t memory_width)
    : options_(options), parts_(parts), part_(lstm_part(options.zoneout)) {
  const int64_t units = options.decoder_dim, keys = options.attention_dim;
  const int64_t seen = units + memory_width;
  const nn::LinearOptions plain{.bias = false};
  prenet_ = register_module(
      "prenet", PreNet(init.child("prenet"), PreNetOptions{.in = parts.decoder_width(),
                                                           .num_layers = options.prenet_layers,
                                                           .dim = options.prenet_dim,
                                                           .dropout = options.prenet_dropout}));
  lower_ = register_module("lower",
                           RecurrentLayer(init.child("lower"), part_, options.prenet_dim, units));
  context_ = register_module(
      "context", part_.linear(init.child("context"), memory_width, 4 * units, 4, /*bias=*/false));
  upper_ = register_module("upper", RecurrentLayer(init.child("upper"), part_, seen, units));
  key_ = register_module("key", nn::Linear(init.child("key"), memory_width, keys, plain));
  query_ = register_module("query", nn::Linear(init.child("query"), units, keys, plain));
  // Its matrix has no name of its own, so no rule applies to it.
  const nn::Linear vector(init.child("score").with_rules({}), keys, 1, plain);
  score_ = register_parameter("score",
                              init.vector("score", vector->weight.detach().view({keys}).clone()));
  location_filters_ = register_parameter(
      "location_filters", init.xavier_uniform("location_filters", options.location_filters,
                                              2 * options.location_kernel));
  location_dense_ = register_parameter(
      "location_dense", init.xavier_uniform("location_dense", keys, options.location_filters));
  projection_ = register_module(
      "projection",
      nn::Linear(init.child("projection"), seen, options.reduction * parts.decoder_width()));
  stop_ = register_module("stop", nn::Linear(init.child("stop"), seen, options.reduction));
}

at::Tensor Tacotron2DecoderImpl::location() const {
  return at::matmul(location_dense_, location_filters_);
}

kernels::AttentiveWeights Tacotron2DecoderImpl::attentive_weights() const {
  return {.recurrent = lower_->weights(),
          .context = context_->matrix(),
          .query = query_->matrix(),
          .score = score_,
          .location = location()};
}

kernels::Memory Tacotron2DecoderImpl::memory(const at::Tensor& rows,
                                             const kernels::Offsets& offsets) const {
  return {.keys = key_->forward(rows), .values = rows, .offsets = offsets};
}

Tacotron2DecoderImpl::Written Tacotron2DecoderImpl::forward(const nn::PackedRows& steps,
                                                            const kernels::Memory& memory,
                                                            const nn::DropoutSource& masks,
                                                            const ForwardContext& context,
                                                            WantsAttention wants) const {
  const RecurrentPass pass(part_, steps, context, kSynthesisDecoder);
  const nn::DropoutSource dropout = context.dropout(steps.row_keys);
  const auto dropped = [&](const at::Tensor& h, uint64_t layer) {
    return kernels::dropout(h,
                            dropout.at(options_.decoder_dropout, kSynthesisDecoderOutput + layer));
  };
  const kernels::AttentiveOutput lower = kernels::attentive(
      lower_->gates(prenet_->forward(steps.values, masks)), attentive_weights(), memory, {},
      {.recurrent = pass.of(0, Direction::kForward),
       .score = kernels::Score::kAdditive,
       .wants_weights = wants != WantsAttention::kNo,
       .weights_learn = wants == WantsAttention::kGradient});
  const at::Tensor h1 = nn::watch(*lower_, lower.h), seen = nn::watch(*context_, lower.context);
  const at::Tensor above = at::cat({dropped(h1, 0), seen}, 1);
  const at::Tensor h2 = upper_->forward(above, {}, pass.of(1, Direction::kForward)).h;
  const at::Tensor rows = at::cat({dropped(h2, 1), seen}, 1);
  return {.frames = projection_->forward(rows),
          .stop = stop_->forward(rows),
          .attention = lower.weights};
}

Tacotron2StepWeights Tacotron2DecoderImpl::step_weights() const {
  Tacotron2StepWeights all;
  for (const nn::Linear& layer : prenet_->layers()) all.prenet.push_back(layer->matrix());
  all.lower = attentive_weights();
  all.lower_input = lower_->input->matrix();
  all.lower_bias = lower_->input->bias;
  all.upper_input = upper_->input->matrix();
  all.upper_bias = upper_->input->bias;
  all.upper_hidden = upper_->hidden->matrix();
  all.output = at::cat({projection_->matrix(), stop_->matrix()});
  all.output_bias = at::cat({projection_->bias, stop_->bias});
  all.prenet_dropout = options_.prenet_dropout;
  all.zoneout = options_.zoneout;
  all.frame_width = parts_.decoder_width();
  all.frames_per_step = options_.reduction;
  return all;
}

double Tacotron2DecoderImpl::operations_of_attention() const {
  const auto keys = static_cast<double>(options_.attention_dim);
  const double taps = 2.0 * static_cast<double>(options_.location_kernel);
  return attention_operations(keys, static_cast<double>(context_->weight.size(1)), 1) +
         2 * keys * taps;
}

Tacotron2::Tacotron2(const Tacotron2Options& options, const SynthesisPart& part)
    : SynthesisModel(options, part.parts, part.num_speakers) {
  encoder_ =
      register_module("encoder", Tacotron2Encoder(part.init.child("encoder"), options, part));
  voice_ = register_module("voice", Voice(part.init.child("voice"), options, part));
  decoder_ =
      register_module("decoder", Tacotron2Decoder(part.init.child("decoder"), options, part.parts,
                                                  options.encoder_dim + voice_->width()));
  if (options.postnet_layers > 0) {
    ConvolutionStackOptions form;
    form.in = part.parts.decoder_width();
    form.channels.assign(static_cast<size_t>(options.postnet_layers), options.postnet_dim);
    form.channels.back() = form.in;
    form.kernel = options.postnet_kernel;
    form.tanh = form.linear_end = true;
    form.dropout = options.conv_dropout;
    form.norm = tacotron_norm(options);
    form.first_site = kSynthesisPostnet;
    postnet_ = register_module("postnet", ConvolutionStack(part.init.child("postnet"), form));
  }
  if (part.parts.has_both()) {
    magnitude_net_ = register_module("magnitude", MagnitudeNet(part.init.child("magnitude"),
                                                               part.parts, tacotron_norm(options)));
  }
}

kernels::Memory Tacotron2::memory(const SynthesisInput& input,
                                  const ForwardContext& context) const {
  const at::Tensor rows = encoder_->forward(input.text, context);
  return decoder_->memory(voice_->beside(rows, input), input.text.offsets);
}

at::Tensor Tacotron2::behind_postnet(const at::Tensor& frames, const nn::PackedRows& rows,
                                     const ForwardContext& context) const {
  if (!postnet_) return frames;
  return frames + postnet_->forward(frames, rows.offsets, context.dropout(rows.row_keys));
}

SynthesisOutput Tacotron2::forward(const SynthesisInput& input, const nn::PackedRows& frames,
                                   const ForwardContext& context, WantsAttention wants) {
  const DecoderSteps steps(frames, parts().decoder_width(), reduction());
  const Tacotron2DecoderImpl::Written written =
      decoder_->forward(steps.rows(), memory(input, context),
                        prenet_masks(input, steps.rows(), context), context, wants);
  SynthesisOutput out;
  out.before = steps.of_frames(written.frames);
  out.stop_logits = steps.of_frames(written.stop).squeeze(1);
  out.attention = written.attention;
  out.steps = steps.rows().offsets;
  out.reduction = reduction();
  out.after = behind_postnet(out.before, frames, context);
  if (magnitude_net_) {
    out.magnitude =
        magnitude_net_->forward(out.after, frames.offsets, context.dropout(frames.row_keys));
  }
  return out;
}

std::unique_ptr<decoding::FrameModel> Tacotron2::start(const SynthesisInput& input) {
  const at::NoGradGuard no_grad;
  TORCH_CHECK(input.sentence_keys.defined(),
              "[synthesis] the pre-net drops in free running too: give sentence_keys()");
  return make_tacotron2_steps(decoder_->step_weights(), memory(input, {}), input.sentence_keys,
                              input.prenet_seed);
}

at::Tensor Tacotron2::finish(const at::Tensor& frames, const kernels::Offsets& offsets) {
  nn::PackedRows rows;
  rows.offsets = offsets;
  const at::Tensor after = behind_postnet(frames, rows, {});
  if (!magnitude_net_) return after;
  return at::cat({after, magnitude_net_->forward(after, offsets, {})}, 1);
}

double Tacotron2::operations(double symbols, double frames) const {
  const double steps = frames / static_cast<double>(reduction());
  double sum =
      symbols * (weight_operations(*encoder_) + weight_operations(*voice_)) +
      steps * (weight_operations(*decoder_) + symbols * decoder_->operations_of_attention());
  if (postnet_) sum += frames * weight_operations(*postnet_);
  if (magnitude_net_) sum += frames * weight_operations(*magnitude_net_);
  return sum;
}

}  // namespace stretto::models
