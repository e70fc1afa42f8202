#include "interchange/initial_model.h"

#include <mutex>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "families/text/text_sections.h"
#include "interchange/described_experiment.h"
#include "interchange/import_seq2seq.h"
#include "interchange/model_config.h"

namespace stretto::interchange {
namespace {

namespace fs = std::filesystem;
using experiment::Experiment;
using experiment::OtherModel;

std::string config_text(const fs::path& folder) {
  return read_file(folder / "config.json", kMaxSmallTextBytes * 16);
}

std::string config_place(const fs::path& folder) {
  return (folder / "config.json").string();
}

// A translation model can only be imported whole.
ImportOptions options_for(const fs::path& folder, const Experiment& own) {
  if (is_seq2seq_folder(folder)) return {};
  const auto head = find_head(config_text(folder), config_place(folder));
  return {.encoder_only = !head || *head == Head::kNone || *head != head_of(own)};
}

OtherModel describe_text_model(const fs::path& folder, const Experiment& own) {
  auto config = read_model_config(config_text(folder), config_place(folder),
                                  options_for(folder, own).encoder_only);
  auto& description = config.description;
  // Others may have a pooler, and their labels are read behind one.
  if (description.head == Head::kNone && config.architecture->pooler.empty()) {
    description.model.pooling = "mean";
  }
  const bool byte_bpe = config.architecture == &kRoberta && !fs::exists(folder / "vocab.txt");
  const auto described = described_experiment(description, byte_bpe, 0);
  OtherModel found{
      .options = load_described(described, folder).options, .tensors = {}, .name = folder.string()};
  for (auto& pair : names_of(*config.architecture, description, /*has_prefix=*/true)) {
    found.tensors.push_back(std::move(pair.ours));
  }
  return found;
}

OtherModel read_seq2seq_model(const fs::path& folder) {
  const auto model = import_seq2seq(folder);
  OtherModel found{.options = load_described(model.experiment, folder).options,
                   .tensors = {},
                   .name = folder.string()};
  for (const auto& tensor : model.tensors) found.tensors.push_back(tensor.name);
  return found;
}

// A search reads one configuration many times.
OtherModel describe_seq2seq_model(const fs::path& folder) {
  static std::mutex mutex;
  static std::optional<std::pair<std::string, OtherModel>> last;
  const std::lock_guard lock(mutex);
  std::string text = folder.string() + "\n" + config_text(folder);
  if (!last || last->first != text) last.emplace(std::move(text), read_seq2seq_model(folder));
  return last->second;
}

void require_kind_of_task(const ImportedRun& model, const fs::path& folder, const Experiment& own) {
  const auto is_of_texts = [](const Experiment& e) {
    return experiment::find_text_sections(e).has_value();
  };
  if (is_of_texts(model.experiment) == is_of_texts(own) || !own.train.init_only.empty()) return;
  throw Error(ExitCode::kUsage,
              folder.string() + " holds a " + model.model_class +
                  (is_of_texts(own) ? ", which translates" : ", an encoder of text") +
                  ", and task.name is \"" + own.task.name() + "\"",
              is_of_texts(own) ? "give the folder of a BERT, RoBERTa or DistilBERT"
                               : "give the folder of a Marian or Pegasus model; "
                                 "train.init_only takes parts of another model");
}

}  // namespace

bool is_model_folder(const fs::path& folder) {
  std::error_code ignored;
  const auto has = [&](const char* name) { return fs::exists(folder / name, ignored); };
  return has("config.json") && !has("run.json") && !has("manifest.json") && !has("checkpoints");
}

std::optional<OtherModel> describe_initial_model(const fs::path& folder, const Experiment& own) {
  if (!is_model_folder(folder)) return std::nullopt;
  return is_seq2seq_folder(folder) ? describe_seq2seq_model(folder)
                                   : describe_text_model(folder, own);
}

ImportedRun import_initial_model(const fs::path& folder, const Experiment& own) {
  try {
    auto model = import_folder(folder, options_for(folder, own));
    require_kind_of_task(model, folder, own);
    return model;
  } catch (const Error& error) {
    std::string advice = error.advice();
    if (advice.find("--") != std::string::npos) {
      advice += "; these are options of `stretto import`, and train.init_from takes its run";
    }
    throw Error(error.code(), std::string("train.init_from: ") + error.what(), advice,
                error.details());
  }
}

}  // namespace stretto::interchange
