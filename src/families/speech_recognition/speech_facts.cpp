#include "families/speech_recognition/speech_facts.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "base/error.h"
#include "text/target_text.h"

namespace stretto::experiment {
namespace {

constexpr double kUsualSeconds = 7;  // half of what data.max_seconds leaves, as of LibriSpeech

}  // namespace

data::Labels labels_of_texts(const data::SpeechSet& set, const text::TargetOptions& options) {
  const text::TargetText rules(options);
  std::set<std::string> names;
  for (int64_t sample = 0; sample < set.size(); ++sample) {
    std::string name = rules.normalised(set.text(sample));
    if (!name.empty()) names.insert(std::move(name));
  }
  if (names.size() < 2) {
    throw Error(ExitCode::kUsage,
                "loss.name = \"label\": the training texts have " + std::to_string(names.size()) +
                    " labels, and two are the least to choose from",
                "name the texts of two classes at least, or set loss.name = \"ctc\"");
  }
  return data::Labels::sorted({names.begin(), names.end()});
}

double frames_per_second(const SpeechRecognitionOptions& own) {
  return 1 / own.features.hop_seconds;
}

double usual_frames(const SpeechRecognitionOptions& own) {
  const double most = own.data.max_seconds > 0 ? own.data.max_seconds / 2 : kUsualSeconds;
  return std::max(1.0, std::min(kUsualSeconds, most) * frames_per_second(own));
}

}  // namespace stretto::experiment
