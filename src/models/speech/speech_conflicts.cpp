#include "models/speech/speech_conflicts.h"

#include <algorithm>
#include <string>
#include <utility>

#include "models/images/image_conflicts.h"
#include "models/speech/conformer_conflicts.h"

namespace stretto::models {
namespace {

using SpeechConflicts = std::vector<OptionConflict>;

void blame(SpeechConflicts& found, std::vector<std::string> keys, std::string what,
           std::string hint) {
  found.push_back({std::move(keys), std::move(what), std::move(hint)});
}

SpeechConflicts speech_conflicts_of(const DeepSpeech2Options& options, int64_t /*features*/) {
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
/// @param in  channels that the next block reads: features; 0 = not known here
SpeechConflicts conflicts_of_blocks(const std::vector<ConvBlockOptions>& blocks, int64_t in) {
  SpeechConflicts found;
  if (blocks.empty()) {
    blame(found, {"model.blocks", "model.preset"}, "model.preset = \"none\" gives no blocks",
          "add [[model.blocks]], or use a preset");
  }
  int64_t rate = 1, dense_rate = 0;  // frames for a row, and of the first dense block
  for (size_t i = 0; i < blocks.size(); ++i) {
    const ConvBlockOptions& block = blocks[i];
    const std::string key = "model.blocks." + std::to_string(i);
    rate *= block.stride;
    if (std::max(in % block.groups, block.channels % block.groups) > 0) {
      blame(found, {key + ".groups", key + ".channels"},
            std::to_string(block.groups) + " groups do not divide the channels of the block, " +
                (in > 0 ? std::to_string(in) + (i == 0 ? " features in and " : " in and ") : "") +
                std::to_string(block.channels) + " out",
            "use a number of groups that divides them");
    }
    in = block.channels;
    if (block.residual == "none") continue;
    if (block.stride > 1) {
      blame(found, {key + ".residual", key + ".stride"},
            "a block with a stride of " + std::to_string(block.stride) +
                " gives fewer rows than it reads, and cannot add those that it reads",
            "put a block of one convolution with this stride below it");
      continue;
    }
    if (block.residual != "dense") continue;
    if (dense_rate == 0) dense_rate = rate;
    if (dense_rate != rate) {
      blame(found, {key + ".residual"},
            "dense blocks on both sides of a stride have different numbers of rows",
            "put strides below the first block with residual = \"dense\"");
    }
  }
  return found;
}

SpeechConflicts speech_conflicts_of(const ConformerOptions& options, int64_t /*features*/) {
  return conflicts_of_kind(options);
}

SpeechConflicts speech_conflicts_of(const SquareResNetOptions& options, int64_t /*features*/) {
  return option_conflicts(ImageModelOptions(static_cast<const ResNetOptions&>(options)));
}

template <class Kind>
SpeechConflicts speech_conflicts_of(const Kind& options, int64_t features) {
  SpeechConflicts found = conflicts_of_blocks(blocks_of(options), features);
  if constexpr (requires { options.decoder; }) {
    const SpeechConflicts more = decoder_conflicts(options.decoder, "model.decoder");
    found.insert(found.end(), more.begin(), more.end());
  }
  return found;
}

}  // namespace

SpeechConflicts option_conflicts(const SpeechModelOptions& model, int64_t num_features) {
  return model.visit([&](const auto& kind) { return speech_conflicts_of(kind, num_features); });
}

}  // namespace stretto::models
