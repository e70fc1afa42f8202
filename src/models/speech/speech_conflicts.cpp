#include "models/speech/speech_conflicts.h"

#include <string>
#include <utility>

namespace stretto::models {
namespace {

using SpeechConflicts = std::vector<OptionConflict>;

void blame(SpeechConflicts& found, std::vector<std::string> keys, std::string what, std::string hint) {
  found.push_back({std::move(keys), std::move(what), std::move(hint)});
}

SpeechConflicts speech_conflicts_of(const DeepSpeech2Options& options) {
  SpeechConflicts found;
  const DeepSpeech2Shape shape = shape_of(options);
  const auto need = [&](const char* key, int64_t size) {
    if (size == 0) {
      blame(found, {key, "model.preset"}, "model.preset = \"none\" gives no size",
          "set it, or use a preset such as \"deepspeech2_small\"");
    }
  };
  need("model.num_layers", shape.num_layers);
  need("model.hidden_dim", shape.hidden_dim);
  need("model.output_dim", shape.output_dim);
  return found;
}

/// Of blocks in their order, from `model.blocks` or a preset.
SpeechConflicts conflicts_of_blocks(const std::vector<ConvBlockOptions>& blocks) {
  SpeechConflicts found;
  if (blocks.empty()) {
    blame(found, {"model.blocks", "model.preset"}, "model.preset = \"none\" gives no blocks",
        "add [[model.blocks]], or use a preset");
  }
  bool has_dense = false;
  for (size_t i = 0; i < blocks.size(); ++i) {
    const std::string key = "model.blocks." + std::to_string(i);
    const ConvBlockOptions& block = blocks[i];
    if (block.stride == 1) {
      has_dense = has_dense || block.residual == "dense";
      continue;
    }
    if (block.residual != "none") {
      blame(found, {key + ".residual", key + ".stride"},
          "a block with a stride of " + std::to_string(block.stride) +
              " gives fewer rows than it reads, and cannot add those that it reads",
          "put a block of one convolution with this stride below it");
    } else if (has_dense) {
      blame(found, {key + ".stride"},
          "dense blocks on both sides of a stride have different numbers of rows",
          "put strides below the first block with residual = \"dense\"");
    }
  }
  return found;
}

template <class Kind>
SpeechConflicts speech_conflicts_of(const Kind& options) {
  return conflicts_of_blocks(blocks_of(options));
}

}  // namespace

SpeechConflicts option_conflicts(const SpeechModelOptions& model) {
  return model.visit([](const auto& kind) { return speech_conflicts_of(kind); });
}

}  // namespace stretto::models
