#include "runs/initial_weights.h"

#include <iterator>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "runs/checkpoint_tensors.h"
#include "runs/choose_checkpoint.h"
#include "runs/merged_lora.h"
#include "runs/provenance.h"
#include "runs/run_folder.h"
#include "runs/stored_targets.h"
#include "store/manifest.h"
#include "store/weight_files.h"
#include "text/tokenizer.h"

namespace stretto::runs {

namespace fs = std::filesystem;

const fs::path& InitialRun::place() const {
  return folder.empty() ? checkpoint.directory : folder;
}

std::string InitialRun::weights_file() const {
  return (owner == nullptr ? checkpoint.directory / "model.safetensors" : folder).string();
}

namespace {

store::LoadedCheckpoint open_heads(const fs::path& directory) {
  const auto manifest = store::Manifest::read(directory);
  store::LoadedCheckpoint opened{.directory = directory,
                                 .step = manifest.step,
                                 .run_id = manifest.run_id,
                                 .config_hash = manifest.config_hash,
                                 .provenance = manifest.provenance,
                                 .state_json = {},
                                 .files = {}};
  opened.files.emplace_back("model", store::SafetensorsFile(directory / "model.safetensors"));
  return opened;
}

// The newest checkpoint of a run whose heads can be read: training would pass over broken ones too.
store::LoadedCheckpoint open_newest_heads(const fs::path& run) {
  const store::CheckpointStore store(run);
  auto steps = store.steps();
  if (steps.empty()) return open_checkpoint(run, "");  // throws
  for (; steps.size() > 1; steps.pop_back()) {
    try {
      return open_heads(store.path_of(steps.back()));
    } catch (const store::NewerFormat&) {
      throw;
    } catch (const Error&) {
      continue;
    }
  }
  return open_heads(store.path_of(steps.front()));
}

[[noreturn]] void throw_no_start(const fs::path& path, const std::string& found) {
  const std::string import = store::import_advice(path);
  throw Error(ExitCode::kUsage, "train.init_from: " + printable(path.string(), 4096) + " " + found,
              !import.empty() ? import
                              : "give a run folder that has a checkpoint, the folder of one "
                                "checkpoint (RUN/checkpoints/step_00000100), or a model folder of "
                                "transformers");
}

// Damage is another matter: the reader reports it.
void require_run_or_checkpoint(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) throw_no_start(path, "does not exist");
  if (status.type() == fs::file_type::none) throw_io_error("cannot look at", path, error.value());
  if (fs::is_regular_file(status)) throw_no_start(path, "is a file");
  if (!fs::is_directory(status)) throw_no_start(path, "is no folder");
  if (is_checkpoint(path)) return;
  const bool is_run = fs::exists(path / "run.json", error);
  if (!is_run && !fs::is_directory(path / "checkpoints", error)) {
    throw_no_start(path, "is neither a run folder nor a checkpoint: run.json, checkpoints and " +
                             std::string(store::kManifestName) + " are missing");
  }
  if (store::CheckpointStore(path).step_folders().empty()) {
    throw_no_start(path, "is a run folder without a checkpoint");
  }
}

store::LoadedCheckpoint open_to_begin(const fs::path& run_or_checkpoint, Reading reading) {
  if (reading == Reading::kHeads) {
    return is_checkpoint(run_or_checkpoint) ? open_heads(run_or_checkpoint)
                                            : open_newest_heads(run_or_checkpoint);
  }
  return is_checkpoint(run_or_checkpoint)
             ? store::CheckpointStore::load(run_or_checkpoint, store::CheckpointPart::kModel)
             : open_checkpoint(run_or_checkpoint, "");
}

void tell_of_lora(int64_t merged) {
  if (merged == 0) return;
  log::info("train.init_from: the LoRA of " + counted(merged, "linear map") +
            " is merged into its weights");
}

void tell_of_adapters(int64_t added) {
  if (added == 0) return;
  log::info("train.init_from: " + counted(added, "adapter") + " of this model " +
            (added == 1 ? "is" : "are") + " not there, and " + (added == 1 ? "begins" : "begin") +
            " as if there was none");
}

// Goes on behind what was taken: these tensors are not expected in the other run.
std::string text_of_added(int64_t count) {
  if (count == 0) return "";
  return "; " + counted(count, "tensor") + " of LoRA and adapters " + (count == 1 ? "is" : "are") +
         " new";
}

void tell_of_part(const std::string& path, const FoundWeights& found) {
  log::info("weights of " + with_thousands(found.num_taken) + " of " +
            counted(found.num_tensors, "tensor") + " from " + path +
            " (train.init_only); the others begin anew" + text_of_added(found.num_added));
  if (found.missing.empty()) return;
  log::warn("train.init_only: " + counted(static_cast<int64_t>(found.missing.size()), "name") +
            " of this model " + (found.missing.size() == 1 ? "is" : "are") +
            " not there, and so begin" + (found.missing.size() == 1 ? "s" : "") +
            " anew: " + join(found.missing, ", "));
}

// For a run that had another task.
void tell_of_another_head(const std::string& path, const FoundWeights& found) {
  log::info("weights of " + with_thousands(found.num_taken) + " of " +
            counted(found.num_tensors, "tensor") + " from " + path +
            text_of_added(found.num_added));
  if (!found.anew.empty()) log::info("  begin anew: " + join(found.anew, ", "));
  if (!found.left_over.empty()) log::info("  left there: " + join(found.left_over, ", "));
}

}  // namespace

InitialRun open_initial_run(const fs::path& run_or_checkpoint, Reading reading) {
  require_run_or_checkpoint(run_or_checkpoint);
  InitialRun run{
      .checkpoint = open_to_begin(run_or_checkpoint, reading), .folder = {}, .tokenizer = {}};
  require_own_run(run.checkpoint);
  run.folder = run_of(run.checkpoint.directory);
  if (run.folder.empty()) return run;
  run.tokenizer = RunFolder::open(run.folder).read_assets();
  require_same_tokenizer(run.checkpoint, tokenizer_of(run), run.folder / "tokenizer");
  return run;
}

std::map<std::string, std::string> tokenizer_of(const InitialRun& run) {
  return run.tokenizer.empty() ? run.checkpoint.provenance.tokenizer
                               : tokenizer_hashes(run.tokenizer);
}

void require_tokenizer_of(const InitialRun& run,
                          const std::map<std::string, std::string>& tokenizer) {
  const std::string difference = tokenizer_difference(tokenizer_of(run), tokenizer);
  if (difference.empty()) return;
  const std::string what = what_differs(difference);
  const std::string found = "train.init_from: " + run.place().string() +
                            " was trained with another " + what + " (" + difference + ")";
  if (what != "tokenizer") {
    throw Error(ExitCode::kUsage, found + ", so its weights mean something else",
                "begin with a run whose " + what + " is that of this run");
  }
  throw Error(ExitCode::kUsage, found + ", so its rows stand for other pieces",
              "leave the keys out that name a model or vocabulary, and a new --run folder takes "
              "that run's; or set train.init_vocabulary = \"match\": pieces that both have keep "
              "their rows");
}

namespace {

// Other files beside the tokenizer's, such as labels, belong to parts that begin anew where they do
// not fit; the task says whether they fit.
std::map<std::string, std::string> files_that_count(std::map<std::string, std::string> hashes,
                                                    const TakenWeights& taken) {
  if (taken.replaceable.empty()) return hashes;
  std::erase_if(hashes, [](const auto& file) { return !text::is_tokenizer_asset(file.first); });
  return hashes;
}

}  // namespace

void initialise_from(const InitialRun& run, optim::Arena& arena,
                     const std::map<std::string, std::string>& tokenizer, const MatchTables& match,
                     const TakenWeights& taken) {
  if (!match) require_tokenizer_of(run, files_that_count(tokenizer, taken));
  const std::string path = run.checkpoint.directory.string();
  const auto matched = match ? match(run) : std::vector<MatchedTable>{};
  const std::string where = run.weights_file();
  const auto weights =
      weights_to_begin_with(run.checkpoint.file("model"), where, arena, LoraValues::kAll);
  tell_of_lora(weights.num_merged);
  tell_of_adapters(weights.num_new_adapters);
  const auto& file = weights.file;
  if (taken.entries.empty() && taken.replaceable.empty()) {
    require_weights_fit(file, where, arena, matched);
    require_finite(file, where, weight_targets(arena, matched));
    load_weights(file, where, arena, matched);
    log::info("weights from " + path + text_of_added(std::ssize(weights.added)));
    return;
  }
  TakenWeights wanted = taken;
  wanted.added = weights.added;
  const auto found = load_some_weights(file, where, arena, wanted, matched);
  if (taken.entries.empty()) {
    tell_of_another_head(path, found);
  } else {
    tell_of_part(path, found);
  }
}

}  // namespace stretto::runs
