#include "models/speech/conformer_conflicts.h"

#include <string>
#include <utility>

namespace stretto::models {
namespace {

using ConformerConflicts = std::vector<OptionConflict>;

void refuse(ConformerConflicts& found, std::vector<std::string> keys, std::string what,
            std::string hint) {
  found.push_back({std::move(keys), std::move(what), std::move(hint)});
}

ConformerConflicts missing_sizes(const ConformerSizes& sizes) {
  ConformerConflicts found;
  const auto need = [&](const char* key, int64_t size) {
    if (size == 0) {
      refuse(found, {key, "model.preset"}, "model.preset = \"none\" gives no size",
             "set it, or use a preset such as \"conformer_small\"");
    }
  };
  need("model.num_layers", sizes.num_layers);
  need("model.d_model", sizes.d_model);
  need("model.num_heads", sizes.num_heads);
  need("model.kernel", sizes.kernel);
  return found;
}

}  // namespace

ConformerConflicts conflicts_of_kind(const ConformerOptions& options) {
  const ConformerSizes sizes = sizes_of(options);
  ConformerConflicts found = missing_sizes(sizes);
  if (!found.empty()) return found;
  if (sizes.d_model % sizes.num_heads != 0) {
    refuse(found, {"model.num_heads", "model.d_model"},
           std::to_string(sizes.num_heads) +
               " heads do not divide d_model = " + std::to_string(sizes.d_model),
           "use a number of heads that divides it");
  } else if (options.positions == "rotary" && sizes.d_model / sizes.num_heads % 2 != 0) {
    refuse(found, {"model.positions", "model.num_heads"},
           "rotary positions turn pairs of a head's columns, and a head has " +
               std::to_string(sizes.d_model / sizes.num_heads),
           "use another number of heads, or positions = \"relative\"");
  } else if (sizes.d_model % 2 != 0) {
    refuse(found, {"model.d_model"},
           "vectors of distances have as many sines as cosines, and d_model is " +
               std::to_string(sizes.d_model),
           "use an even number");
  }
  if (sizes.kernel % 2 == 0) {
    refuse(found, {"model.kernel"},
           "a filter of " + std::to_string(sizes.kernel) + " rows has no middle",
           "use an odd number");
  }
  const int64_t factor = options.subsampling_factor;
  if (factor != 1 && factor != 2 && factor != 4 && factor != 8) {
    refuse(found, {"model.subsampling_factor"},
           "convolutions with a stride of 2 keep no row of " + std::to_string(factor),
           "use 1, 2, 4 or 8");
  }
  const ConformerConflicts of_decoder = decoder_conflicts(options.decoder, "model.decoder");
  found.insert(found.end(), of_decoder.begin(), of_decoder.end());
  return found;
}

ConformerConflicts decoder_conflicts(const AttentionDecoderOptions& options,
                                     const std::string& section) {
  ConformerConflicts found;
  if (options.is_on() && options.location_kernel % 2 == 0) {
    refuse(found, {section + ".location_kernel"},
           "a filter of " + std::to_string(options.location_kernel) + " rows has no middle",
           "use an odd number");
  }
  return found;
}

}  // namespace stretto::models
