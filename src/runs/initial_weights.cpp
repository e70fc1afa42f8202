#include "runs/initial_weights.h"

#include "base/error.h"
#include "base/log.h"
#include "runs/choose_checkpoint.h"
#include "runs/provenance.h"
#include "runs/run_folder.h"
#include "store/manifest.h"

namespace stretto::runs {

namespace fs = std::filesystem;

const fs::path& InitialRun::place() const {
  return folder.empty() ? checkpoint.directory : folder;
}

namespace {

store::LoadedCheckpoint open_heads(const fs::path& directory) {
  const auto manifest = store::Manifest::read(directory);
  store::LoadedCheckpoint opened{.directory = directory,
                                 .step = manifest.step,
                                 .run_id = manifest.run_id,
                                 .config_hash = manifest.config_hash,
                                 .origin = manifest.origin,
                                 .state_json = {},
                                 .files = {}};
  opened.files.emplace_back("model", store::SafetensorsFile(directory / "model.safetensors"));
  return opened;
}

// Of a run the newest whose heads can be read: training would pass over those before it too.
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

store::LoadedCheckpoint open_to_begin(const fs::path& run_or_checkpoint, Reading reading) {
  if (reading == Reading::kHeads) {
    return is_checkpoint(run_or_checkpoint) ? open_heads(run_or_checkpoint)
                                            : open_newest_heads(run_or_checkpoint);
  }
  return is_checkpoint(run_or_checkpoint) ? store::CheckpointStore::load(run_or_checkpoint)
                                          : open_checkpoint(run_or_checkpoint, "");
}

}  // namespace

InitialRun open_initial_run(const fs::path& run_or_checkpoint, Reading reading) {
  if (!fs::exists(run_or_checkpoint)) {
    throw Error(ExitCode::kUsage,
                "train.init_from: " + run_or_checkpoint.string() + " does not exist",
                "give a run folder or one of its checkpoints");
  }
  InitialRun run{
      .checkpoint = open_to_begin(run_or_checkpoint, reading), .folder = {}, .tokenizer = {}};
  require_own_run(run.checkpoint);
  run.folder = run_of(run.checkpoint.directory);
  if (run.folder.empty()) return run;
  run.tokenizer = RunFolder::open(run.folder).read_assets();
  require_same_tokenizer(run.checkpoint, tokenizer_hashes(run.tokenizer), run.folder / "tokenizer");
  return run;
}

std::map<std::string, std::string> tokenizer_of(const InitialRun& run) {
  if (!run.tokenizer.empty()) return tokenizer_hashes(run.tokenizer);
  return run.checkpoint.origin.tokenizer;
}

void require_tokenizer_of(const InitialRun& run,
                          const std::map<std::string, std::string>& tokenizer) {
  const std::string difference = tokenizer_difference(tokenizer_of(run), tokenizer);
  if (difference.empty()) return;
  throw Error(ExitCode::kUsage,
              "train.init_from: " + run.place().string() + " was trained with another tokenizer (" +
                  difference + "), so its rows stand for other pieces",
              "leave the keys out that name a model or vocabulary, and a new --run folder takes "
              "that run's; or set train.init_vocabulary = \"match\": pieces that both have keep "
              "their rows");
}

void initialise_from(const fs::path& run_or_checkpoint, optim::Arena& arena,
                     const std::map<std::string, std::string>& tokenizer,
                     const MatchTables& match) {
  const InitialRun run = open_initial_run(run_or_checkpoint);
  if (!match) require_tokenizer_of(run, tokenizer);
  const std::string path = run.checkpoint.directory.string();
  load_weights(run.checkpoint.file("model"), path + "/model.safetensors", arena,
               match ? match(run) : std::vector<MatchedTable>{});
  log::info("weights from " + path);
}

}  // namespace stretto::runs
