#include "runs/train_state.h"

#include <charconv>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"

namespace stretto::runs {
namespace {

uint64_t from_hex(const std::string& text) {
  uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [last, error] = std::from_chars(text.data(), end, value, 16);
  return last == end && error == std::errc() ? value : 0;
}

}  // namespace

int64_t TrainState::best_step(int64_t every) const {
  int64_t best = 0;
  for (const auto& [step, value] : quality) {
    if (step < best_from || step % every != 0) continue;
    if (best == 0 || value > quality.at(best)) best = step;
  }
  return best;
}

std::string TrainState::to_json() const {
  nlohmann::ordered_json json{{"step", step},
                              {"epoch", epoch},
                              {"batch_index", batch_index},
                              {"validated_step", validated_step},
                              {"bad_validations", bad_validations},
                              {"skipped_updates", skipped_updates},
                              {"skipped_in_a_row", skipped_in_a_row},
                              {"good_step", good_step},
                              {"seconds", seconds}};
  auto list = nlohmann::ordered_json::array();
  for (const auto& [at, value] : quality) list.push_back({{"step", at}, {"value", value}});
  json["quality"] = list;
  if (best_from > 0) json["best_from"] = best_from;
  json["loss_scales"] = loss_scales;
  // A version whose train.max_steps counts attempts does not write this.
  if (!counts_attempts) json["stepped_updates"] = stepped();
  if (metrics) json["metrics"] = {{"bytes", metrics->bytes}, {"xxh3", hex64(metrics->hash)}};
  json["parts"] = parts;
  return json.dump(2) + "\n";
}

TrainState TrainState::from_json(const std::string& text, const std::string& where) {
  const auto json = parse_json(text, where, size_t{64} << 20);
  try {
    TrainState state;
    state.step = json.at("step").get<int64_t>();
    state.epoch = json.at("epoch").get<int64_t>();
    state.batch_index = json.at("batch_index").get<int64_t>();
    state.validated_step = json.at("validated_step").get<int64_t>();
    state.bad_validations = json.at("bad_validations").get<int64_t>();
    state.skipped_updates = json.at("skipped_updates").get<int64_t>();
    state.skipped_in_a_row = json.at("skipped_in_a_row").get<int64_t>();
    state.seconds = json.at("seconds").get<double>();
    for (const auto& entry : json.at("quality")) {
      if (entry.at("value").is_null()) continue;  // was not a number
      state.quality[entry.at("step").get<int64_t>()] = entry.at("value").get<double>();
    }
    state.counts_attempts = !json.contains("stepped_updates");
    if (json.contains("metrics")) {
      const auto& mark = json.at("metrics");
      state.metrics = {mark.at("bytes").get<uint64_t>(),
                       from_hex(mark.at("xxh3").get<std::string>())};
    }
    // Not in checkpoints of version 0.1.0.
    state.good_step = json.value("good_step", int64_t{0});
    state.best_from = json.value("best_from", int64_t{0});
    state.loss_scales = json.value("loss_scales", std::vector<double>{});
    if (json.contains("parts")) state.parts = json.at("parts").get<decltype(state.parts)>();
    return state;
  } catch (const nlohmann::json::exception& error) {
    throw Error(ExitCode::kBadData, where + ": not a training state: " + error.what(),
                "the checkpoint was written by another version or is damaged");
  }
}

}  // namespace stretto::runs
