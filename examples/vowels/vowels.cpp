// Writes spoken words: vowels FOLDER [SEED] -> FOLDER/{train,valid,test}.jsonl and FOLDER/wavs

#include <cstdint>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "audio/wave_writer.h"
#include "base/file.h"
#include "examples/generator.h"
#include "examples/vowels/sounds.h"

namespace {

namespace fs = std::filesystem;
using stretto::vowels::Utterance;

constexpr std::string_view kUsage =
    "usage: vowels FOLDER [SEED]\n"
    "Writes FOLDER/wavs, and FOLDER/{train,valid,test}.jsonl with a path, a duration, a text and "
    "a\n"
    "speaker for each file in it, the same for the same seed (default 1): words of vowels and\n"
    "tones, at 8 kHz.\n";

void write_part(const fs::path& folder, const std::string& part,
                const std::vector<Utterance>& utterances) {
  std::string manifest;
  double seconds = 0;
  for (size_t i = 0; i < utterances.size(); ++i) {
    const Utterance& utterance = utterances[i];
    const std::string name = stretto::vowels::name_of(part, i);
    const double duration =
        static_cast<double>(utterance.samples.size()) / static_cast<double>(stretto::vowels::kRate);
    stretto::write_file_atomic(
        folder / name, stretto::audio::wave_bytes(utterance.samples, stretto::vowels::kRate));
    const nlohmann::ordered_json row{
        {"audio_filepath", name},
        {"duration", duration},
        {"text", utterance.text},
        {"speaker", stretto::vowels::kSpeakers[utterance.speaker].name}};
    manifest += row.dump() + "\n";
    seconds += duration;
  }
  stretto::write_file_atomic(folder / (part + ".jsonl"), manifest);
  std::cout << (folder / (part + ".jsonl")).string() << ": " << utterances.size() << " utterances, "
            << static_cast<int64_t>(seconds) << " s\n";
}

void write_utterances(const fs::path& folder, uint64_t seed) {
  stretto::make_directories(folder / "wavs");
  const auto utterances = stretto::vowels::generate(seed);
  write_part(folder, "test", utterances.test);
  write_part(folder, "valid", utterances.valid);
  write_part(folder, "train", utterances.train);
}

}  // namespace

int main(int argc, char** argv) {
  return stretto::examples::run_generator(
      {.name = "vowels", .usage = kUsage, .write = write_utterances}, argc, argv);
}
