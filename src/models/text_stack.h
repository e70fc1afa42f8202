#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <memory>
#include <string>

#include "models/bert_options.h"
#include "models/causal_options.h"
#include "models/encoder.h"
#include "models/parts.h"
#include "nn/embedding.h"
#include "nn/packed_rows.h"

/// Shape letters: N rows of all texts, R of them, B texts, D width of rows.
namespace stretto::models {

/// What stands between the tokens of a text and the rows that a head reads: an encoder, from which
/// each row sees all of its text, or the stack of a language model, from which it sees the tokens
/// before it. TextModel owns its module.
class TextStack {
 public:
  virtual ~TextStack() = default;
  virtual std::shared_ptr<torch::nn::Module> module() const = 0;
  /// [N, D]. No text sees another one.
  virtual at::Tensor forward(const nn::PackedRows& input, const ForwardContext& context) = 0;
  /// Rows `wanted` of forward(), int64 [R] -> [R, D], with the same masks of dropout.
  virtual at::Tensor forward_of(const at::Tensor& wanted, const nn::PackedRows& input,
                                const ForwardContext& context) = 0;
  /// Hidden and cell state of the top layer behind each text's last token, side by side: [B, 2 D].
  /// Throws c10::Error for a stack without cells: only LSTMs have them.
  virtual at::Tensor last_states(const nn::PackedRows& input, const ForwardContext& context) = 0;
  virtual nn::Embedding embedding() const = 0;
  virtual int64_t width() const = 0;       ///< D
  virtual int64_t max_length() const = 0;  ///< tokens that there are positions for
  /// Multiplications and additions of forward() for one row, in texts of `length`.
  virtual double operations(double length) const = 0;
  /// What forward_of() saves for each row that is not wanted.
  virtual double operations_of_unwanted() const = 0;
};

/// BERT's encoder. @param setup  of its own place, "encoder"
std::unique_ptr<TextStack> make_text_stack(const BertOptions& options, const PartSetup& setup);

/// The stack of a language model, from a state of zero in each text. Its tensors have the names of
/// a CausalModel's, which it may start from; what regularises rows of a language model
/// (CausalPass::regulariser) is left out. @param setup  of its own place, "decoder"
std::unique_ptr<TextStack> make_text_stack(const CausalModelOptions& options,
                                           const PartSetup& setup);

}  // namespace stretto::models
