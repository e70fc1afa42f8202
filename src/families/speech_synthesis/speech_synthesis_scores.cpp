#include "families/speech_synthesis/speech_synthesis_display.h"

namespace stretto::tasks {
namespace {

/// A share of the sentences or steps of a validation.
report::NumberStyle share_style(const char* name, const char* label, bool higher_is_better) {
  return {.name = name,
          .label = label,
          .chart = label,
          .axis = report::Axis::kFromZero,
          .column = label,
          .higher_is_better = higher_is_better,
          .of_validation = true};
}

}  // namespace

std::vector<experiment::ScoreSpec> speech_synthesis_scores() {
  return {{.style = report::loss_style(), .also_called = {"valid_loss", "eval_loss", "val_loss"}},
          {.style = {.name = synthesis_score::kMelL1,
                     .label = "Frame L1",
                     .progress = "L1",
                     .chart = "Frame L1",
                     .axis = report::Axis::kFromZero,
                     .tile = "Frame L1",
                     .column = "Frame L1"},
           .also_called = {"l1", "mel_loss", "mae"},
           .title = "mean absolute difference of frames"},
          {.style = share_style(synthesis_score::kStopError, "Stop error", false),
           .also_called = {"gate_error", "stop_token_error"},
           .title = "stop error",
           .noise = experiment::noise_of_share()},
          {.style = share_style(synthesis_score::kDiagonality, "Attention diagonality", true),
           .also_called = {"diagonality", "attention_score", "focus_rate", "diagonal_rate"},
           .title = "attention diagonality",
           .noise = experiment::noise_of_share()},
          {.style = share_style(synthesis_score::kMonotonic, "Monotonic steps", true),
           .also_called = {"monotonic", "monotonicity"},
           .title = "share of monotonic steps",
           .noise = experiment::noise_of_share()}};
}

report::Display speech_synthesis_display() {
  report::Display display;
  display.numbers = experiment::styles_of(speech_synthesis_scores());
  display.rate = {.key = "frames_per_second",
                  .unit = synthesis_count::kFrames,
                  .short_unit = "frames",
                  .remark = "without padding",
                  .batch = synthesis_count::kFrames};
  display.loss_unit = {.name = synthesis_count::kFrames, .count = synthesis_count::kFrames};
  display.samples = "Sentences as the model speaks them";
  return display;
}

}  // namespace stretto::tasks
