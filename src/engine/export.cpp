#include <ATen/ATen.h>

#include <iostream>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "engine/commands.h"
#include "experiment/text_sections.h"
#include "interchange/described_experiment.h"
#include "interchange/export_model.h"
#include "interchange/export_seq2seq.h"
#include "nn/embedding.h"
#include "runs/choose_checkpoint.h"
#include "runs/merged_lora.h"
#include "runs/provenance.h"
#include "runs/run_folder.h"
#include "tasks/described_by.h"
#include "tasks/registry.h"

namespace stretto::engine {
namespace {

/// What the command was given, opened.
struct OpenedRun {
  runs::RunFolder folder;
  std::map<std::string, std::string> assets;
  store::LoadedCheckpoint checkpoint;
  experiment::Experiment experiment;  ///< describes the checkpoint's model
};

OpenedRun open_run(const ExportRequest& request) {
  auto folder = runs::RunFolder::open(request.run_directory);
  auto assets = folder.read_assets();
  auto checkpoint = runs::open_checkpoint(folder.directory(), request.checkpoint);
  auto experiment = tasks::described_by(checkpoint, folder, request.experiment.options);
  return {std::move(folder), std::move(assets), std::move(checkpoint), std::move(experiment)};
}

runs::MadeWeights weights_of(const OpenedRun& run) {
  return runs::merge_lora(run.checkpoint.file("model"),
                          (run.checkpoint.directory / "model.safetensors").string());
}

std::string export_text_model(const ExportRequest& request, const OpenedRun& run) {
  // The model first: a task that has no such class says so before its tokenizer does.
  const auto names = tasks::family_of(run.experiment).output_names(run.assets);
  auto description = interchange::describe(run.experiment, 1, 0, names);
  auto tokenizer = interchange::exported_tokenizer(run.assets, request.run_directory);
  runs::require_same_tokenizer(run.checkpoint, runs::tokenizer_hashes(run.assets),
                               run.folder.directory() / "tokenizer");
  const auto made = text::make_spec_tokenizer(tokenizer, request.run_directory, 0);
  description.vocab_size = made->size();
  description.pad_id = made->specials().pad;
  const auto& architecture = interchange::choose_architecture(
      description, tokenizer.model == text::TokenizerSpec::Model::kByteBpe, request.model_type);
  const auto weights = weights_of(run);
  interchange::export_model(
      {.description = description,
       .tokenizer = std::move(tokenizer),
       .max_text_tokens = experiment::text_sections(run.experiment).max_text_tokens,
       .tensors = weights.file.tensors()},
      architecture, request.folder);
  return interchange::class_name(architecture, description.head);
}

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

std::string export_seq2seq_model(const ExportRequest& request, const OpenedRun& run,
                                 interchange::ExportedSeq2Seq model) {
  interchange::require_seq2seq_class(model.model, model.tokenizers, request.model_type);
  runs::require_same_tokenizer(run.checkpoint, runs::tokenizer_hashes(model.tokenizers.assets),
                               run.folder.directory() / "tokenizer");
  const auto weights = weights_of(run);
  model.tensors = weights.file.tensors();
  const at::Tensor positions = add_sinusoids(model.model, model.tensors);
  const std::string lack = interchange::export_seq2seq(model, request.folder);
  if (!lack.empty()) log::warn(request.folder + " " + lack);
  return interchange::seq2seq_class_name(model.model);
}

}  // namespace

int run_export(const ExportRequest& request) {
  const OpenedRun run = open_run(request);
  interchange::require_kind_of_class(run.experiment, request.model_type);
  auto seq2seq = interchange::find_seq2seq(run.experiment, run.assets);
  const std::string model_class = seq2seq ? export_seq2seq_model(request, run, std::move(*seq2seq))
                                          : export_text_model(request, run);
  std::cout << request.folder << ": " << model_class << ", from "
            << tasks::name_of(run.checkpoint.directory, run.folder) << std::endl;
  return 0;
}

}  // namespace stretto::engine
