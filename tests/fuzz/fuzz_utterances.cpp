// libFuzzer target: any bytes as what tells of utterances. The first byte chooses a manifest (CSV,
// TSV, JSON lines), the files of a Kaldi folder, a list with bars, a folder in one of the layouts,
// a tar archive of sounds, or a lexicon of phonemes. Rows come out, or Error; what is left out is
// counted. Files stand between lines of `---`, each behind its name.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "data/archives/tar_reader.h"
#include "data/speech/kaldi_rows.h"
#include "data/speech/manifest_rows.h"
#include "data/speech/sound_index.h"
#include "data/speech/speech_layouts.h"
#include "tests/data/memory_stream.h"
#include "tests/fuzz/one_reader.h"
#include "text/pronunciations.h"

namespace {

using namespace stretto;
using testing::MemoryStream;
using Files = std::map<std::string, std::string>;

constexpr const char* kFolder = "/fuzz";

void require(bool fact) {
  if (!fact) std::abort();
}

data::LineReader lines_of(std::string_view text, const std::string& name) {
  return {std::make_unique<MemoryStream>(text), name};
}

/// Files by their names.
Files files_in(std::string_view bytes) {
  constexpr std::string_view kLine = "\n---\n";
  Files files;
  while (!bytes.empty()) {
    const size_t end = std::min(bytes.find(kLine), bytes.size());
    const std::string_view file = bytes.substr(0, end);
    const size_t name = std::min(file.find('\n'), file.size());
    files[std::string(file.substr(0, name))] = file.substr(std::min(name + 1, file.size()));
    bytes.remove_prefix(std::min(end + kLine.size(), bytes.size()));
  }
  files.erase("");
  return files;
}

void require_sound(const data::UtteranceRows& all, const std::string& path) {
  for (const auto& list : all.lists) require(list.starts_with(path));
  for (const auto& row : all.rows) {
    require(!row.sound.empty());
    require(std::isfinite(row.offset) && row.offset >= 0);
    require(std::isfinite(row.duration) && row.duration >= 0);
    require(row.line == 0 || row.list < all.lists.size());
  }
}

void read_manifest(std::string_view bytes, data::MediaListFormat format, data::BadSamples& bad) {
  require_sound(data::read_manifest_rows(lines_of(bytes, kFolder), format, {}, bad), kFolder);
}

void read_kaldi(std::string_view bytes, data::BadSamples& bad) {
  const Files files = files_in(bytes);
  const data::KaldiFolder folder{
      .path = kFolder, .open = [&](const std::string& name) -> std::optional<data::LineReader> {
        const auto found = files.find(name);
        if (found == files.end()) return std::nullopt;
        return lines_of(found->second, std::string(kFolder) + "/" + name);
      }};
  require_sound(data::read_kaldi_rows(folder, {}, bad), kFolder);
}

/// The first line is a letter of the layout, and a pattern of names, whose length chooses the set
/// of commands.
void read_layout(std::string_view bytes, data::BadSamples& bad) {
  using Format = data::SpeechFormat;
  const std::map<char, Format> formats{{'l', Format::kLibriSpeech},   {'j', Format::kLjSpeech},
                                       {'m', Format::kMAilabs},       {'t', Format::kTextFiles},
                                       {'f', Format::kClassFolders},  {'n', Format::kLabelledNames},
                                       {'c', Format::kSpeechCommands}};
  const size_t end = std::min(bytes.find('\n'), bytes.size());
  const std::string head(bytes.substr(0, end));
  const auto format = head.empty() ? formats.end() : formats.find(head.front());
  if (format == formats.end()) return;
  data::SpeechDataOptions options;
  options.label_words = {"7 seven"};
  if (head.size() > 1) options.name_pattern = head.substr(1);
  const Files files = files_in(bytes.substr(end));
  data::LayoutFiles layout{.path = kFolder, .names = {}, .open = [&](const std::string& name) {
                             return lines_of(files.at(name), std::string(kFolder) + "/" + name);
                           }};
  for (const auto& file : files) layout.names.push_back(file.first);
  layout.split = static_cast<data::SpeechSplit>(head.size() % 3);
  const auto all = data::read_layout(format->second, layout, options, bad);
  require_sound(all, kFolder);
  for (const auto& row : all.rows) require(files.contains(row.sound));
}

/// @param keeps  sounds are stored, as those of a packed archive
void read_archive(std::string_view bytes, data::BadSamples& bad, bool keeps) {
  data::TarReader archive(std::make_unique<MemoryStream>(bytes), "fuzz");
  std::string kept;
  std::function<uint64_t(std::string_view)> keep;
  if (keeps) {
    keep = [&](std::string_view sound) {
      const uint64_t place = kept.size();
      kept += sound;
      return place;
    };
  }
  const auto all = data::read_sound_archive(archive, "fuzz", keep, bad);
  const std::string_view whole = keeps ? std::string_view(kept) : bytes;
  for (const auto& sound : all.sounds.sounds()) {
    if (!sound.fault.empty()) continue;
    require(sound.rate > 0 && sound.channels > 0 && sound.frames >= 0);
    require(sound.offset <= whole.size() && sound.bytes <= whole.size() - sound.offset);
    require(xxh3_64(whole.substr(sound.offset, sound.bytes)) == sound.hash);
  }
}

void read_lexicon(std::string_view bytes) {
  const text::Pronunciations words(bytes, "fuzz");
  require(words.size() > 0);
}

void read_with(uint8_t reader, std::string_view bytes, const data::BadSampleRule& rule) {
  data::BadSamples bad(rule);
  try {
    switch (reader) {
      case 0:
        read_manifest(bytes, data::MediaListFormat::kCsv, bad);
        break;
      case 1:
        read_manifest(bytes, data::MediaListFormat::kTsv, bad);
        break;
      case 2:
        read_manifest(bytes, data::MediaListFormat::kJsonLines, bad);
        break;
      case 3:
        read_kaldi(bytes, bad);
        break;
      case 4:
        require_sound(data::read_bar_list(lines_of(bytes, kFolder), {}, bad), kFolder);
        break;
      case 5:
        read_layout(bytes, bad);
        break;
      case 6:
        read_archive(bytes, bad, rule.skips);
        break;
      default:
        read_lexicon(bytes);
    }
    bad.end_file();
    require(rule.skips || bad.left_out().count == 0);
  } catch (const Error&) {
  }
}

}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned /*seed*/) {
  return testing::mutate_for_its_reader(data, size, max_size);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data + 1), size - 1);
  const auto reader = static_cast<uint8_t>(data[0] % 8);
  read_with(reader, bytes, {});
  read_with(reader, bytes, {.skips = true, .most = 3});
  return 0;
}
