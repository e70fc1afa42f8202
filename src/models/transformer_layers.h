#pragma once

#include <torch/nn/modules/container/modulelist.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/parts.h"
#include "models/token_embedding.h"
#include "models/transformer_options.h"
#include "nn/adapter.h"
#include "nn/attention.h"
#include "nn/feed_forward.h"
#include "nn/norm.h"
#include "nn/rotary_options.h"
#include "nn/watch.h"

/// What the Transformer's encoder and decoder are made of (Vaswani et al. 2017, arXiv:1706.03762,
/// with fairseq's choices, Ott et al. 2018, arXiv:1806.00187).
///
/// Shape letters: N rows of all sequences, D model width.
namespace stretto::models {

/// What layers of a language model may have beside their style, as the keys of
/// CausalTransformerOptions say. By default nothing: an encoder-decoder has no such keys.
struct LayerForm {
  int64_t head_dim = 0;  ///< 0 = d_model / num_heads
  /// Epsilon of all norms, qk_norm included; unset = that of the kind of norm.
  std::optional<double> norm_epsilon = std::nullopt;
  bool norm_bias = true;  ///< of layer_norm
  /// Whether linear maps have biases: those of queries, keys and values, and the others but those
  /// of gated feed-forward parts.
  bool qkv_bias = true, other_biases = true;
  bool qk_norm = false;
  nn::RotaryOptions rope = {};
  int64_t sliding_window = 0;        ///< of a decoder's layers; 0 = none
  int64_t full_attention_every = 0;  ///< layers whose number is a multiple, from 1 on, have none
  double attention_softcap = 0;
};

/// What one stack is built from: the style of a model's layers with the sizes of this stack.
struct TransformerPart : LayerStyle {
  TransformerPart(const LayerStyle& style, const StackOptions& sizes, LayerForm form_of_layers = {})
      : LayerStyle(style), stack(sizes), form(std::move(form_of_layers)) {}

  /// The same for one of its layers: with the window that it has.
  TransformerPart of_layer(int64_t layer) const {
    TransformerPart one = *this;
    one.form.sliding_window =
        window_of_layer(layer, form.sliding_window, form.full_attention_every);
    return one;
  }

  /// Width of a head; 0 = d_model / num_heads.
  int64_t head_dim() const { return form.head_dim > 0 ? form.head_dim : stack.head_dim; }

  StackOptions stack;
  LayerForm form;
};

/// Dropout of a layer's places, bound to one forward pass.
struct LayerDropout {
  const TransformerPart& options;
  const nn::DropoutSource& source;
  uint64_t first_site;

  enum Place : uint64_t { kSelf, kSelfWeights, kCross, kCrossWeights, kFfn, kFfnInner, kPlaces };
  kernels::Dropout at(double p, Place place) const { return source.at(p, first_site + place); }
};

/// The norm that `norm_layer` names. Batch norm has the constants of OpenSeq2Seq's Transformer
/// (momentum 0.95 in its convention, epsilon 1e-4); in training it sees every token of the
/// micro-batch, later ones of a decoder's sequences too.
std::shared_ptr<nn::NormImpl> make_norm(const nn::Init& init, const TransformerPart& options,
                                        int64_t d_model, bool zero_gamma);

/// @param causal  whether it will be called so: in a decoder
nn::SelfAttention make_self_attention(const nn::Init& init, const TransformerPart& options,
                                      int64_t d_model, bool causal);
nn::FeedForward make_feed_forward(const nn::Init& init, const TransformerPart& options,
                                  int64_t d_model);

/// Residual connection around one part of a layer (section 5.4, and where the norm stands):
///     post: norm(x + dropout(part(x)))        pre: x + dropout(part(norm(x)))
///     res_post: x + dropout(norm(part(x)))    (Liu et al. 2022, arXiv:2111.09883, section 3.2)
/// With `zero_gamma` a res_post part is the identity at first.
///
/// Where `model.adapter` names the connection, part(x) above stands for adapter(part(x)), and the
/// module has a child `adapter` (nn/adapter.h).
class ResidualImpl : public torch::nn::Module {
 public:
  ResidualImpl(const nn::Init& init, const TransformerPart& options, int64_t d_model);
  /// @param place     of the norm: "post", "pre" or "res_post"
  /// @param own_norm  registered as `norm`
  ResidualImpl(const nn::Init& init, const std::string& place,
               std::shared_ptr<nn::NormImpl> own_norm, int64_t d_model);

  template <class Part>
  at::Tensor forward(const at::Tensor& x, const kernels::Dropout& dropout, Part part) const {
    return forward(x, x, dropout, part);
  }
  /// The same for some rows of x: `part` reads all of them and returns those of `kept`, in its
  /// order.
  template <class Part>
  at::Tensor forward(const at::Tensor& x, const at::Tensor& kept, const kernels::Dropout& dropout,
                     Part part) const {
    const auto adapted = [&](const at::Tensor& h) { return nn::adapted(adapter, part(h)); };
    switch (place_) {
      case Place::kPre:
        return nn::watch(*this, kernels::dropout_add(adapted(norm->forward(x)), kept, dropout));
      case Place::kResPost:
        return nn::watch(*this, kernels::dropout_add(norm->forward(kernels::widened(adapted(x))),
                                                     kept, dropout));
      case Place::kPost:
        break;
    }
    return norm->forward(kernels::dropout_add(adapted(x), kept, dropout));
  }

  nn::Norm norm{nullptr};
  nn::Adapter adapter{nullptr};  ///< null without one

 private:
  enum class Place : uint8_t { kPost, kPre, kResPost };
  Place place_;
};
TORCH_MODULE(Residual);

/// A stack's shell: embedding and positions below its layers, a last norm above them unless
/// post-norm. Its modules are children of the encoder or decoder that owns it.
class StackShell {
 public:
  /// @param kind  decides the factor of token vectors, and how they and learned positions start
  StackShell(torch::nn::Module& owner, const PartSetup& setup, const TransformerPart& options,
             const EmbeddingKind& kind = {});

  /// dropout(embedding * scale + position); ids and positions int64 [N] -> [N, D].
  at::Tensor embed(const at::Tensor& ids, const at::Tensor& positions, int64_t max_length,
                   const kernels::Dropout& dropout);
  /// The same of the rows of a batch: of ids, in which words may be dropped, or of values.
  at::Tensor embed(const nn::PackedRows& rows, const kernels::Dropout& dropout);
  /// The last norm of a stack whose layers do not end in one; x itself otherwise.
  at::Tensor finish(const at::Tensor& x) const;

  TokenEmbedding embedding;
  nn::Positions positions{nullptr};
  nn::Norm final_norm{nullptr};
};

/// Registers the layers of a stack below `owner` as layers.0, layers.1, …
/// Layer: constructible from (Init, TransformerPart, d_model, more).
template <class Layer, class... More>
std::vector<Layer> make_layers(torch::nn::Module& owner, const nn::Init& init,
                               const TransformerPart& options, int64_t d_model,
                               const More&... more) {
  std::vector<Layer> layers;
  torch::nn::ModuleList list;
  for (int64_t i = 0; i < options.stack.num_layers; ++i) {
    layers.push_back(Layer(init.child("layers").child(std::to_string(i)), options.of_layer(i),
                           d_model, more...));
    list->push_back(layers.back());
  }
  owner.register_module("layers", list);
  return layers;
}

/// The first site of layer number `layer` of a part.
inline uint64_t layer_site(uint64_t part, size_t layer) {
  return part + layer * uint64_t{LayerDropout::kPlaces};
}

}  // namespace stretto::models
