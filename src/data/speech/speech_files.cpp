#include "data/speech/speech_files.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "data/bad_samples.h"
#include "data/speech/kaldi_rows.h"
#include "data/speech/sound_names.h"
#include "data/speech/speech_inputs.h"
#include "data/speech/speech_layouts.h"
#include "data/speech/speech_source.h"

namespace stretto::data {
namespace {

namespace fs = std::filesystem;

constexpr BadSampleRule kAnyNumber{.skips = true, .most = INT64_MAX};

bool is_listed(const SpeechInput& input) {
  return input.holder == SpeechInput::Holder::kFile || input.format == SpeechFormat::kKaldi;
}

/// A manifest, a list, or wav.scp with the sounds that it names and that are there.
DataFile as_manifest(const SpeechDataOptions& options, const SpeechInput& input,
                     const std::string& key) {
  return {.key = key,
          .path = sound_list(input),
          .kind = DataKind::kManifest,
          .rows = [options, input](const std::string& /*manifest*/,
                                   const std::function<void(const NamedFile&)>& take) {
            BadSamples bad(kAnyNumber);
            for (const auto& file : sounds_there(read_listed_rows(input, options, bad))) take(file);
          }};
}

/// A file of a key with what belongs to it.
void add_with_kind(const SpeechDataOptions& options, const DataFile& file,
                   std::vector<DataFile>& result) {
  std::vector<SpeechInput> inputs;
  try {
    inputs = speech_inputs(options, file.key, {file.path});
  } catch (const Error&) {
    // What is wrong with a path is said where it is read.
  }
  std::error_code ignored;
  if (inputs.size() == 1 && is_listed(inputs.front())) {
    const SpeechInput& input = inputs.front();
    result.push_back(as_manifest(options, input, file.key));
    if (input.format != SpeechFormat::kKaldi) return;
    for (const auto& path : kaldi_files(input.path)) {
      if (path != sound_list(input)) result.push_back({.key = file.key, .path = path});
    }
    return;
  }
  DataFile one = file;
  if (fs::is_directory(file.path, ignored)) {
    one.kind = DataKind::kTree;
  } else if (!inputs.empty()) {
    one.kind = DataKind::kBytes;
  }
  result.push_back(std::move(one));
}

int64_t count_in_folder(const SpeechDataOptions& options, const SpeechInput& input) {
  BadSamples bad(kAnyNumber);
  LayoutFiles files{.path = input.path,
                    .names = visible_names(input.path),
                    .open =
                        [&input](const std::string& name) {
                          return LineReader((fs::path(input.path) / name).string());
                        },
                    .split = input.split};
  // Texts of their own need not be read for it.
  if (input.format == SpeechFormat::kTextFiles) {
    return std::count_if(files.names.begin(), files.names.end(), is_sound_name);
  }
  return std::ssize(read_layout(input.format, files, options, bad).rows);
}

}  // namespace

std::vector<DataFile> speech_data_files(const SpeechDataOptions& options,
                                        const std::vector<DataFile>& files) {
  std::vector<DataFile> result;
  for (const auto& file : files) {
    // What paths start from is no data by itself.
    if (file.key != "data.audio_dir") add_with_kind(options, file, result);
  }
  return result;
}

std::optional<int64_t> count_utterances(const SpeechDataOptions& options,
                                        const std::vector<std::string>& paths,
                                        const std::string& key) {
  int64_t count = 0;
  for (const auto& input : speech_inputs(options, key, paths)) {
    if (input.holder == SpeechInput::Holder::kArchive) return std::nullopt;
    if (is_listed(input)) {
      BadSamples bad(kAnyNumber);
      count += std::ssize(read_listed_rows(input, options, bad).rows);
    } else {
      count += count_in_folder(options, input);
    }
  }
  return count;
}

Loading speech_loading(const SpeechDataOptions& options, int64_t cores) {
  return {.depth = options.prefetch,
          .threads = options.threads > 0 ? options.threads : std::max<int64_t>(1, cores)};
}

}  // namespace stretto::data
