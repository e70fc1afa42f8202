#pragma once

#include <filesystem>
#include <string>

#include "families/text/folders/export_model.h"
#include "interchange/stored_weights.h"

namespace stretto::interchange {

/// Why an encoder of text cannot be written as ONNX; empty when it can.
std::string onnx_incompatibility(const models::BertOptions& model);

/// Writes an encoder of text, with its head, as a graph of ONNX: `model.onnx`, `model.onnx_data`
/// and the files of the tokenizer as `transformers` reads them. Inputs are int64 [batch, sequence]:
///
///     input_ids, attention_mask (0 = padding), of models with segments token_type_ids
///
/// and outputs fp32, by the head:
///
/// - none: last_hidden_state [batch, sequence, D], with a pooler pooler_output [batch, D]
/// - masked tokens: logits [batch, sequence, V]
/// - labels: logits [batch, labels]; their names are the metadata `labels`, a list in JSON
/// - spans: start_logits and end_logits [batch, sequence]
///
/// Sinusoidal and rotary positions are tables of `max_text_tokens` rows.
/// @param weights  of matrices and of the table of tokens: fp32, or int8 with an fp32 factor for
///                 each row, which the graph multiplies with (DequantizeLinear)
/// Throws Error(kUsage) with the reason where there is none or the folder is there already;
/// Error(kBadData) for tensors that are not those of the model.
void export_onnx_encoder(const ExportedModel& model, StoredWeights weights,
                         const std::filesystem::path& folder);

}  // namespace stretto::interchange
