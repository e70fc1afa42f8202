#include "families/speech_recognition/speech_recognition_display.h"

namespace stretto::tasks {
namespace {

experiment::ScoreSpec rate_of_errors(const char* name, const char* label, const char* title) {
  return {.style = {.name = name,
                    .label = label,
                    .remark = "%",
                    .decimals = 2,
                    .progress = name,
                    .chart = "Errors, %",
                    .axis = report::Axis::kFromZero,
                    .tile = label,
                    .column = label,
                    .column_decimals = 2,
                    .of_validation = true},
          .title = title};
}

}  // namespace

std::vector<experiment::ScoreSpec> speech_recognition_scores(SpeechAnswer answer) {
  std::vector<experiment::ScoreSpec> scores{
      {.style = report::loss_style(), .also_called = {"valid_loss", "eval_loss", "nll"}}};
  if (answer == SpeechAnswer::kLabel) {
    scores.push_back({.style = {.name = speech_score::kAccuracy,
                                .label = "Accuracy",
                                .progress = speech_score::kAccuracy,
                                .chart = "Accuracy",
                                .axis = report::Axis::kFromZero,
                                .tile = "Accuracy",
                                .column = "Accuracy",
                                .higher_is_better = true,
                                .error = "Error"},
                      .also_called = {"acc", "top1", "eval_accuracy"},
                      .noise = experiment::noise_of_share()});
    return scores;
  }
  scores.push_back(rate_of_errors(speech_score::kWer, "WER", "word error rate"));
  scores.back().also_called = {"word_error_rate", "val_wer", "eval_wer"};
  scores.push_back(rate_of_errors(speech_score::kCer, "CER", "character error rate"));
  scores.back().also_called = {"character_error_rate", "val_cer", "eval_cer", "ler", "per"};
  return scores;
}

report::Display speech_recognition_display(SpeechAnswer answer, const char* loss_unit) {
  report::Display display;
  display.numbers = experiment::styles_of(speech_recognition_scores(answer));
  display.rate = {.key = "frames_per_second",
                  .unit = kHeardFrames,
                  .short_unit = "fr",
                  .remark = "features.hop_seconds each",
                  .batch = kHeardFrames};
  display.loss_unit = {.name = loss_unit, .count = loss_unit};
  display.samples = "What was heard";
  display.text_pair = {.input = "Utterance", .output = "Heard", .reference = "Said"};
  return display;
}

}  // namespace stretto::tasks
