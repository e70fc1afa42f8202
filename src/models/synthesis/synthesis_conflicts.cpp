#include "models/synthesis/synthesis_conflicts.h"

#include <string>
#include <utility>

namespace stretto::models {
namespace {

using SpeechConflicts = std::vector<OptionConflict>;

void add_conflict_of_speech(SpeechConflicts& found, std::vector<std::string> keys, std::string what,
                            std::string hint) {
  found.push_back({std::move(keys), std::move(what), std::move(hint)});
}

SpeechConflicts conflicts_of_kind(const Tacotron2Options& options) {
  SpeechConflicts found;
  if (options.encoder_dim % 2 != 0) {
    add_conflict_of_speech(found, {"model.encoder_dim"},
                           "an encoder of " + std::to_string(options.encoder_dim) +
                               " has no halves for the two directions of its LSTM",
                           "use an even number");
  }
  if (options.location_kernel % 2 == 0) {
    add_conflict_of_speech(found, {"model.location_kernel"},
                           "filters of " + std::to_string(options.location_kernel) +
                               " characters have no middle, and would shift attention",
                           "use an odd number");
  }
  return found;
}

SpeechConflicts conflicts_of_kind(const CentaurOptions& options) {
  SpeechConflicts found;
  if (options.d_model % 2 != 0) {
    add_conflict_of_speech(
        found, {"model.d_model"},
        "sinusoids of positions need an even d_model, got " + std::to_string(options.d_model),
        "use an even number");
  }
  return found;
}

}  // namespace

SpeechConflicts option_conflicts(const SynthesisModelOptions& model) {
  SpeechConflicts found = model.visit([](const auto& kind) { return conflicts_of_kind(kind); });
  const StyleTokenOptions& style = keys_of(model).style;
  if (style.is_on() && style.dim % style.num_heads != 0) {
    add_conflict_of_speech(found, {"model.style.num_heads", "model.style.dim"},
                           std::to_string(style.num_heads) + " heads do not divide a style of " +
                               std::to_string(style.dim),
                           "use a number of heads that divides it");
  }
  return found;
}

}  // namespace stretto::models
