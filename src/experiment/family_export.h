#pragma once

#include <cstdint>
#include <string>
#include <vector>

/// What `stretto export` asks of a family of tasks: the formats in which it writes its models.
namespace stretto::experiment {

/// How an exported model stores its matrices.
enum class StoredWeights : uint8_t { kFloat32, kFloat16, kInt8 };

/// Values of `stretto export --weights`: "auto", "float32", "float16", "int8".
std::vector<std::string> stored_weights_names();
/// Without "auto".
std::string name_of_weights(StoredWeights weights);

/// The format of folders of `transformers`.
inline constexpr const char* kTransformersFormat = "hf";

/// A value of `stretto export --format`.
struct ExportFormat {
  std::string name;  ///< "onnx"
  /// Which models it is for, in front of its name in `--help`: "encoders of text". Words of several
  /// families are joined; of formats side by side with the same words, the first one has them.
  std::string models = {};
  /// How it can store matrices. Those of "auto" are the first one, or int8 of packed weights.
  std::vector<StoredWeights> weights = {StoredWeights::kFloat32};
  /// For a package that has several classes of models (`--model-type`), and trains them.
  bool has_classes = false;
  bool is_file = false;  ///< not a folder

  bool stores(StoredWeights one) const;
};

/// A folder of `transformers`.
ExportFormat transformers_format();

/// @param wanted     one of stored_weights_names(); "auto" is int8 for a run whose weights are
///                   packed, else the first one that the format has
/// @param is_packed  whether the run's weights are packed
/// Throws Error(kUsage) for one that the format does not have.
StoredWeights choose_stored_weights(const std::string& wanted, bool is_packed,
                                    const ExportFormat& format);

}  // namespace stretto::experiment
