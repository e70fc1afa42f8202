#include "train/average.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "store/manifest.h"
#include "train/origin.h"

namespace stretto::train {

namespace fs = std::filesystem;

namespace {

bool is_checkpoint(const fs::path& directory) {
  return fs::exists(directory / "manifest.json");
}

// Names that a user may give, for the message when the one given is not there.
std::vector<std::string> selectable(const fs::path& run_directory) {
  std::vector<std::string> names;
  const fs::path parent = run_directory / "checkpoints";
  if (!fs::is_directory(parent)) return names;
  for (const auto& entry : fs::directory_iterator(parent)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with('.') && !name.starts_with("bad-") && is_checkpoint(entry.path())) {
      names.push_back(name);
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

[[noreturn]] void throw_no_checkpoint(const fs::path& run_directory, const std::string& selector) {
  const auto names = selectable(run_directory);
  throw Error(
      ExitCode::kUsage,
      run_directory.string() + ": no checkpoint" + (selector.empty() ? "" : " `" + selector + "`"),
      names.empty() ? "train first: stretto train CONFIG --run " + run_directory.string()
                    : "there are: best, last, " + join(names, ", "));
}

using Loaded = store::LoadedCheckpoint;

// nullopt when it is damaged, and then the reason in `broken`.
std::optional<Loaded> load_if_whole(const fs::path& path, std::vector<std::string>& broken) {
  try {
    return store::CheckpointStore::load(path);
  } catch (const store::NewerFormat&) {
    throw;  // whole: an older one must not take its place without a word
  } catch (const Error& error) {
    if (error.code() != ExitCode::kBadData) throw;
    broken.emplace_back(error.what());
    log::warn("checkpoint " + path.string() + " is damaged and is left out: " + error.what());
    return std::nullopt;
  }
}

// The newest that verifies.
std::optional<Loaded> newest_checkpoint(const store::CheckpointStore& store,
                                        std::vector<std::string>& broken) {
  auto steps = store.steps();
  std::reverse(steps.begin(), steps.end());
  for (const int64_t step : steps) {
    if (auto loaded = load_if_whole(store.path_of(step), broken)) return loaded;
  }
  return std::nullopt;
}

[[noreturn]] void throw_none_whole(const fs::path& run_directory,
                                   const std::vector<std::string>& broken) {
  if (broken.empty()) throw_no_checkpoint(run_directory, "");
  throw Error(ExitCode::kBadData,
              run_directory.string() + ": none of its " + std::to_string(broken.size()) +
                  " checkpoints is valid; the newest: " + broken.front(),
              "restore the folder from a copy, or train again");
}

Loaded require_newest(const fs::path& run_directory, std::vector<std::string>& broken) {
  auto newest = newest_checkpoint(store::CheckpointStore(run_directory), broken);
  if (!newest) throw_none_whole(run_directory, broken);
  return *std::move(newest);
}

// The best one that a state tells of, while it is still there.
std::optional<fs::path> best_known_to(const Loaded& newest, const fs::path& run_directory) {
  const auto state = TrainState::from_json(newest.state_json, newest.directory.string());
  const fs::path path = store::CheckpointStore(run_directory).path_of(state.best_step());
  if (state.best_step() == 0 || !is_checkpoint(path)) return std::nullopt;
  return path;
}

// The mean of these, in their order, as the checkpoint `name`.
fs::path write_average(const fs::path& run_directory, const std::vector<Loaded>& loaded,
                       const RunIdentity& identity, const std::string& name) {
  const auto& first = loaded.front().file("model");
  std::vector<torch::Tensor> sums;
  for (const auto& tensor : first.tensors()) {
    torch::Tensor sum = torch::zeros(torch::IntArrayRef(tensor.shape), torch::kFloat32);
    for (const auto& checkpoint : loaded) {
      const auto* part = checkpoint.file("model").find(tensor.name);
      if (part == nullptr || part->shape != tensor.shape || part->dtype != store::DType::kF32) {
        throw Error(ExitCode::kBadData,
                    checkpoint.directory.string() + ": `" + tensor.name + "` does not match " +
                        loaded.front().directory.string(),
                    "only checkpoints of one architecture can be averaged");
      }
      sum.add_(torch::from_blob(const_cast<char*>(part->bytes.data()), sum.sizes()));
    }
    sums.push_back(sum.div_(static_cast<double>(loaded.size())));
  }
  std::vector<store::TensorView> views;
  for (size_t i = 0; i < sums.size(); ++i) {
    const auto& tensor = first.tensors()[i];
    views.push_back({tensor.name,
                     store::DType::kF32,
                     tensor.shape,
                     {static_cast<const char*>(sums[i].const_data_ptr()), sums[i].nbytes()}});
  }
  const auto& newest = *std::max_element(
      loaded.begin(), loaded.end(), [](const auto& a, const auto& b) { return a.step < b.step; });
  for (const auto& checkpoint : loaded) {
    require_same_tokenizer(checkpoint, newest.origin.tokenizer, newest.directory);
  }
  store::Origin origin = origin_of(identity);
  origin.world_size = newest.origin.world_size;
  origin.tokenizer = newest.origin.tokenizer;
  store::CheckpointStore store(run_directory);
  return store.save({.step = newest.step,
                     .run_id = identity.run_id,
                     .config_hash = identity.config_hash,
                     .origin = origin,
                     .files = {{"model", std::move(views)}},
                     .state_json = newest.state_json},
                    name);
}

void require_existing(const fs::path& run_or_checkpoint) {
  if (fs::exists(run_or_checkpoint)) return;
  throw Error(ExitCode::kUsage,
              "train.init_from: " + run_or_checkpoint.string() + " does not exist",
              "give a run folder or one of its checkpoints");
}

}  // namespace

fs::path find_checkpoint(const fs::path& run_directory, const std::string& selector) {
  if (selector.empty() || selector == "last") {
    return open_checkpoint(run_directory, selector).directory;
  }
  if (selector == "best") {
    std::vector<std::string> broken;
    const auto best = best_known_to(require_newest(run_directory, broken), run_directory);
    if (!best) throw_no_checkpoint(run_directory, selector);
    return *best;
  }
  int64_t step = 0;
  const auto [end, error] =
      std::from_chars(selector.data(), selector.data() + selector.size(), step);
  const bool is_number = error == std::errc() && end == selector.data() + selector.size();
  const fs::path path = is_number ? store::CheckpointStore(run_directory).path_of(step)
                                  : run_directory / "checkpoints" / fs::path(selector).filename();
  if (!is_checkpoint(path)) throw_no_checkpoint(run_directory, selector);
  return path;
}

Loaded open_checkpoint(const fs::path& run_directory, const std::string& selector) {
  if (selector.empty() || selector == "last") {
    std::vector<std::string> broken;
    auto chosen = require_newest(run_directory, broken);
    const auto best = selector.empty() ? best_known_to(chosen, run_directory) : std::nullopt;
    if (best && *best != chosen.directory) {
      if (auto loaded = load_if_whole(*best, broken)) chosen = *std::move(loaded);
    }
    if (!broken.empty()) log::warn("taken in its place: " + chosen.directory.string());
    return chosen;
  }
  const fs::path path = find_checkpoint(run_directory, selector);
  try {
    return store::CheckpointStore::load(path);
  } catch (const store::NewerFormat&) {
    throw;
  } catch (const Error& error) {  // somebody wanted this one and no other
    if (error.code() != ExitCode::kBadData) throw;
    throw Error(error.code(), error.what(),
                "the checkpoint is damaged; name another one, or none: then the best or the last "
                "one that is whole is taken");
  }
}

std::vector<Loaded> open_checkpoints(const fs::path& run_directory, const std::string& selectors) {
  std::vector<Loaded> opened;
  for (const auto& selector : split(selectors, ',')) {
    opened.push_back(open_checkpoint(run_directory, trim(selector)));
  }
  return opened;
}

std::vector<fs::path> find_checkpoints(const fs::path& run_directory,
                                       const std::string& selectors) {
  std::vector<fs::path> found;
  for (const auto& selector : split(selectors, ',')) {
    found.push_back(find_checkpoint(run_directory, trim(selector)));
  }
  if (found.empty()) found.push_back(find_checkpoint(run_directory, ""));
  return found;
}

fs::path average_checkpoints(const fs::path& run_directory, const std::vector<fs::path>& paths,
                             const RunIdentity& identity, const std::string& name) {
  if (paths.empty())
    throw Error(ExitCode::kUsage, "no checkpoints to average",
                "train first, or name checkpoints with --checkpoints");
  std::vector<Loaded> loaded;
  for (const auto& path : paths) loaded.push_back(store::CheckpointStore::load(path));
  return write_average(run_directory, loaded, identity, name);
}

fs::path average_last_checkpoints(const fs::path& run_directory, int64_t count,
                                  const RunIdentity& identity, const std::string& name) {
  const store::CheckpointStore store(run_directory);
  const auto steps = store.steps();
  std::vector<Loaded> loaded;  // newest first
  std::vector<std::string> broken;
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    if (static_cast<int64_t>(loaded.size()) == count) break;
    auto whole = load_if_whole(store.path_of(*step), broken);
    if (whole) loaded.push_back(*std::move(whole));
  }
  if (loaded.empty()) throw_none_whole(run_directory, broken);
  if (static_cast<int64_t>(loaded.size()) < count) {
    log::warn("only " + std::to_string(loaded.size()) + " checkpoints are there to average, " +
              std::to_string(count) + " were asked for (train.keep_last keeps more)");
  }
  std::reverse(loaded.begin(), loaded.end());
  if (!broken.empty()) {
    std::vector<std::string> names;
    for (const auto& one : loaded) names.push_back(one.directory.filename().string());
    log::warn("averaged without " + std::string(broken.size() == 1 ? "it" : "them") + ": " +
              join(names, ", "));
  }
  return write_average(run_directory, loaded, identity, name);
}

void initialise_from(const fs::path& run_or_checkpoint, optim::Arena& arena,
                     const std::map<std::string, std::string>& tokenizer) {
  require_existing(run_or_checkpoint);
  const auto loaded = is_checkpoint(run_or_checkpoint)
                          ? store::CheckpointStore::load(run_or_checkpoint)
                          : open_checkpoint(run_or_checkpoint, "");
  const std::string path = loaded.directory.string();
  load_weights(loaded.file("model"), path + "/model.safetensors", arena);
  log::info("weights from " + path);
  const std::string difference = tokenizer_difference(loaded, tokenizer);
  if (difference.empty()) return;
  log::warn("train.init_from: " + path + " was trained with another tokenizer (" + difference +
            "), so its embeddings stand for other pieces; set tokenizer.model to that run's");
}

void require_weights_fit(const fs::path& run_or_checkpoint, const optim::Arena& arena) {
  require_existing(run_or_checkpoint);
  std::vector<fs::path> candidates{run_or_checkpoint};
  if (!is_checkpoint(run_or_checkpoint)) {
    // All checkpoints of a run have the same shapes; a damaged one is passed over.
    const store::CheckpointStore store(run_or_checkpoint);
    candidates.clear();
    for (const int64_t step : store.steps()) {
      candidates.insert(candidates.begin(), store.path_of(step));
    }
  }
  if (candidates.empty()) throw_no_checkpoint(run_or_checkpoint, "");
  for (const fs::path& directory : candidates) {
    const fs::path path = directory / "model.safetensors";
    std::optional<store::SafetensorsFile> file;
    try {
      file.emplace(path);
    } catch (const Error&) {
      if (directory == candidates.back()) throw;
      continue;
    }
    return require_weights_fit(*file, path.string(), arena);
  }
}

}  // namespace stretto::train
