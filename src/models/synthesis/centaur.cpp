#include "models/synthesis/centaur.h"

#include <ATen/ATen.h>

#include <cmath>
#include <string>
#include <utility>

#include "kernels/convolution/convolution.h"
#include "models/operations.h"
#include "nn/watch.h"

namespace stretto::models {
namespace {

/// Places of a layer that drop, counted from the layer's first site; causal convolutions in front
/// of the layers have one each.
enum class CentaurPlace : uint64_t { kConvolved, kWeights, kAttended, kFed, kFedInner, kPlaces };

uint64_t centaur_site(size_t layer, CentaurPlace place) {
  return kSynthesisDecoder + layer * static_cast<uint64_t>(CentaurPlace::kPlaces) +
         static_cast<uint64_t>(place);
}

nn::InitRule centaur_table_rule() {
  return {.distribution = nn::Distribution::kXavierUniform, .number = 1};
}

std::vector<int64_t> sentence_bounds(const kernels::Offsets& offsets) {
  const at::Tensor host = offsets.values.to(at::kCPU, at::kLong).contiguous();
  return {host.const_data_ptr<int64_t>(), host.const_data_ptr<int64_t>() + host.numel()};
}

/// Rows [begins[i], begins[i + 1]).
at::Tensor sentence_rows(const at::Tensor& rows, const std::vector<int64_t>& bounds, size_t i) {
  return rows.narrow(0, bounds[i], bounds[i + 1] - bounds[i]);
}

}  // namespace

CausalConvolutionImpl::CausalConvolutionImpl(const nn::Init& init, int64_t d_model, int64_t kernel)
    : kernel_(kernel) {
  convolution = register_module(
      "convolution", nn::TimeConvolution(init.child("convolution"), d_model, d_model,
                                         nn::TimeConvolutionOptions{
                                             .kernel = kernel, .gain = 2, .weight_norm = false}));
  norm = register_module("norm", nn::BatchNorm(init.child("norm"), d_model,
                                               nn::BatchNormOptions{.single_by_running = true}));
}

at::Tensor CausalConvolutionImpl::forward(const at::Tensor& x, const kernels::Offsets& offsets,
                                          const kernels::Dropout& dropout) const {
  const nn::TimeConvolutionWeights weights = convolution->effective();
  const at::Tensor y = kernels::time_convolution(
      x, weights.weight, weights.bias,
      {.offsets = offsets, .kernel = kernel_, .border = kernels::Border::kCausal});
  return nn::watch(*this, kernels::dropout(behind(nn::watch(*convolution, y)), dropout));
}

CentaurLayerImpl::CentaurLayerImpl(const nn::Init& init, const CentaurOptions& options,
                                   int64_t memory_width) {
  const int64_t d = options.d_model;
  const auto norm = [&](const char* name) {
    return register_module(name, nn::LayerNorm(init.child(name), d));
  };
  const auto linear = [&](const char* name, int64_t in) {
    return register_module(name, nn::Linear(init.child(name), in, d));
  };
  convolution_norm = norm("convolution_norm");
  convolution = register_module(
      "convolution", CausalConvolution(init.child("convolution"), d, options.decoder_kernel));
  attention_norm = norm("attention_norm");
  query = linear("query", d);
  key = linear("key", memory_width);
  value = linear("value", memory_width);
  out = linear("out", d);
  ffn_norm = norm("ffn_norm");
  ffn = register_module("ffn", nn::FeedForward(init.child("ffn"), d, 4 * d, "relu"));
}

at::Tensor CentaurLayerImpl::query_of(const at::Tensor& x, const at::Tensor& places) const {
  const double scale = 1 / std::sqrt(static_cast<double>(query->weight.size(0)));
  return query->forward(attention_norm->forward(x) + places) * scale;
}

at::Tensor CentaurLayerImpl::fed(const at::Tensor& x, const kernels::Dropout& inner) const {
  return ffn->forward(ffn_norm->forward(x), inner);
}

CentaurDecoderImpl::CentaurDecoderImpl(const nn::Init& init, const CentaurOptions& own,
                                       const FrameParts& frame, int64_t memory_width)
    : options(own), parts(frame), sinusoids_(own.d_model, nn::SinusoidTable::kMarian) {
  const int64_t d = own.d_model;
  prenet = register_module(
      "prenet", PreNet(init.child("prenet"), PreNetOptions{.in = frame.decoder_width(),
                                                           .num_layers = own.prenet_layers,
                                                           .dim = own.prenet_dim,
                                                           .dropout = own.prenet_dropout}));
  input = register_module("input", nn::Linear(init.child("input"), own.prenet_dim, d));
  for (int64_t i = 0; i < own.decoder_convolutions; ++i) {
    const std::string name = "convolution" + std::to_string(i);
    convolutions.push_back(
        register_module(name, CausalConvolution(init.child(name), d, own.decoder_kernel)));
  }
  for (int64_t i = 0; i < own.num_layers; ++i) {
    const std::string name = "layer" + std::to_string(i);
    layers.push_back(register_module(name, CentaurLayer(init.child(name), own, memory_width)));
  }
  final_norm = register_module("final_norm", nn::LayerNorm(init.child("final_norm"), d));
  projection = register_module(
      "projection", nn::Linear(init.child("projection"), d, own.reduction * frame.decoder_width()));
  stop = register_module("stop", nn::Linear(init.child("stop"), d, own.reduction));
}

Centaur::Centaur(const CentaurOptions& options, const SynthesisPart& part)
    : SynthesisModel(options, part.parts, part.num_speakers), options_(options) {
  embedding_ =
      register_module("embedding", nn::Embedding(part.init.child("embedding"), part.num_symbols,
                                                 options.d_model, part.pad, centaur_table_rule()));
  ConvolutionStackOptions form;
  form.in = options.d_model;
  form.channels.assign(static_cast<size_t>(options.encoder_convolutions), options.d_model);
  form.kernel = options.encoder_kernel;
  form.dropout = options.dropout;
  form.first_site = kSynthesisEncoder;
  encoder_ = register_module("encoder", ConvolutionStack(part.init.child("encoder"), form));
  voice_ = register_module("voice", Voice(part.init.child("voice"), options, part));
  decoder_ =
      register_module("decoder", CentaurDecoder(part.init.child("decoder"), options, part.parts,
                                                options.d_model + voice_->width()));
  if (part.parts.has_both()) {
    magnitude_net_ = register_module(
        "magnitude", MagnitudeNet(part.init.child("magnitude"), part.parts, form.norm));
  }
}

CentaurMemory Centaur::memory(const SynthesisInput& input, const ForwardContext& context) const {
  const nn::PackedRows& text = input.text;
  const at::Tensor rows =
      encoder_->forward(embedding_->forward(text.ids, {}, {}, nn::RowScale::kOne), text.offsets,
                        context.dropout(text.row_keys));
  const at::Tensor places = decoder_->sinusoids(text.positions, text.offsets.max_length, rows);
  const at::Tensor values = voice_->beside(rows, input);
  const at::Tensor keys = values + at::constant_pad_nd(places, {0, voice_->width()});
  CentaurMemory made;
  made.offsets = text.offsets;
  for (const CentaurLayer& layer : decoder_->layers) {
    made.keys.push_back(layer->key->forward(keys));
    made.values.push_back(layer->value->forward(values));
  }
  return made;
}

at::Tensor Centaur::layer(size_t number, const at::Tensor& x, const nn::PackedRows& steps,
                          const CentaurMemory& memory, const nn::DropoutSource& dropout,
                          std::vector<at::Tensor>& shares) const {
  const CentaurLayer& own = decoder_->layers[number];
  const auto at_place = [&](double p, CentaurPlace place) {
    return dropout.at(p, centaur_site(number, place));
  };
  const at::Tensor convolved =
      x + own->convolution->forward(own->convolution_norm->forward(x), steps.offsets,
                                    at_place(options_.dropout, CentaurPlace::kConvolved));
  const at::Tensor query = own->query_of(
      convolved, decoder_->sinusoids(steps.positions, steps.offsets.max_length, convolved));
  const std::vector<int64_t> bounds = sentence_bounds(steps.offsets),
                             seen = sentence_bounds(memory.offsets);
  const kernels::Dropout of_weights = at_place(options_.attention_dropout, CentaurPlace::kWeights);
  std::vector<at::Tensor> contexts;
  for (size_t i = 0; i + 1 < bounds.size(); ++i) {
    const at::Tensor weights =
        at::softmax(at::matmul(sentence_rows(query, bounds, i),
                               sentence_rows(memory.keys[number], seen, i).t()),
                    1);
    shares.push_back(weights);
    kernels::Dropout own_rows = of_weights;
    if (own_rows.active()) own_rows.row_keys = sentence_rows(of_weights.row_keys, bounds, i);
    contexts.push_back(at::matmul(kernels::dropout(weights, own_rows),
                                  sentence_rows(memory.values[number], seen, i)));
  }
  const at::Tensor attended =
      kernels::dropout_add(own->out->forward(at::cat(contexts)), convolved,
                           at_place(options_.dropout, CentaurPlace::kAttended));
  return nn::watch(
      *own,
      kernels::dropout_add(own->fed(attended, at_place(options_.dropout, CentaurPlace::kFedInner)),
                           attended, at_place(options_.dropout, CentaurPlace::kFed)));
}

at::Tensor Centaur::decoded(const nn::PackedRows& steps, const CentaurMemory& memory,
                            const nn::DropoutSource& masks, const ForwardContext& context,
                            std::vector<std::vector<at::Tensor>>& shares) const {
  const nn::DropoutSource dropout = context.dropout(steps.row_keys);
  at::Tensor x = decoder_->input->forward(decoder_->prenet->forward(steps.values, masks));
  for (size_t i = 0; i < decoder_->convolutions.size(); ++i) {
    x = x + decoder_->convolutions[i]->forward(x, steps.offsets,
                                               dropout.at(options_.dropout, kSynthesisCausal + i));
  }
  for (size_t i = 0; i < decoder_->layers.size(); ++i) {
    x = layer(i, x, steps, memory, dropout, shares.emplace_back());
  }
  return decoder_->final_norm->forward(x);
}

SynthesisOutput Centaur::forward(const SynthesisInput& input, const nn::PackedRows& frames,
                                 const ForwardContext& context, WantsAttention wants) {
  const DecoderSteps steps(frames, parts().decoder_width(), reduction());
  std::vector<std::vector<at::Tensor>> shares;
  const at::Tensor rows = decoded(steps.rows(), memory(input, context),
                                  prenet_masks(input, steps.rows(), context), context, shares);
  SynthesisOutput out;
  out.before = out.after = steps.of_frames(decoder_->projection->forward(rows));
  out.stop_logits = steps.of_frames(decoder_->stop->forward(rows)).squeeze(1);
  out.steps = steps.rows().offsets;
  out.reduction = reduction();
  if (magnitude_net_) {
    out.magnitude =
        magnitude_net_->forward(out.after, frames.offsets, context.dropout(frames.row_keys));
  }
  if (wants == WantsAttention::kNo) return out;
  std::vector<at::Tensor> blocks;
  for (size_t i = 0; i < shares.front().size(); ++i) {
    at::Tensor sum = shares.front()[i];
    for (size_t of = 1; of < shares.size(); ++of) sum = sum + shares[of][i];
    blocks.push_back((sum / static_cast<double>(shares.size())).flatten());
  }
  out.attention = at::cat(blocks);
  if (wants == WantsAttention::kValues) out.attention = out.attention.detach();
  return out;
}

std::unique_ptr<decoding::FrameModel> Centaur::start(const SynthesisInput& input) {
  const at::NoGradGuard no_grad;
  TORCH_CHECK(input.sentence_keys.defined(),
              "[synthesis] the pre-net drops in free running too: give sentence_keys()");
  return make_centaur_steps(decoder_, memory(input, {}), input.sentence_keys, input.prenet_seed);
}

at::Tensor Centaur::finish(const at::Tensor& frames, const kernels::Offsets& offsets) {
  if (!magnitude_net_) return frames;
  return at::cat({frames, magnitude_net_->forward(frames, offsets, {})}, 1);
}

double Centaur::operations(double symbols, double frames) const {
  const double steps = frames / static_cast<double>(reduction());
  double of_memory = 0, of_attention = 0;
  for (const CentaurLayer& layer : decoder_->layers) {
    of_memory += layer->key->operations() + layer->value->operations();
    of_attention += attention_operations(static_cast<double>(options_.d_model),
                                         static_cast<double>(options_.d_model), symbols);
  }
  double sum = symbols * (weight_operations(*encoder_) + weight_operations(*voice_) + of_memory) +
               steps * (weight_operations(*decoder_) - of_memory + of_attention);
  if (magnitude_net_) sum += frames * weight_operations(*magnitude_net_);
  return sum;
}

}  // namespace stretto::models
