#include <ATen/ATen.h>

#include <string>
#include <vector>

#include "base/log.h"
#include "families/translation/engine/commands.h"
#include "families/translation/folders/export_seq2seq.h"
#include "families/translation/translation_options.h"
#include "nn/embedding.h"
#include "tasks/exported_run.h"

namespace stretto::tasks {
namespace {

/// Sinusoids that the class reads, as tables of positions.
at::Tensor add_sinusoids(const models::Seq2SeqOptions& model,
                         std::vector<store::TensorView>& tensors) {
  if (model.positions == "learned" || !interchange::stores_positions(model)) return {};
  nn::Sinusoids sinusoids(model.d_model, model.positions == "marian" ? nn::SinusoidTable::kMarian
                                                                     : nn::SinusoidTable::kFairseq);
  const at::Tensor table = sinusoids
                               .rows(at::arange(model.max_positions, at::kLong),
                                     model.max_positions, at::empty({0}, at::kFloat))
                               .contiguous();
  for (const char* name : {"encoder.positions.weight", "decoder.positions.weight"}) {
    tensors.push_back({name,
                       store::DType::kF32,
                       table.sizes().vec(),
                       {static_cast<const char*>(table.const_data_ptr()), table.nbytes()}});
  }
  return table;
}

}  // namespace

std::string export_translation(const ExportedRun& run, const ExportRequest& request) {
  auto model = interchange::exported_seq2seq(translation_of(run.experiment), run.assets);
  interchange::require_seq2seq_class(model.model, model.tokenizers, request.model_type);
  run.require_same_tokenizer(model.tokenizers.assets);
  const auto weights = run.weights();
  model.tensors = weights.file.tensors();
  const at::Tensor positions = add_sinusoids(model.model, model.tensors);
  const std::string lack = interchange::export_seq2seq(model, request.folder);
  if (!lack.empty()) log::warn(request.folder + " " + lack);
  return interchange::seq2seq_class_name(model.model);
}

}  // namespace stretto::tasks
