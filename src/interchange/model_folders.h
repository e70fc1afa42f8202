#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "experiment/experiment.h"
#include "experiment/other_model.h"
#include "interchange/import_options.h"
#include "interchange/imported_run.h"
#include "store/safetensors.h"

/// The families that read folders of `transformers` (experiment::FamilySpec::folders), and which of
/// them reads a folder, or a file of weights.
namespace stretto::interchange {

class ConfigReader;

/// What models of a folder are called in messages.
struct FolderWords {
  std::string model;    ///< "an encoder of text"
  std::string models;   ///< "encoders of text"
  std::string classes;  ///< "BERT, RoBERTa or DistilBERT"
};

/// What a family of tasks knows of folders of `transformers`: of which models they are, how one is
/// read, and the experiment that it describes. The other direction needs a checkpoint's tensors,
/// and is tasks::Family::export_model().
class ModelFolders {
 public:
  virtual ~ModelFolders() = default;

  /// The values of `model_type` in config.json that the family reads and writes. Families that
  /// share one share all: their models differ in what they end in.
  virtual std::vector<std::string> model_types() const = 0;
  virtual FolderWords words() const = 0;

  /// Whether the family trains the whole of the model that a config.json names, head and all.
  /// @param config  of one of the model_types()
  virtual bool trains(const ConfigReader& config) const = 0;
  /// Whether read() and describe() are for such a folder. One of the families that share its type
  /// says so, also for a folder that is to be refused: its reader says why.
  virtual bool claims(const ConfigReader& config, const ImportOptions& options) const = 0;
  /// Whether read() and describe() are for a folder whose config.json has no `model_type`, since
  /// another package wrote it.
  virtual bool claims_other(const ConfigReader& /*config*/) const { return false; }
  /// Whether read() and describe() are for a file of weights alone, and take its path: by the names
  /// of its tensors, which must tell what the model is.
  virtual bool claims_weights(const std::vector<store::TensorView>& /*tensors*/) const {
    return false;
  }
  /// Whether ImportOptions::encoder_only has a meaning; without, a model is read whole.
  virtual bool reads_encoders_alone() const { return false; }

  /// Whether a run of the family may begin with the whole of a model of another kind
  /// (`train.init_from`), as a classifier of texts with the layers of a language model.
  /// @param other  the experiment of the imported folder
  virtual bool begins_with(const experiment::Experiment& /*other*/) const { return false; }

  /// Reads a folder that it claims. Writes nothing. Throws as import_folder() does.
  virtual ImportedRun read(const std::filesystem::path& folder,
                           const ImportOptions& options) const = 0;
  /// The same as `train.init_from` describes it to a run, before weights are needed: with the names
  /// of the tensors. Throws as read() does, for what it looks at.
  virtual experiment::OtherModel describe(const std::filesystem::path& folder,
                                          const ImportOptions& options) const = 0;
};

/// A config.json without `model_type`, as old versions of `transformers` wrote it, with the one of
/// known_model_types() that its `architectures` names a class of; else as it is.
/// Throws as model_class_of().
ConfigReader with_type_of_class(ConfigReader config);

/// config.json of a folder, by with_type_of_class(). Throws Error(kUsage) where there is no folder
/// or no such file, Error(kBadData) for a broken one.
ConfigReader read_folder_config(const std::filesystem::path& folder);

/// What the family of an experiment knows of folders; null where it reads none.
const ModelFolders* find_folders(const experiment::Experiment& experiment);

/// Whether such folders are among those of a family; of null, none is.
bool reads_folders_of(const ModelFolders* folders, const ConfigReader& config);
/// Whether folders of this `model_type` are among those of a family; of null, none is.
bool has_type(const ModelFolders* folders, std::string_view model_type);

/// The `model_type`s of all families, each once, in the order of the families.
std::vector<std::string> known_model_types();

/// Refuses a `model_type` that is missing (empty) or not among those that are known.
[[noreturn]] void refuse_model_type(const ConfigReader& config, const std::string& type,
                                    const std::vector<std::string>& known);

/// The family that reads a folder. Throws Error(kBadData) for a `model_type` of none of them.
const ModelFolders& reader_of(const ConfigReader& config, const ImportOptions& options);

/// The family that reads a file of weights alone. Throws Error(kBadData) where the names of its
/// tensors are those of no family, and as store::WeightFiles does.
const ModelFolders& reader_of_file(const std::filesystem::path& file);

/// Throws Error(kUsage) where `wanted` is a class of another kind of models than the task has, such
/// as one of two stacks for an encoder of text.
/// @param wanted  a model_type, or "auto"
void require_kind_of_class(const experiment::Experiment& experiment, const std::string& wanted);

}  // namespace stretto::interchange
