#include <ATen/ATen.h>

#include <string>
#include <utility>
#include <vector>

#include "base/log.h"
#include "families/text/export_formats.h"
#include "families/translation/engine/commands.h"
#include "families/translation/folders/ctranslate2_seq2seq.h"
#include "families/translation/folders/export_seq2seq.h"
#include "families/translation/translation_options.h"
#include "nn/embedding.h"
#include "tasks/exported_run.h"

namespace stretto::tasks {
namespace {

/// Sinusoids as tables of positions, for what reads them so. Learned ones are tensors already.
at::Tensor add_sinusoids(const models::Seq2SeqOptions& model,
                         std::vector<store::TensorView>& tensors) {
  if (model.positions != "sinusoidal" && model.positions != "marian") return {};
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

std::string export_ctranslate2(const ExportedRun& run, const ExportRequest& request,
                               interchange::ExportedSeq2Seq model) {
  require_expressed(request, interchange::ctranslate2_incompatibility(model.model));
  const auto stored = stored_weights(run, request);
  run.require_same_tokenizer(model.tokenizers.assets);
  const auto weights = run.weights();
  model.tensors = weights.file.tensors();
  const at::Tensor positions = add_sinusoids(model.model, model.tensors);
  interchange::export_ctranslate2_seq2seq(model, stored, request.folder);
  return "a Translator of CTranslate2";
}

}  // namespace

std::string export_translation(const ExportedRun& run, const ExportRequest& request) {
  auto model = interchange::exported_seq2seq(translation_of(run.experiment), run.assets);
  if (request.format == experiment::kCtranslate2Format) {
    return export_ctranslate2(run, request, std::move(model));
  }
  interchange::require_seq2seq_class(model.model, model.tokenizers, request.model_type);
  run.require_same_tokenizer(model.tokenizers.assets);
  const auto weights = run.weights();
  model.tensors = weights.file.tensors();
  const bool stores = interchange::stores_positions(model.model);
  const at::Tensor positions = stores ? add_sinusoids(model.model, model.tensors) : at::Tensor();
  const std::string lack = interchange::export_seq2seq(model, request.folder);
  if (!lack.empty()) log::warn(request.folder + " " + lack);
  return interchange::seq2seq_class_name(model.model);
}

}  // namespace stretto::tasks
